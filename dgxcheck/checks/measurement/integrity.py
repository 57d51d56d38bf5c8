"""Does data arrive intact? In each GPU's memory, and from each GPU in the memory of each other."""

from __future__ import annotations

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import remedy_of, ruled
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, counted, extended, given, judged, skip, unless
from dgxcheck.checks.measurement.failures import measured_figures, no_figure, unless_reported
from dgxcheck.checks.measurement.host_copies import combined, per_gpu
from dgxcheck.checks.measurement.lookup import (
    ALL,
    Figures,
    device,
    evidence,
    gpu_name,
    link_between,
    number,
    pair_subject,
    pairs,
)
from dgxcheck.checks.peer_access.cuda import blocker
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import MIB
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.record import replace

_METHODS = {"ce": "copy engine", "sm": "stores of a kernel", "ping-pong": "two kernels that wait for each other"}


def judge_integrity(box: Box, figures: Figures, row: Measurement) -> Judgement:
    """Patterns in a GPU's memory, or data from one GPU in the memory of another, read back by the owner."""
    unless(no_figure(box, row))
    wrong = row.number or 0
    route = _route(box, row)
    checked = _checked(row)
    timed_out = not wrong and row.more.get("timed_out") is True
    in_all = checked and f" {'after' if timed_out else 'in'} {checked}"
    result = f"{counted(int(wrong), 'wrong word')}{in_all}{_methods(row)}{_first(row)}"
    if not wrong:
        result = f"{'handshake of two kernels timed out' if timed_out else 'no wrong words'}{in_all}"
    bad = bool(wrong) or timed_out
    measured = wrong if bad else 0
    return judged(Fault.WRONG_DATA, f"{route}{result}", measured, 0, "words", (evidence(row),), fails=bad)


def _route(box: Box, row: Measurement) -> str:
    """``GPU0 to GPU1: ``; empty for one GPU, which the finding names."""
    if row.b:
        return f"{gpu_name(box, row.a)} to {gpu_name(box, row.b)}: "
    return f"{gpu_name(box, ALL)}: " if row.a == ALL else ""


def _methods(row: Measurement) -> str:
    """The ways of copying by which words arrived wrong."""
    by = row.more.get("by")
    if not isinstance(by, dict):
        return ""
    bad = [f"{count} by {_METHODS.get(method, method)}" for method, count in by.items() if number(count)]
    return f" ({', '.join(bad)})" if bad else ""


def _first(row: Measurement) -> str:
    first = row.more.get("first")
    return f", first at byte {first}" if type(first) is int else ""


def _checked(row: Measurement) -> str:
    """``64 MiB``; empty where it is not known."""
    checked = number(row.more.get("checked")) or 0
    return f"{checked / MIB:g} MiB" if 0 < checked < 1 << 60 else ""


def judge_memory(box: Box) -> Judged:
    """The memory of each GPU."""
    rules = {"memory-integrity": judge_integrity}
    yield from per_gpu(box, "measure.memory-integrity", rules, "no GPU memory was tested with patterns")


def judge_p2p(box: Box) -> Judged:
    """The data between each pair of GPUs."""
    id = "measure.p2p-integrity"
    figures = given(measured_figures(box, id))
    tried = pairs(box, figures, ("p2p-integrity",))
    unnamed = figures.get("p2p-integrity", ALL)
    if unnamed is not None:  # nvbandwidth stops at the first wrong pattern and does not say between which GPUs
        yield HOST, ruled(judge_integrity, box, figures, unnamed)
    for a, b in tried:
        rows = figures.each_way("p2p-integrity", a, b)
        judgement = combined(box, [(row, ruled(judge_integrity, box, figures, row)) for row in rows])
        if judgement.status is Status.PASS and len(rows) > 1:
            checked = _checked(rows[0])
            judgement = replace(judgement, message=f"no wrong words either way{checked and f' in {checked}'}")
        yield pair_subject(box, a, b), unless_reported(figures, id, _with_blocker(box, judgement, a, b), a, b)
    if not tried and unnamed is None:
        yield HOST, skip("not-recorded", "no data between GPUs was checked")


def _with_blocker(box: Box, judgement: Judgement, a: str, b: str) -> Judgement:
    """With the remedy for what joins the pair; over PCIe with the setting that blocks peer access."""
    one, other, link = device(box, a), device(box, b), link_between(box, a, b)
    if judgement.status is not Status.FAIL or one is None or other is None or link is None:
        return judgement
    if link.nvlinks:
        return replace(judgement, remedy=remedy_of("measure.p2p-integrity", "over NVLink"))
    blocking = blocker(box, one, other)
    remedy = remedy_of("measure.p2p-integrity", "blocked" if blocking.setting else "over PCIe").format(blocking.remedy)
    blocked = f"; blocked by {blocking.setting}" if blocking.setting else ""
    return replace(extended(judgement, blocked), remedy=remedy)
