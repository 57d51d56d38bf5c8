"""NVLinks as each GPU sees them, and what NVML says of every pair of GPUs: common ancestor and P2P status."""

from __future__ import annotations

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record


class NvLink(Record):
    """One link position of one GPU (``nvmlDeviceGetNvLink...``)."""

    bdf: str
    link: int
    up: bool | Missing
    generation: int | Missing
    """1 on P100, 2 on V100, 3 on A100, 4 on H100; NVML's version enum counts the half generations 2.2 and 3.1 too."""
    remote_bdf: str | Missing
    remote_type: int | Missing
    """0 GPU, 1 IBMNPU, 2 SWITCH, 255 unknown (``nvmlIntNvLinkDeviceType_t``)."""


class GpuPair(Record):
    """What NVML says of an unordered pair of GPUs."""

    a: str
    b: str
    common_ancestor: int | Missing
    """``nvmlGpuTopologyLevel_t``: 0 internal, 10 single, 20 multiple, 30 host bridge, 40 node, 50 system."""


class NvLinkErrors(Record):
    """``nvmlDeviceGetNvLinkErrorCounter`` of one link position, since the driver was loaded."""

    bdf: str
    link: int
    replay: int | Missing
    recovery: int | Missing
    crc_flit: int | Missing
    crc_data: int | Missing
    ecc_data: int | Missing


class NvLinkRate(Record):
    """The rate of one link that is up (``NVML_FI_DEV_NVLINK_GET_SPEED``)."""

    bdf: str
    link: int
    speed_mbs: int | Missing
    """MB/s per direction, as ``nvidia-smi nvlink -s`` prints it: 25781 on V100, 26562 on H100."""


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


CAPABILITIES = ("read", "write", "nvlink", "atomics", "prop")
"""By ``nvmlGpuP2PCapsIndex_t``."""

STATUSES = ("OK", "CNS", "GNS", "TNS", "DR", "NS", "U")
"""By ``nvmlGpuP2PStatus_t``, as nvidia-smi words it: ok, chipset not supported, GPU not supported, topology not
supported, disabled by registry key, not supported, unknown."""


class P2pStatus(Record):
    """``nvmlDeviceGetP2PStatus`` of an ordered pair, one of ``STATUSES`` per capability."""

    a: str
    b: str
    read: str | Missing
    write: str | Missing
    nvlink: str | Missing
    atomics: str | Missing
    prop: str | Missing
