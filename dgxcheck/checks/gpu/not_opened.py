"""A GPU that NVML counts and does not open, or that the driver did not start: the reason that is given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dgxcheck.checks.engine.finding import Judgement, Status, judged, of_gaps
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.ids import NvmlReturn
from dgxcheck.facts.kernel_log import NotStarted
from dgxcheck.facts.missing import Missing
from dgxcheck.lazy_pattern import LazyPattern

CONNECT_POWER = (
    "check the GPU's auxiliary power cables; where one is loose, drain, power off and connect it; if all are connected,"
    " or it is an SXM module, which has none, check the power supplies and the BMC's event log"
)
GIVE_INTERRUPT = (
    "in the firmware setup set Plug & Play OS to no and Assign IRQ to VGA to yes, where it has them; in a virtual"
    " machine the host has to give the GPU INTx or MSI-X"
)
_REASONS: Mapping[int | None, tuple[FaultKind, str, str]] = {
    NvmlReturn.INSUFFICIENT_POWER: (Fault.GPU_UNPOWERED, "its power cables are not properly attached", CONNECT_POWER),
    NvmlReturn.IRQ_ISSUE: (Fault.GPU_REFUSED, "the kernel detected an interrupt problem with it", GIVE_INTERRUPT),
    NvmlReturn.UNKNOWN: (Fault.GPU_LOST, "it opens the others", ""),
}
"""What nvml.h says of the code of nvmlDeviceGetHandleByIndex_v2: a fault of this GPU, and nothing else. Of one GPU
alone an unknown error is that of one that fell off the bus (https://github.com/rwth-i6/returnn/issues/1486)."""
_TO_OPEN = (
    "run nvidia-smi -L as root; check dmesg for NVRM messages about the GPU, and that the driver's library and kernel"
    " module are of one version (cat /proc/driver/nvidia/version)"
)


def not_opened(gap: Missing, is_this: bool = True) -> Judgement:
    """``is_this``: is the answer about this GPU, and not about one of several that NVML does not list?"""
    if is_this and gap.code in _REASONS:
        fault, reason, remedy = _REASONS[gap.code]
        message = f"NVML cannot open it: {reason}; {gap}"
        return judged(fault, message, evidence=of_gaps([gap]), fails=True, remedy=remedy)
    message = f"NVML counts a GPU but cannot open it: {gap}"
    return Judgement(Status.UNKNOWN, message, evidence=of_gaps([gap]), remedy=_TO_OPEN)


_LEGACY = LazyPattern(r"(\d{2,3}\.xx) Legacy drivers")


def legacy_release(events: Iterable[NotStarted]) -> str:
    """What the driver names as the release that supports the GPU, as a clause; empty where it names none."""
    found = next(filter(None, (_LEGACY.search(event.line) for event in events)), None)
    return f", the {found[1]} legacy driver does" if found is not None else ""
