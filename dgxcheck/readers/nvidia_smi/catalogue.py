"""The readers of nvidia-smi's outputs: errors first, and those with more fields before the plain table."""

from __future__ import annotations

from dgxcheck.readers.model import Reader
from dgxcheck.readers.nvidia_smi import (
    failure,
    gpu_list,
    known,
    monitors,
    nvlink,
    nvlink_errors,
    p2p,
    query_csv,
    query_json,
    query_text,
    query_xml,
    retired_pages,
    table,
    topo,
)

READERS: tuple[Reader, ...] = (
    failure.read,
    topo.read,
    p2p.read,
    nvlink.read,
    nvlink_errors.read,
    query_text.read,
    query_xml.read,
    query_json.read,
    table.read,
    query_csv.read,
    retired_pages.read,
    gpu_list.read,
    monitors.read,
    known.read,
)
