"""NVLinks as each GPU sees them, and what NVML says of every pair of GPUs: common ancestor and P2P status."""

from __future__ import annotations

from dgxcheck.facts import nature
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record


class NvLink(Record, where="nvml nvlink"):
    """One link position of one GPU (``nvmlDeviceGetNvLink...``)."""

    bdf: str = nature.key()
    link: int = nature.key()
    up: bool | Missing = nature.state("NVLink up", differs="nvlink.state judges it by the wiring")
    generation: int | Missing = nature.capability(
        "NVLink generation", differs="nvlink.generation compares it with the board's", asked="DeviceGetNvLinkVersion"
    )
    """1 on P100, 2 on V100, 3 on A100, 4 on H100; NVML's version enum counts the half generations 2.2 and 3.1 too."""
    remote_bdf: str | Missing = nature.place("far end of the NVLink", kept=True)
    remote_type: int | Missing = nature.place("kind of far end")
    """0 GPU, 1 IBMNPU, 2 SWITCH, 255 unknown (``nvmlIntNvLinkDeviceType_t``)."""


class GpuPair(Record):
    """What NVML says of an unordered pair of GPUs."""

    a: str = nature.key()
    b: str = nature.key()
    common_ancestor: int | Missing = nature.place("common ancestor")
    """``nvmlGpuTopologyLevel_t``: 0 internal, 10 single, 20 multiple, 30 host bridge, 40 node, 50 system."""


class NvLinkErrors(Record, where="nvml nvlink errors"):
    """``nvmlDeviceGetNvLinkErrorCounter`` of one link position, since the driver was loaded."""

    bdf: str = nature.key()
    link: int = nature.key()
    replay: int | Missing = nature.counter("NVLink replays", limit="nvlink.total", per="day")
    recovery: int | Missing = nature.counter("NVLink recoveries", better="less", limit="nvlink.total", per="day")
    crc_flit: int | Missing = nature.counter("NVLink CRC flit errors", limit="nvlink.total-crc", per="day")
    crc_data: int | Missing = nature.counter("NVLink CRC data errors", limit="nvlink.total-crc", per="day")
    ecc_data: int | Missing = nature.counter("NVLink ECC data errors", limit="nvlink.total", per="day")
    malformed: int | Missing = nature.counter("malformed packets", limit="nvlink.total", per="day")
    """This and all below are of NVLink 5 and newer, which count nothing of the above."""
    overrun: int | Missing = nature.counter("buffer overruns", limit="nvlink.total", per="day")
    receive: int | Missing = nature.counter("receive errors", limit="nvlink.total", per="day")
    receive_remote: int | Missing = nature.counter("remote receive errors", limit="nvlink.total", per="day")
    receive_general: int | Missing = nature.counter("general receive errors", limit="nvlink.total", per="day")
    integrity: int | Missing = nature.counter("local link integrity errors", limit="nvlink.total", per="day")
    discards: int | Missing = nature.counter("transmit discards", limit="nvlink.total", per="day")
    recovered: int | Missing = nature.counter("link recoveries", limit=0)
    recovery_failed: int | Missing = nature.counter("failed link recoveries", limit=0)
    effective: int | Missing = nature.counter("effective errors", limit="nvlink.total", per="day")
    """Left after forward error correction."""
    symbols: int | Missing = nature.counter("symbol errors", limit="nvlink.total", per="day")
    effective_ber: float | Missing = nature.gauge("effective bit error rate", low=0, high=1)
    symbol_ber: float | Missing = nature.gauge("symbol error rate", low=0, high=1)


class NvLinkRate(Record, where="nvml nvlink rate"):
    """The rate of one link that is up (``NVML_FI_DEV_NVLINK_GET_SPEED``)."""

    bdf: str = nature.key()
    link: int = nature.key()
    speed_mbs: int | Missing = nature.state(
        "NVLink speed", "MB/s", better="more", differs="nvlink.rate compares it within a tolerance"
    )
    """MB/s per direction, as ``nvidia-smi nvlink -s`` prints it: 25781 on V100, 26562 on H100."""


class NvLinkCapability(Record, where="nvml nvlink capability"):
    """``nvmlDeviceGetNvLinkCapability`` of one link position."""

    bdf: str = nature.key()
    link: int = nature.key()
    p2p: bool | Missing = nature.capability("P2P over NVLink")
    sysmem_access: bool | Missing = nature.capability("system memory over NVLink")
    p2p_atomics: bool | Missing = nature.capability("P2P atomics over NVLink")
    sysmem_atomics: bool | Missing = nature.capability("system memory atomics over NVLink")
    sli_bridge: bool | Missing = nature.capability("SLI bridge")
    valid: bool | Missing = nature.capability("NVLink usable")


CAPABILITIES = ("read", "write", "nvlink", "atomics", "prop")
"""By ``nvmlGpuP2PCapsIndex_t``."""

STATUSES = ("OK", "CNS", "GNS", "TNS", "DR", "NS", "U")
"""By ``nvmlGpuP2PStatus_t``, as nvidia-smi words it: ok, chipset not supported, GPU not supported, topology not
supported, disabled by registry key, not supported, unknown."""


class P2pStatus(Record, where="nvml p2p"):
    """``nvmlDeviceGetP2PStatus`` of an ordered pair, one of ``STATUSES`` per capability."""

    a: str = nature.key()
    b: str = nature.key()
    read: str | Missing = nature.state("P2P read")
    write: str | Missing = nature.state("P2P write")
    nvlink: str | Missing = nature.state("P2P over NVLink", differs="nvlink.state judges the links")
    atomics: str | Missing = nature.state("P2P atomics")
    prop: str | Missing = nature.state("proprietary P2P")
