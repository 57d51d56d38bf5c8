"""The readers of nvidia-smi's outputs; a dump that tells more goes before the plain table."""

from __future__ import annotations

from dgxcheck.readers import (
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
    smi_topo.read,
    smi_p2p.read,
    smi_nvlink.read,
    smi_query_text.read,
    smi_query_xml.read,
    smi_query_object.read,
    smi_table.read,
)
