"""Measurements without a figure: what kept them from one, and which check reports it. A fault is reported once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from dgxcheck.checks.driver import fabric_manager
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import remedy_of
from dgxcheck.checks.engine.finding import BAD, WORST_FIRST, Judgement, SkipReason, Status, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.measurement.lookup import ALL, PAIRS, SINGLE, Figures, collect, evidence, label
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.measurement import INTERRUPTED, WITHHELD, Measurement, NotMeasured
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.package_files import table

INTEGRITY = ("memory-integrity", "p2p-integrity")
START = "cuda"
"""The kind that has no figure where CUDA could not be opened, or the measuring was interrupted."""
SYSTEM_NOT_READY = 802
"""``CUDA_ERROR_SYSTEM_NOT_READY``: a daemon that the machine needs does not run; with NVSwitches the fabric manager."""
_NO_FABRIC = "CUDA_ERROR_SYSTEM_NOT_READY; the fabric manager has not initialised the NVSwitch fabric"
_NOT_READY = "CUDA_ERROR_SYSTEM_NOT_READY; a daemon that CUDA needs on this machine does not run"
_ERRORS = {int(row["code"]): row for row in table("checks/measurement/errors.tsv")}
"""By CUresult."""
OUT_OF_MEMORY = 2
_REASONS: Mapping[str, SkipReason] = {reason: reason for reason in get_args(SkipReason)}


def measured_figures(box: Box, check: str) -> Figures | Judgement:
    """All measurements; what a check says of the host where nothing could be measured."""
    rows = box.snapshot.measurement
    if isinstance(rows, Missing):
        return unjudged(rows)
    failed = (row for row in rows if isinstance(row.value, NotMeasured) and row.value.code == SYSTEM_NOT_READY)
    not_ready = next(failed, None)
    if not_ready is not None and fabric_manager.reported(box):
        return skip("dependency-failed", "NVSwitch fabric not initialised: see driver.fabric")
    if not_ready is not None and fabric_manager.needed(box):
        return _by_first_check(check, _NO_FABRIC, not_ready, Fault.FABRIC_MANAGER_DOWN)
    if not_ready is not None:
        return _by_first_check(check, _NOT_READY, not_ready)
    start = next((row for row in rows if row.kind == START and row.number is None), None)
    if start is None or _is_interrupted(start):
        return collect(box)
    value = start.value
    if isinstance(value, NotMeasured) and value.reason != "failed":
        if all(gpu.index is None for gpu in box.topology.gpus):
            return skip(skip_reason(value), str(value), evidence(start))
        remedy = remedy_of("measure.host-bandwidth", "no library")
        return _by_first_check(check, f"nothing was measured: {value}", start, None, remedy)
    return _by_first_check(check, f"CUDA cannot be used: {value}", start)


def _by_first_check(
    check: str, message: str, row: Measurement, fault: FaultKind | None = Fault.NOT_READY, remedy: str = ""
) -> Judgement:
    """Nothing could be measured: the first check fails, or is unknown without a fault, and the others refer to it."""
    first = next(iter(SINGLE))
    if check != first:
        return skip("dependency-failed", f"nothing could be measured: see {first}")
    status = Status.UNKNOWN if fault is None else Status.FAIL
    return Judgement(status, message, evidence=(evidence(row),), fault=fault, remedy=remedy)


def interruption(figures: Figures, check: str) -> Judgement | None:
    """That the measuring was interrupted, which the first check reports; None where it completed."""
    start = figures.get(START, ALL)
    if start is None or not _is_interrupted(start) or check != next(iter(SINGLE)):
        return None
    return Judgement(Status.UNKNOWN, f"measuring {start.value}", evidence=(evidence(start),))


def _is_interrupted(row: Measurement) -> bool:
    return isinstance(row.value, NotMeasured) and row.value.failure == INTERRUPTED


def skip_reason(value: NotMeasured) -> SkipReason:
    """The reason of a skip as the recording has it; ``not-supported`` for one that is not known."""
    return _REASONS.get(value.reason) or "not-supported"


def without_figure(box: Box, row: Measurement) -> Judgement | None:
    """The judgement of a measurement that failed, hung or was not taken; None where there is a figure."""
    value, facts = row.value, evidence(row)
    if isinstance(value, Missing):
        return _failed(f"{label(box, row)}: hung, {value}", row) if value.gap is Gap.TIMEOUT else unjudged(value)
    if not isinstance(value, NotMeasured):
        return None
    if value.reason != "failed":
        return skip(skip_reason(value), f"{label(box, row)}: {value}", facts)
    if is_withheld(value):
        return skip("dependency-failed", "data does not arrive intact: see measure.p2p-integrity", facts)
    known = _ERRORS.get(value.code or 0, {"words": "", "reason": ""})
    if reason := _REASONS[known["reason"]]:
        return skip(reason, f"{label(box, row)}: {value}", facts)
    error = f"failed with {known['words']} ({value})" if known["words"] else f"failed: {value}"
    return _failed(f"{label(box, row)}: {error}", row)


def no_figure(box: Box, row: Measurement) -> Judgement | None:
    """The same for a kind whose measurements all have figures: one without is not recorded."""
    failure = without_figure(box, row)
    if failure is not None or row.number is not None:
        return failure
    return skip("not-recorded", f"{label(box, row)}: no figure", evidence(row))


def _failed(message: str, row: Measurement) -> Judgement:
    return Judgement(Status.FAIL, message, evidence=(evidence(row),), fault=Fault.MEASUREMENT_FAILED)


def worst(judgements: Sequence[Judgement]) -> Judgement:
    """The worst of several, the first among equals."""
    return min(judgements, key=lambda judgement: WORST_FIRST.index(judgement.status))


def unless_reported(figures: Figures, check: str, judgement: Judgement, a: str, b: str = "") -> Judgement:
    """A bad judgement, or a skip where an earlier check reports the GPU or pair as failed."""
    reporter = _reporter(figures, check, a, b) if judgement.status in BAD else None
    return judgement if reporter is None else skip("dependency-failed", f"see {reporter}", *judgement.evidence)


def _reporter(figures: Figures, check: str, a: str, b: str) -> str | None:
    each_gpu = [(end, "") for end in (a, b) if end]
    for ends, checks in ((each_gpu, SINGLE), ([(a, b), (b, a)], PAIRS)):
        for id, kinds in checks.items():
            if id == check:
                return None
            if any(has_failed(figures.get(kind, *of)) for of in ends for kind in kinds):
                return id
    return None


def has_failed(row: Measurement | None) -> bool:
    """Did the measurement hang, fail for good, or find wrong data?"""
    if row is None:
        return False
    value = row.value
    if isinstance(value, Missing):
        return value.gap is Gap.TIMEOUT
    if isinstance(value, NotMeasured):
        return value.reason == "failed" and not (is_withheld(value) or _is_unavailable(value))
    return row.kind in INTEGRITY and (bool(row.number) or row.more.get("timed_out") is True)


def _is_unavailable(value: NotMeasured) -> bool:
    """Does CUDA's code say that nothing is wrong with the GPU itself, as where another process has it?"""
    return bool(_ERRORS.get(value.code or 0, {"reason": ""})["reason"])


def is_withheld(value: NotMeasured) -> bool:
    """Is there a figure that is not published, because the data arrived wrong?"""
    return value.failure == WITHHELD
