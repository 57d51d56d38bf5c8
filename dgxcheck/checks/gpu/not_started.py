"""Why the driver or NVML did not start or open a GPU: what they say, the fault, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from dgxcheck.checks.engine.check import remedy_of
from dgxcheck.checks.engine.finding import Judgement, Status, judged, of_gaps
from dgxcheck.facts.faults import BY_WORD
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.ids import NvmlReturn
from dgxcheck.facts.kernel_log import NotStarted
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.package_files import table


class NotStartedReason(Record, kw_only=False):
    """Why the driver could not start a GPU, and what to do about it."""

    why: str
    """``NoStart``, or what else is known of the GPU."""
    fault: FaultKind
    text: str
    remedy: str


@cache
def _not_started() -> Mapping[str, NotStartedReason]:
    return {row["why"]: NotStartedReason(row["why"], BY_WORD[row["fault"]], row["text"], row["remedy"])
            for row in table("checks/gpu/not_started.tsv")}  # fmt: skip


def not_started(*whys: str) -> NotStartedReason:
    """The most particular of these reasons; one without a text where the driver says nothing of it."""
    return next((reason for why, reason in _not_started().items() if why in whys), _not_started()[""])


_OF_CODE: Mapping[int | None, tuple[str, str]] = {
    NvmlReturn.INSUFFICIENT_POWER: ("power", "its power cables are not properly attached"),
    NvmlReturn.IRQ_ISSUE: ("interrupt", "the kernel detected an interrupt problem with it"),
    NvmlReturn.UNKNOWN: ("off-bus", "it opens the others"),
}
"""What nvml.h says of the code of nvmlDeviceGetHandleByIndex_v2: a fault of this GPU, and nothing else. Of one GPU
alone an unknown error is that of one that fell off the bus (https://github.com/rwth-i6/returnn/issues/1486)."""


def not_opened(gap: Missing, is_this: bool = True) -> Judgement:
    """``is_this``: is the answer about this GPU, and not about one of several that NVML does not list?"""
    if is_this and gap.code in _OF_CODE:
        why, text = _OF_CODE[gap.code]
        message, reason = f"NVML cannot open it: {text}; {gap}", not_started(why)
        return judged(reason.fault, message, evidence=of_gaps([gap]), fails=True, remedy=reason.remedy)
    message = f"NVML counts a GPU but cannot open it: {gap}"
    return Judgement(Status.UNKNOWN, message, evidence=of_gaps([gap]), remedy=remedy_of("gpu.lost", "not opened"))


_LEGACY = LazyPattern(r"(\d{2,3}\.xx) Legacy drivers")


def legacy_release(events: Iterable[NotStarted]) -> str:
    """What the driver names as the release that supports the GPU, as a clause; empty where it names none."""
    found = next(filter(None, (_LEGACY.search(event.line) for event in events)), None)
    return f", the {found[1]} legacy driver does" if found is not None else ""
