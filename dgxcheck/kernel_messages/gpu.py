"""Messages of the NVIDIA driver, and of the kernel about its modules, old and new spellings.

NVIDIA open-gpu-kernel-modules: kernel-open/nvidia/nv.c, nv-pci.c, src/nvidia/arch/nvalloc/unix/src/osapi.c, osinit.c,
src/nvidia/src/kernel/gpu/gsp/kernel_gsp.c, gpu/nvlink/kernel_nvlink.c; Linux kernel/module, security/lockdown.
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Literal, cast

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.ids import has_gsp, is_supported
from dgxcheck.facts.kernel_log import ANNOUNCES_RECOVERY, ModuleTrouble, NoStart
from dgxcheck.facts.record import Record
from dgxcheck.kernel_messages.form import Forms, Lines
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.xid.table import from_ampere

FORMS = Forms("gpu", "silent")
SEVERAL_LINES = FORMS["several lines"]
"""How messages of several lines begin."""
NvLinkTrouble = Literal["nvlink", "fabric"]
_PROCESS = LazyPattern(r"pid='?(?P<pid>\d{1,10}|<unknown>)'?(?:, *name=(?P<name>[^,]*))?(?:, *|$)")
_CAUSE = LazyPattern(r"(?:Ch [0-9a-f]{8},?|channel 0x[0-9a-f]{8}) caused by previous Xid (\d{1,4})\.?", flags=re.ASCII)
_FATAL = LazyPattern(r"(?P<not>non-?)?fatal\b", flags=re.IGNORECASE)
_CODE = LazyPattern(r"failed! \((0x[0-9a-f]{1,8}:0x[0-9a-f]{1,8})\b")
_RELEASE = LazyPattern(r"\b(\d{3})\.\d{2,3}(?:\.\d{2})? driver release", " driver release")
_GSP_SILENT = 119
"""Xid of a system processor of the GPU that does not answer; so is 120."""
_OF_MODULE = LazyPattern(f"NVRM: {FORMS.parts['MODULE_HAS']}")
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


@lru_cache(maxsize=1 << 15)
def xid(message: str) -> XidText | None:
    """``NVRM: Xid (PCI:0000:06:00): 79, pid=12, name=python3, GPU has ..``; the bus id lacks the function."""
    match = FORMS.match("xid", message)
    bdf = _bdf(match)
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
    match = FORMS.match("sxid", message)
    bdf = _bdf(match)
    if match is None or bdf is None:
        return None
    severity = _FATAL.match(match["text"] or "")
    return bdf, int(match["number"]), None if severity is None else severity["not"] is None


def off_bus(message: str) -> str | None:
    """``NVRM: GPU 0000:06:00.0: GPU has fallen off the bus.``: the bdf."""
    return _bdf(FORMS.match("off bus", message))


def fallen_serial(message: str) -> tuple[str | None, str] | None:
    """``NVRM: GPU 0000:06:00.0: GPU serial number is 0322716036227.``, after the fall: bdf and board serial number."""
    match = FORMS.match("serial number", message)
    return None if match is None else (_bdf(match), match["serial"])


def named(message: str) -> tuple[str, int] | None:
    """``NVRM: The NVIDIA GPU 0000:06:00.0 (PCI ID: 10de:26b9)``, continued in the next lines: the bdf and the PCI
    device, 0 where the line has none."""
    match = FORMS.match("named", message)
    bdf = _bdf(match)
    return None if match is None or bdf is None else (bdf, int(match["device"] or "0", 16))


def goes_on_not_started(message: str, device: int, after: str) -> NoStart | None:
    """The line after one that names the GPU, and why this driver takes no such GPU; ``after`` is the next line.

    A GPU whose registers read wrongly is taken for an unknown one too, and so is a vGPU by a driver that is not its
    guest's (https://github.com/NVIDIA/aicr/issues/1858, https://github.com/NVIDIA/gpu-operator/issues/1371).
    """
    found = FORMS.found("goes on", message)
    why = None if found is None else cast(NoStart, found[1])
    release = _RELEASE.search(message) or _RELEASE.search(after)
    if why == "unsupported" and release is not None and is_supported(device, int(release[1])):
        return "supported"
    return "supported" if why == "not-open" and "vGPU" not in message and has_gsp(device) else why


def start_code(message: str) -> str:
    """``0x26:0xffff`` of ``RmInitAdapter failed! (0x26:0xffff:1290)``; empty where there is none."""
    match = _CODE.search(message)
    return match[1] if match is not None else ""


def not_started(message: str) -> tuple[str | None, NoStart] | None:
    """``NVRM: GPU 0000:06:00.0: RmInitAdapter failed! (..)``: the bdf, which old drivers omit, and why."""
    found = FORMS.found("not started", message)
    return None if found is None else (_bdf(found[0]), cast(NoStart, found[1]))


def unnumbered(message: str) -> tuple[int, int, str] | None:
    """``NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, ..``: the driver's number of the GPU, -1 for none,
    and the Xid as which it counts, with the words of one."""
    if (found := FORMS.found("unnumbered", message)) is None:
        return None
    parts = found[0].groupdict()
    number, _, text = found[1].partition(" ")
    return int(parts.get("gpu") or -1), int(number or parts["number"]), text


def is_news(counts_as: int, logged: AbstractSet[int]) -> bool:
    """Does a line without a number say what none of these Xids says? A reset follows from any error of a GPU."""
    if counts_as != ANNOUNCES_RECOVERY:
        return logged.isdisjoint((counts_as, 120) if counts_as == _GSP_SILENT else (counts_as,))
    newest = from_ampere()
    return not any(
        number in newest and newest[number].severity not in ("application", "information") for number in logged
    )


def nvlink_trouble(message: str) -> NvLinkTrouble | None:
    """``NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!``, or of the fabric."""
    found = FORMS.found("nvlink trouble", message)
    return None if found is None else cast(NvLinkTrouble, found[1])


def module_refused(message: str) -> tuple[str, ModuleTrouble] | None:
    """``nvidia: disagrees about version of symbol module_layout``: the module, empty where none is named, and why."""
    found = FORMS.found("module refused", message)
    return None if found is None else (found[0].groupdict().get("module") or "", cast(ModuleTrouble, found[1]))


def refused(message: str) -> tuple[str, str, bool] | None:
    """``NVRM: API mismatch: the client has the version 550.54.14, but this kernel module ..``: the versions of client
    and module, the latter empty where another line has it, and whether the driver of the NVSwitches says it, whose
    client is Fabric Manager.
    """
    found = FORMS.found("refused", message)
    return None if found is None else (found[0]["version"], found[0]["module"] or "", found[1] == "fabric")


def module_version(after: Lines) -> str:
    """The version of the loaded module, where the first of these lines goes on with such a message; else empty."""
    match = _OF_MODULE.match(after[0][1]) if after else None
    return "" if match is None else match["module"]


def probed(message: str) -> str | None:
    """``nvidia 0000:06:00.0: enabling device (0140 -> 0142)``: the driver takes over this GPU."""
    return _bdf(FORMS.match("probed", message))


def _bdf(match: re.Match[str] | None) -> str | None:
    bus = None if match is None else match.groupdict().get("bus")
    return None if bus is None else as_bdf(f"{bus}.0")
