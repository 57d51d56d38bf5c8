"""The readers of other tools' outputs."""

from __future__ import annotations

from dgxcheck.readers import (
    bandwidth_test,
    nvbandwidth,
    nvbandwidth_json,
    p2p_test,
    simple_p2p,
    smi_nvlink,
    smi_p2p,
    smi_query_object,
    smi_query_text,
    smi_query_xml,
    smi_table,
    smi_topo,
)
from dgxcheck.readers.model import Reader

READERS: tuple[Reader, ...] = (
    p2p_test.read,
    bandwidth_test.read,
    simple_p2p.read,
    nvbandwidth.read,
    nvbandwidth_json.read,
)
"""Those of benchmarks, in the order in which they look at a text."""

SMI: tuple[Reader, ...] = (
    smi_topo.read,
    smi_p2p.read,
    smi_nvlink.read,
    smi_query_text.read,
    smi_query_xml.read,
    smi_query_object.read,
    smi_table.read,
)
"""Those of nvidia-smi; a dump with more detail goes before the plain table."""

ALL = (*READERS, *SMI)
