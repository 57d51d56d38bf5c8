"""Lines of the NVIDIA driver in the kernel log, old and new spellings."""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.kernel_log import NoStart
from dgxcheck.facts.record import Record

_GPU = r"(?P<bus>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-7])?"
_XID = re.compile(
    rf"NVRM: Xid \((?:PCI:)?{_GPU}(?P<part>[^)]*)\): (?P<number>\d{{1,4}})(?!\d)(?:, *(?P<text>.*))?", re.DOTALL
)
_PROCESS = re.compile(r"pid='?(?P<pid>\d{1,10}|<unknown>)'?(?:, *name=(?P<name>[^,]*))?(?:, *|$)")
_CAUSE = re.compile(r"(?:Ch [0-9a-f]{8},?|channel 0x[0-9a-f]{8}) caused by previous Xid (\d{1,4})\.?", re.ASCII)
_SXID = re.compile(
    rf"nvidia-nvswitch\d+: SXid \((?:PCI:)?{_GPU}\): (?P<number>\d{{1,6}})(?!\d)(?:, *(?P<text>.*))?", re.DOTALL
)
_FATAL = re.compile(r"(?P<not>non-?)?fatal\b", re.IGNORECASE)
_OFF = re.compile(
    rf"NVRM: GPU (?:at )?(?:PCI:)?{_GPU}:? (?:GPU )?has fallen off the bus"
    r"|nvidia (?P<cold>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})\.[0-7]: Unable to change power state from D3cold to D0,"
    r" device inaccessible"
)
"""The kernel says the last of a device whose configuration space reads as ones (drivers/pci/pci.c)."""
_NAMED = re.compile(rf"NVRM: The NVIDIA GPU {_GPU}$")
_NOT_STARTED = re.compile(
    rf"NVRM: (?:GPU (?:at )?(?:PCI:)?{_GPU}: )?(?:RmInitAdapter failed!|rm_init_adapter(?:\(\d+\))? failed"
    rf"|(?P<unpowered>GPU does not have the necessary power cables connected))"
)
_INVALID_BAR = re.compile(
    r"NVRM: BAR\d{1,2} is \d{1,9}M @ 0x[0-9a-f]{1,16} \(PCI:(?P<bus>[0-9a-fA-F]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})"
)
_CODE = re.compile(r"failed! \((0x[0-9a-f]{1,8}:0x[0-9a-f]{1,8})\b")
_PROBE_FAILED = re.compile(
    rf"nvidia: probe of {_GPU} failed with error -\d|nvidia (?P<new>[0-9a-fA-F]{{4,8}}:[0-9a-f]{{2}}:[0-9a-f]{{2}})"
    r"\.[0-7]: probe with driver nvidia failed with error -\d"
)
_GSP_SILENT = re.compile(r"NVRM: GPU(?P<gpu>\d{1,2}) _kgsp(?:IsHeartbeatTimedOut|LogRpcTimeout|LogXid119): [*H]")
"""Beside Xid 119, or without it: the heartbeat of the GPU's system processor stopped."""
_REFUSED = re.compile(
    r"NVRM: API mismatch: the client .{0,80}?has (?:the )?version (?P<version>[\w.-]{1,40}?)[,.]?(?:\s|$)"
)
_LOADED = "NVRM: loading NVIDIA UNIX"
_LOADING = "nvidia-nvlink: Nvlink Core is being initialized"
_PROBED = re.compile(rf"nvidia {_GPU}: enabling device")
RECOVERED = "to 0x0 (None)"
"""Xid 154 ends so once a GPU has been reset."""


class XidText(Record):
    """An Xid of a GPU in one line."""

    bdf: str
    number: int
    pid: int | None
    process: str
    part: str
    text: str


def xid(message: str) -> XidText | None:
    """``NVRM: Xid (PCI:0000:06:00): 79, pid=12, name=python3, GPU has ..``; the bus id lacks the function."""
    match = _XID.match(message)
    bdf = as_bdf(f"{match['bus']}.0") if match is not None else None
    if match is None or bdf is None:
        return None
    text = match["text"] or ""
    by = _PROCESS.match(text)
    pid, name = (by["pid"], by["name"] or "") if by is not None else ("", "")
    return XidText(
        bdf=bdf, number=int(match["number"]), pid=int(pid) if pid.isdecimal() else None,
        process="" if name == "<unknown>" else name.strip(), part=match["part"].strip(),
        text=text[by.end() :] if by is not None else text,
    )  # fmt: skip


def cause(text: str) -> int | None:
    """Of the text of an Xid 45, ``Ch 00000001 caused by previous Xid 149``, the number of the other one."""
    match = _CAUSE.fullmatch(text)
    return int(match[1]) if match is not None else None


def sxid(message: str) -> tuple[str, int, bool | None] | None:
    """``nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, ..``: bdf, number, is it fatal."""
    match = _SXID.match(message)
    bdf = as_bdf(f"{match['bus']}.0") if match is not None else None
    if match is None or bdf is None:
        return None
    severity = _FATAL.match(match["text"] or "")
    return bdf, int(match["number"]), None if severity is None else severity["not"] is None


def off_bus(message: str) -> str | None:
    """``NVRM: GPU 0000:06:00.0: GPU has fallen off the bus.``: the bdf."""
    match = _OFF.match(message)
    return as_bdf(f"{match['bus'] or match['cold']}.0") if match is not None else None


def named(message: str) -> str | None:
    """``NVRM: The NVIDIA GPU 0000:06:00.0``, continued in the next two lines: the bdf."""
    match = _NAMED.match(message.rstrip())
    return as_bdf(f"{match['bus']}.0") if match is not None else None


def goes_on_off_bus(message: str) -> bool:
    """The last of those three lines."""
    return message.startswith("NVRM: fallen off the bus")


def start_code(message: str) -> str:
    """``0x26:0xffff`` of ``RmInitAdapter failed! (0x26:0xffff:1290)``; empty where there is none."""
    match = _CODE.search(message)
    return match[1] if match is not None else ""


def not_started(message: str) -> tuple[str | None, NoStart] | None:
    """``NVRM: GPU 0000:06:00.0: RmInitAdapter failed! (..)``: the bdf, which old drivers omit, and why."""
    if match := _INVALID_BAR.match(message):
        return as_bdf(f"{match['bus']}.0"), "bars"
    if match := _PROBE_FAILED.match(message):
        return as_bdf(f"{match['bus'] or match['new']}.0"), ""
    match = _NOT_STARTED.match(message)
    if match is None:
        return None
    return as_bdf(f"{match['bus']}.0") if match["bus"] else None, "power" if match["unpowered"] is not None else ""


def gsp_silent(message: str) -> int | None:
    """``NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, ..``: the driver's number of the GPU."""
    match = _GSP_SILENT.match(message)
    return int(match["gpu"]) if match is not None else None


def refused(message: str) -> str | None:
    """``NVRM: API mismatch: the client has the version 550.54.14, but this kernel module ..``: the client's version."""
    match = _REFUSED.match(message)
    return match["version"] if match is not None else None


def loads(message: str) -> bool:
    """The driver was loaded; its lines about GPUs that did not start come before this line."""
    return message.startswith(_LOADED)


def failed_probe(message: str) -> bool:
    """``NVRM: The NVIDIA probe routine failed for 1 device(s).``: how a load ends that did not start every GPU."""
    return message.startswith("NVRM: The NVIDIA probe routine failed")


def begins_to_load(message: str) -> bool:
    """The first line of the driver while it loads."""
    return message.startswith(_LOADING)


def probed(message: str) -> str | None:
    """``nvidia 0000:06:00.0: enabling device (0140 -> 0142)``: the driver takes over this GPU."""
    match = _PROBED.match(message)
    return as_bdf(f"{match['bus']}.0") if match is not None else None
