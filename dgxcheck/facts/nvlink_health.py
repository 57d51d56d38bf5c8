"""Error counters and capabilities of NVLinks."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class NvLinkErrors(Record):
    """``nvmlDeviceGetNvLinkErrorCounter`` of one link position, since the driver was loaded."""

    bdf: str
    link: int
    replay: int | Missing
    recovery: int | Missing
    crc_flit: int | Missing
    crc_data: int | Missing
    ecc_data: int | Missing


class NvLinkCapability(Record):
    """``nvmlDeviceGetNvLinkCapability`` of one link position."""

    bdf: str
    link: int
    p2p: bool | Missing
    sysmem_access: bool | Missing
    p2p_atomics: bool | Missing
    sysmem_atomics: bool | Missing
    sli_bridge: bool | Missing
    valid: bool | Missing
