"""What a burn-in showed: of each GPU that was loaded, and of the run as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any, get_args

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, SkipReason, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import duration
from dgxcheck.checks.engine.siblings import siblings
from dgxcheck.facts.measurement import Measurement, Untaken
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Device

KIND, ALL = "burn-in", "all"
HELD_BACK = ("power brake", "hardware thermal slowdown", "hardware slowdown", "software thermal slowdown")
HARDWARE = HELD_BACK[:3]
_FEWEST = 2
"""Siblings without which there is no clock to compare with."""
_WORST = (Status.FAIL, Status.UNKNOWN, Status.WARN)
_REASONS: Mapping[str, SkipReason] = {reason: reason for reason in get_args(SkipReason)}
FEWEST_LOOKS = 3
"""Seconds of slowdown that are more than the moment in which clocks change."""
HEAT = "look at airflow, cooling and power supplies, and compare with the neighbours"
LINK = "look at the PCIe and NVLink checks for retrained links; reseat the GPU, then burn in again"
Said = tuple[Status, str, str]
"""With what to do; empty where the check's own remedy holds."""


def _burn_in(box: Box) -> Iterator[tuple[Subject, Judgement]]:
    """Nothing where no burn-in was made: it is asked for by itself."""
    rows = box.snapshot.measurement
    known = {} if isinstance(rows, Missing) else {row.a: row for row in rows if row.kind == KIND}
    whole = known.get(ALL)
    if whole is None:
        return
    if isinstance(whole.value, int | float):
        for gpu in box.gpus:
            yield box.subject(gpu), _of_gpu(box, gpu, known, whole)
    yield HOST, _of_run(box, whole)


def _of_run(box: Box, whole: Measurement) -> Judgement:
    if not isinstance(whole.value, int | float):
        return _untaken(whole)
    stopped, detail = whole.more.get("stopped"), str(whole.more.get("detail"))
    evidence = (_evidence(whole, stopped),)
    ran = f"{duration(whole.value)} of {duration(_number(whole.more.get('asked')) or 0.0)} under load"
    if stopped is None:
        return Judgement(Status.PASS, ran, whole.value, _number(whole.more.get("asked")), "s", evidence)
    blamed = whole.more.get("gpu")
    if blamed is not None and any(gpu.bdf == blamed for gpu in box.gpus):
        name = next(gpu.name for gpu in box.gpus if gpu.bdf == blamed)
        return skip("dependency-failed", f"{ran}, then stopped by itself for {name}", *evidence)
    if stopped == "no-load":
        return skip("dependency-failed", detail, *evidence)
    status = Status.FAIL if blamed is not None else Status.UNKNOWN
    return Judgement(status, f"{ran}, then stopped: {detail}", whole.value, None, "s", evidence)


def _of_gpu(box: Box, gpu: Device, known: Mapping[str, Measurement], whole: Measurement) -> Judgement:
    row = known.get(str(gpu.bdf))
    if gpu.bdf is not None and whole.more.get("gpu") == gpu.bdf:
        text = f"the load was stopped after {duration(_number(whole.value) or 0.0)}: {whole.more.get('detail')}"
        stopped = whole.more.get("stopped")
        remedy = HEAT if stopped in ("near-slowdown", "slowdown") else ""
        return Judgement(Status.FAIL, text, evidence=(_evidence(row or whole, stopped),), remedy=remedy)
    if row is None:
        return skip("not-visible", "it was not loaded")
    if row.number is None:
        return _untaken(row)
    said = sorted(_said(box, gpu, row, known), key=lambda each: _WORST.index(each[0]))
    evidence = (_evidence(row, dict(row.more)),)
    if said:
        return Judgement(said[0][0], "; ".join(text for _, text, _ in said), _number(row.more.get("wrong")),
                         evidence=evidence, remedy=said[0][2])  # fmt: skip
    if not row.more.get("cycles"):
        if whole.more.get("stopped") is not None:
            return skip("dependency-failed", "stopped before its first cycle of load was through", *evidence)
        return Judgement(Status.UNKNOWN, "not one cycle of load was through", evidence=evidence)
    return Judgement(Status.PASS, _calm(row), 0, 0, "wrong words", evidence)


def _said(box: Box, gpu: Device, row: Measurement, known: Mapping[str, Measurement]) -> Iterator[Said]:
    """All that is wrong with one GPU under load."""
    more = row.more
    yield from _wrong(row, known)
    if (dbe := _number(more.get("dbe"))) is not None and dbe > 0:
        yield Status.FAIL, f"uncorrected memory errors under load: {dbe:.0f}", ""
    yield from _broken(row, known)
    yield from _held(box, more)
    yield from _drift(box, more)
    yield from _clock(box, gpu, row, known)


def _wrong(row: Measurement, known: Mapping[str, Measurement]) -> Iterator[Said]:
    """Wrong words; those in the memory of a neighbour that gives wrong words by itself are that one's."""
    by = _words(row)
    peer = known.get(str(row.more.get("peer")))
    if peer is not None and "memory" in _words(peer):
        by.pop("peer", None)
    if not by:
        return
    with_peer = f" (with {row.more.get('peer')})" if "peer" in by else ""
    text = f"wrong words under load: {sum(by.values()):.0f}, in turn {' and '.join(by)}{with_peer}"
    yield Status.FAIL, text, LINK if [*by] == ["peer"] else ""


def _words(row: Measurement) -> dict[str, float]:
    """Wrong words by turn."""
    by = row.more.get("wrong_in")
    counts = {name: _number(each) or 0.0 for name, each in by.items()} if isinstance(by, dict) else {}
    found = {name: count for name, count in counts.items() if count > 0}
    rest = (_number(row.more.get("wrong")) or 0.0) - sum(found.values())
    return found | ({"memory": rest} if rest > 0 else {})


def _broken(row: Measurement, known: Mapping[str, Measurement]) -> Iterator[Said]:
    """A load that ended; one that ended in the traffic with a GPU that broke down by itself is that one's."""
    more = row.more
    peer = known.get(str(more.get("peer")))
    of_peer = peer is not None and (peer.number is None or bool(peer.more.get("ended")))
    if more.get("ended") and not (of_peer and more.get("turn_ended") == "peer"):
        yield Status.FAIL, f"its load ended: {more['ended']}", ""
    if more.get("with_peer") and not of_peer:
        yield Status.FAIL, f"the traffic with {more.get('peer')} ended: {more['with_peer']}", LINK


def _held(box: Box, more: Mapping[str, Any]) -> Iterator[Said]:
    shares = more.get("throttled")
    warn, fail = (box.settings.limit(f"measure.slowdown-{word}") for word in ("warn", "fail"))
    for name in HELD_BACK:
        share = 100 * (_number(shares.get(name)) or 0.0) if isinstance(shares, dict) else 0.0
        looks = _number(more.get("looks"))
        if share > warn and (looks is None or share * looks / 100 >= FEWEST_LOOKS):
            status = Status.FAIL if share > fail and name in HARDWARE else Status.WARN
            yield status, f"{name} for {share:.3g} % of the time", HEAT
            return  # 0x8 is set along with the others


def _drift(box: Box, more: Mapping[str, Any]) -> Iterator[Said]:
    drifts = more.get("drift")
    for kind, both in drifts.items() if isinstance(drifts, dict) else ():
        begun, ended = (_number(each) for each in both) if isinstance(both, list) and len(both) == 2 else (None, None)
        if kind == "compute" or begun is None or ended is None or begun <= 0:
            continue
        lost = 100 * (1 - ended / begun)
        if lost > box.settings.limit("measure.drift"):
            yield Status.WARN, f"{kind} {begun:g} GB/s at the beginning, {ended:g} at the end", LINK


def _clock(box: Box, gpu: Device, row: Measurement, known: Mapping[str, Measurement]) -> Iterator[Said]:
    own = _usual(row)
    others = [known[str(other.bdf)] for other in siblings(box, gpu) if str(other.bdf) in known]
    clocks = [clock for clock in map(_usual, others) if clock is not None]
    if own is None or len(clocks) < _FEWEST:
        return
    usual = median(clocks)
    if own < usual * (1 - box.settings.limit("measure.clock") / 100):
        yield Status.WARN, f"SM clock {own:g} MHz, its siblings' {usual:g} MHz", HEAT


def _usual(row: Measurement) -> float | None:
    clocks = row.more.get("sm_clock")
    return _number(clocks.get("median")) if isinstance(clocks, dict) else None


def _calm(row: Measurement) -> str:
    more = row.more
    clock = _usual(row)
    parts = [
        f"{duration(row.number or 0.0)} of load: no wrong word in {more.get('cycles')} cycles",
        f"at most {more['temperature_max']:g} C" if _number(more.get("temperature_max")) is not None else "",
        f"{more['power_max']:.0f} W" if _number(more.get("power_max")) is not None else "",
        f"SM clock {clock:g} MHz" if clock is not None else "",
    ]
    return ", ".join(filter(None, parts))


def _untaken(row: Measurement) -> Judgement:
    if isinstance(row.value, Missing):
        if row.value.gap.value == "timeout":
            return Judgement(Status.FAIL, str(row.value), evidence=(_evidence(row, row.value.reason),))
        return unjudged(row.value)
    if isinstance(row.value, Untaken):
        evidence = _evidence(row, row.value.detail)
        if row.value.reason == "failed":
            return Judgement(Status.FAIL, row.value.detail, row.value.code, evidence=(evidence,))
        return skip(_REASONS.get(row.value.reason, "not-supported"), row.value.detail, evidence)
    return skip("not-recorded", "the burn-in says nothing of it")


def _evidence(row: Measurement, value: Any) -> Evidence:
    return Evidence(f"measure {KIND} {row.a}", value)


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


CHECKS = (
    Check(
        id="measure.burn-in",
        rule="Judges a burn-in (--duration), and says nothing without one. Fails on wrong words, on uncorrected memory"
        " errors, where the load of a GPU hung or broke down, where the burn-in stopped by itself for a GPU, and where"
        " the hardware held clocks down for more than {measure.slowdown-fail} of the samples; warns above"
        " {measure.slowdown-warn}, also for software thermal slowdown, where a bandwidth fell by more than"
        " {measure.drift} from the first fifth of the time to the last, and where the median SM clock is more than"
        " {measure.clock} below that of the GPU's siblings. Unknown where it was interrupted.",
        source="dgxcheck's own load; NVML once a second",
        remedy="stop its jobs, reset the GPU and burn in again; have it replaced if it fails again",
        judge=_burn_in,
    ),
)
