"""Messages of the NVIDIA driver, and of the kernel about its modules, old and new spellings.

NVIDIA open-gpu-kernel-modules: kernel-open/nvidia/nv.c, nv-pci.c, src/nvidia/arch/nvalloc/unix/src/osapi.c, osinit.c,
src/nvidia/src/kernel/gpu/gsp/kernel_gsp.c, gpu/nvlink/kernel_nvlink.c; Linux kernel/module, security/lockdown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Literal

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.ids import has_gsp, is_supported
from dgxcheck.facts.kernel_log import ModuleTrouble, NoStart
from dgxcheck.facts.record import Record
from dgxcheck.kernel_messages import pcie
from dgxcheck.kernel_messages.form import Form, Lines, first_match
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.xid.table import from_ampere

_ADDRESS = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}"
_GPU = rf"(?P<bus>{_ADDRESS})(?:\.[0-7])?"
_AT = rf"(?:at )?(?:PCI:)?{_GPU}"
_XID = Form("NVRM: Xid (", rf"(?:PCI:)?{_GPU}(?P<part>[^)]*)\): (?P<number>\d{{1,4}})(?=[,:;\s]|$)(?:, *(?P<text>.*))?")
_PROCESS = LazyPattern(r"pid='?(?P<pid>\d{1,10}|<unknown>)'?(?:, *name=(?P<name>[^,]*))?(?:, *|$)")
_CAUSE = LazyPattern(r"(?:Ch [0-9a-f]{8},?|channel 0x[0-9a-f]{8}) caused by previous Xid (\d{1,4})\.?", flags=re.ASCII)
_SXID = Form(
    "nvidia-nvswitch",
    rf"\d+: SXid \((?:PCI:)?{_GPU}\): (?P<number>\d{{1,6}})(?=[,:;\s]|$)(?:, *(?P<text>.*))?",
)
_FATAL = LazyPattern(r"(?P<not>non-?)?fatal\b", flags=re.IGNORECASE)
_PCI_ID = r"(?: \(PCI ID: (?:10de:(?P<device>[0-9a-f]{4})|[^)]{1,24})\))?"
_HELD_BY = r"nvidia (?P<bus>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})\.[0-7]: "
_OFF = (
    Form("NVRM: GPU ", rf"{_AT}:? (?:GPU )?has fallen off the bus"),
    Form("NVRM: The NVIDIA GPU ", rf"{_GPU}{_PCI_ID} installed in this system has fallen off the bus"),
    *pcie.silent_forms(_HELD_BY),
)
_NAMED = Form("NVRM: The NVIDIA GPU ", rf"{_GPU}{_PCI_ID}(?: installed in this(?: system(?: has)?)?)?\s*$")
GOES_ON_OFF_BUS = Form("fallen off the bus", before="NVRM: (?:system )?(?:has )?")
"""The last of the lines of ``named``, of a GPU that fell off the bus."""
_SERIAL = Form("GPU serial number is ", r"(?P<serial>(?!0+\b)\w{1,24})\.?\s*$", before=rf"NVRM: (?:GPU {_AT}: )?")
_INVALID_BAR = Form(
    "NVRM: BAR", r"\d{1,2} is \d{1,9}M @ 0x[0-9a-f]{1,16} \(PCI:(?P<bus>[0-9a-fA-F]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})",
    before="(?:NVRM: This PCI I/O region assigned to your NVIDIA device is invalid: ?)?",
)  # fmt: skip
_CODE = LazyPattern(r"failed! \((0x[0-9a-f]{1,8}:0x[0-9a-f]{1,8})\b")
_SAYS = rf"NVRM: (?:GPU {_AT}: )?"
_IN_CODE = r"NVRM:? (?:GPU\d{1,2} )?\w{1,60}: "
_TEGRA = r"nvgpu: [\w.]{1,40} {1,40}\w{1,80}:\d{1,5} {1,9}\[ERR\] {1,4}"
_NOT_STARTED: Mapping[Form, NoStart] = {
    _INVALID_BAR: "bars",
    Form("NVRM: Fatal Error while attempting to resize PCIe BARs"): "bars",
    Form("can't enable device: BAR ", before=_HELD_BY): "bars",
    Form("; can't enable device", "$", rf"{_HELD_BY}BAR [0-5] \[[^\]]{{1,60}}\]: not (?:assigned|claimed)"): "bars",
    Form("NVRM: Can't find an IRQ for your NVIDIA card!"): "interrupt",
    Form("GPU does not have the necessary power cables connected", before=_SAYS): "power",
    Form("No firmware image found", before=_SAYS): "firmware",
    Form("RmInitAdapter failed! (", "0x22:0x56:", before=_SAYS): "unattached",
    Form("RmInitAdapter failed! (", "0x[0-9a-f]{1,8}:0x56:", before=_SAYS): "unsupported-call",
    Form("RmInitAdapter failed! (", "0x[0-9a-f]{1,8}:0x51:", before=_SAYS): "no-memory",
    Form("FSP boot cmds failed. RM cannot boot", before=_IN_CODE): "",
    Form("(the GPU is likely in a bad state and may need to be reset", before=_IN_CODE): "to-reset",
    Form("unexpected WPR2 already up, cannot proceed with booting GSP", before=_IN_CODE): "to-reset",
    Form("Cannot initialize GSP firmware RM", before=_IN_CODE): "",
    Form("RmInitAdapter failed!", before=_SAYS): "",
    Form("rm_init_adapter", r"(?:\(\d+\))? failed", before=_SAYS): "",
    Form("NVRM: No NVIDIA GPU found.", "$"): "none",
    Form("NVRM: No NVIDIA graphics adapter found!"): "none",
    Form("Unable to recover GR falcon", before=_TEGRA): "",
    Form("nvidia: probe of ", rf"{_GPU} failed with error -\d"): "",
    Form(": probe with driver nvidia failed with error -", before=rf"nvidia {_GPU}"): "",
    Form("NVRM: The NVIDIA probe routine was not called for "): "claimed",
    Form("NVRM: GPU ", rf"{_GPU} is already bound to (?:[\w-]{{0,20}}vfio|pci-stub|xen-pciback)"): "given",
    Form("NVRM: GPU ", rf"{_GPU} is already bound to \w"): "claimed",
    Form("nouveau ", rf"{_GPU}: (?:\w{{2,12}}: )?(?:fifo: fault|SCHED_ERROR|error during falcon reset|init failed, -"
         r"|failed to create kernel channel)"): "claimed",
    Form("NVRM: request_mem_region failed for ", r"\d{1,9}M @ 0x"): "claimed",
}
"""Lines that name their GPU, or none."""
_GOES_ON: Mapping[Form, NoStart] = {
    Form("NVRM: installed in this system is not supported by open"): "not-open",
    Form("NVRM: installed in this vGPU host system is not supported by"): "not-open",
    Form("NVRM: installed in this system requires use of the NVIDIA open kernel modules"): "needs-open",
    Form("NVRM: installed in this system is not supported by the"): "unsupported",
    Form("supported through the NVIDIA ", r"\S{1,16} Legacy drivers", before="NVRM:  ?"): "unsupported",
}
"""Lines that go on from one that names the GPU: ``NVRM: The NVIDIA GPU 0000:06:00.0 (PCI ID: 10de:1b06)``."""
_RELEASE = LazyPattern(r"\b(\d{3})\.\d{2,3}(?:\.\d{2})? driver release")
_OF_DRIVER = Form("NVRM: ", context=True)
SEVERAL_LINES = {
    Form("NVRM: The NVIDIA ", context=True): _OF_DRIVER,
    Form("NVRM: API mismatch: ", context=True): _OF_DRIVER,
    Form("NVRM: This PCI I/O region assigned to your NVIDIA device is invalid", context=True): _OF_DRIVER,
}
"""How messages of several lines begin, and the lines that go on with them."""
_SILENT, _LOST, _TO_RESET = (119, ""), (79, ""), (154, "to 0x1 (GPU Reset Required)")
_LOCKED = 8, ""
_NUMBERED = r"NVRM: (?:GPU(?P<gpu>\d{1,2}) )?"
_ASSERTS = rf"{_NUMBERED}nv\w{{1,40}}: .{{1,40}}"
_CALL = r"(?:SendMessage|RecvPoll) failed with status 0x0{6}"
_UNNUMBERED: Mapping[Form, tuple[int, str]] = {
    Form("NVRM: GPU", r"(?P<gpu>\d{1,2}) _kgsp(?:IsHeartbeatTimedOut|LogRpcTimeout|LogXid119): [*H]"): _SILENT,
    Form("NVRM: GPU", r"(?P<gpu>\d{1,2}) _kgspRpcRecvPoll: GSP RM heartbeat timed out"): _SILENT,
    Form("NVRM: _kgspRpcRecvPoll: GSP RM heartbeat timed out"): _SILENT,
    Form("NVRM: _kgspIsHeartbeatTimedOut: Heartbeat timed out"): _SILENT,
    Form("RC watchdog: GPU is probably locked!", before=rf"{_NUMBERED}krcWatchdog\w{{0,20}}: "): _LOCKED,
    Form("GPU lost from the bus [NV_ERR_GPU_IS_LOST]", before=_ASSERTS): _LOST,
    Form("Reset required [NV_ERR_RESET_REQUIRED]", before=_ASSERTS): _TO_RESET,
    Form("_issueRpcAndWait: rpc", f"{_CALL}0f ", before=_NUMBERED): _LOST,
    Form("_issueRpcAndWait: rpc", f"{_CALL}62 ", before=_NUMBERED): _TO_RESET,
    Form("error notifier set to ", r"(?P<number>\d{1,3}) for ch ", before=_TEGRA): (0, ""),
}
"""Beside an Xid, or without it, and as which it counts: the heartbeat of the GPU's system processor stopped; its
watchdog got no answer (https://github.com/NVIDIA/open-gpu-kernel-modules/issues/1187); a call was
refused because the GPU is lost (https://github.com/NVIDIA/open-gpu-kernel-modules/issues/688), or until it is reset
(https://github.com/scitix/sichek/issues/51; the codes: nvstatuscodes.h). The notifiers of the driver of a Tegra's GPU
have the numbers of Xids (nvgpu, include/uapi/linux/nvgpu.h: NVGPU_CHANNEL_FIFO_ERROR_MMU_ERR_FLT 31).
"""
_MODULE_HAS = r"this kernel module has the version (?P<module>[\w.-]{1,40}?)[,.]?(?:\s|$)"
_OF_MODULE = LazyPattern(rf"NVRM: {_MODULE_HAS}")
_REFUSED = Form(
    "NVRM: API mismatch: the client ",
    r".{0,80}?has (?:the )?version (?P<version>[\w.-]{1,40}?)[,.]?(?:\s|$)"
    rf"(?:.{{0,40}}{_MODULE_HAS})?",
)
_FABRIC_REFUSED = Form(
    "nvidia-nvswitch: Version mismatch, kernel version ",
    r"(?P<module>[\w.-]{1,40}) user version (?P<version>[\w.-]{1,40})",
)
_MODULES = r"(?P<module>nvidia(?:_uvm|_modeset|_drm|_peermem|_fs)?|nv_peer_mem|gdrdrv): "
_MODULE_REFUSED: Mapping[Form, ModuleTrouble] = {
    Form("Unknown symbol ib_", r"(?:un)?register_peer_memory_client \(err -?\d", before=_MODULES): "kernel",
    Form("version magic ", "'[^']{1,160}' should be '", before=_MODULES): "kernel",
    Form(".gnu.linkonce.this_module section size must match", before=f"module {_MODULES}"): "kernel",
    Form("disagrees about version of symbol ", r"\w", before=_MODULES): "kernel",
    Form("module using GPL-only symbols uses symbols ", r".{0,80}from proprietary module nvidia\.", before=_MODULES):
        "proprietary",
    Form("Unknown symbol ", r"\w{1,80} \(err -22", before=_MODULES): "kernel",
    Form("Unknown symbol ", r"\w{1,80} \(err -?\d", before=_MODULES): "symbols",
    Form("Loading of ", "(?:unsigned module|module with (?:unavailable key|unsupported crypto)) is rejected"):
        "signature",
    Form(": unsigned module loading is restricted", before="Lockdown: .{1,16}"): "signature",
}  # fmt: skip
"""Why the kernel did not load a module; a refused signature names none."""
_NVLINK = Form("NVRM: ", r"knvlink(?:UpdatePostRxDetectLinkMask|DiscoverPostRxDetLinks)_\w{1,20}: (?:Failed|Getting)")
_FABRIC = Form("NVLink fabric state cached by the driver is out of sync", before="NVRM: [^[]{1,80}")
LOADED = Form("NVRM: loading NVIDIA UNIX")
"""The driver was loaded; its lines about GPUs that did not start come before this line."""
LOADING = Form("nvidia-nvlink: Nvlink Core is being initialized")
"""The first line of the driver while it loads."""
PROBE_FAILED = Form("NVRM: The NVIDIA probe routine failed")
"""``NVRM: The NVIDIA probe routine failed for 1 device(s).``: how a load ends that did not start every GPU."""
_PROBED = Form("nvidia ", rf"{_GPU}: enabling device")
CONTEXT = (
    Form("NVRM: GPU ", context=True),
    Form("NVRM", "[:( ]", context=True),
    Form("nvidia", r"[-\w]{0,32}[:( ]", context=True),
    Form("gdrdrv:", context=True),
)
"""Everything else that the driver logs."""
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
    match = _XID.match(message)
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
    match = _SXID.match(message)
    bdf = _bdf(match)
    if match is None or bdf is None:
        return None
    severity = _FATAL.match(match["text"] or "")
    return bdf, int(match["number"]), None if severity is None else severity["not"] is None


def off_bus(message: str) -> str | None:
    """``NVRM: GPU 0000:06:00.0: GPU has fallen off the bus.``: the bdf."""
    return _bdf(first_match(_OFF, message))


def fallen_serial(message: str) -> tuple[str | None, str] | None:
    """``NVRM: GPU 0000:06:00.0: GPU serial number is 0322716036227.``, after the fall: bdf and board serial number."""
    match = _SERIAL.match(message)
    return None if match is None else (_bdf(match), match["serial"])


def named(message: str) -> tuple[str, int] | None:
    """``NVRM: The NVIDIA GPU 0000:06:00.0 (PCI ID: 10de:26b9)``, continued in the next lines: the bdf and the PCI
    device, 0 where the line has none."""
    match = _NAMED.match(message)
    bdf = _bdf(match)
    return None if match is None or bdf is None else (bdf, int(match["device"] or "0", 16))


def goes_on_not_started(message: str, device: int, after: str) -> NoStart | None:
    """The line after one that names the GPU, and why this driver takes no such GPU; ``after`` is the next line.

    A GPU whose registers read wrongly is taken for an unknown one too, and so is a vGPU by a driver that is not its
    guest's (https://github.com/NVIDIA/aicr/issues/1858, https://github.com/NVIDIA/gpu-operator/issues/1371).
    """
    why = next((why for form, why in _GOES_ON.items() if form.match(message)), None)
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
    return next(((_bdf(match), why) for form, why in _NOT_STARTED.items() if (match := form.match(message))), None)


def unnumbered(message: str) -> tuple[int, int, str] | None:
    """``NVRM: GPU6 _kgspIsHeartbeatTimedOut: Heartbeat timed out, ..``: the driver's number of the GPU, -1 for none,
    and the Xid as which it counts, with the words of one."""
    for form, (number, text) in _UNNUMBERED.items():
        if match := form.match(message):
            said = match.groupdict()
            return int(said.get("gpu") or -1), number or int(said["number"]), text
    return None


def is_news(counts_as: int, logged: AbstractSet[int]) -> bool:
    """Does a line without a number say what none of these Xids says? A reset follows from any error of a GPU."""
    if counts_as != _TO_RESET[0]:
        return logged.isdisjoint((counts_as, 120) if counts_as == _SILENT[0] else (counts_as,))
    newest = from_ampere()
    return not any(
        number in newest and newest[number].severity not in ("application", "information") for number in logged
    )


def nvlink_trouble(message: str) -> Literal["nvlink", "fabric"] | None:
    """``NVRM: knvlinkUpdatePostRxDetectLinkMask_IMPL: Failed to update Rx Detect Link mask!``, or of the fabric."""
    return "nvlink" if _NVLINK.match(message) else "fabric" if _FABRIC.match(message) else None


def module_refused(message: str) -> tuple[str, ModuleTrouble] | None:
    """``nvidia: disagrees about version of symbol module_layout``: the module, empty where none is named, and why."""
    for form, why in _MODULE_REFUSED.items():
        if match := form.match(message):
            return match.groupdict().get("module") or "", why
    return None


def refused(message: str) -> tuple[str, str, bool] | None:
    """``NVRM: API mismatch: the client has the version 550.54.14, but this kernel module ..``: the versions of client
    and module, the latter empty where another line has it, and whether the driver of the NVSwitches says it, whose
    client is Fabric Manager.
    """
    for form, fabric in ((_REFUSED, False), (_FABRIC_REFUSED, True)):
        if match := form.match(message):
            return match["version"], match["module"] or "", fabric
    return None


def module_version(after: Lines) -> str:
    """The version of the loaded module, where the first of these lines goes on with such a message; else empty."""
    match = _OF_MODULE.match(after[0][1]) if after else None
    return "" if match is None else match["module"]


def probed(message: str) -> str | None:
    """``nvidia 0000:06:00.0: enabling device (0140 -> 0142)``: the driver takes over this GPU."""
    return _bdf(_PROBED.match(message))


def _bdf(match: re.Match[str] | None) -> str | None:
    bus = None if match is None else match.groupdict().get("bus")
    return None if bus is None else as_bdf(f"{bus}.0")
