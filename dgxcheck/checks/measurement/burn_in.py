"""Results of a burn-in: of each GPU that was loaded, and of the run as a whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import remedy_of
from dgxcheck.checks.engine.expected import siblings
from dgxcheck.checks.engine.finding import BAD, Evidence, Judged, Judgement, Status, counted, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import duration
from dgxcheck.checks.gpu.clocks import HELD_BACK
from dgxcheck.checks.measurement.failures import skip_reason
from dgxcheck.checks.measurement.lookup import ALL, gpu_name, number
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.measurement import Measurement, NotMeasured
from dgxcheck.facts.missing import Gap, Missing, members_of, rows
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import median
from dgxcheck.topology.model import Device

KIND = "burn-in"
_FEWEST_SIBLINGS = 2
"""With fewer there is no clock to compare with."""
_FEWEST_SAMPLES = 3
"""Seconds of slowdown that are more than the moment in which clocks change."""
_WITH_HOST = ("host-to-device", "device-to-host")
"""They share the host's memory with all that runs there: in an idle virtual machine with an H100 nvbandwidth measures
38 to 49 GB/s for one way of both, minutes apart."""
_SLOWDOWN_REASONS = ("near-slowdown", "slowdown")
_STOPS = {
    "memory-error": Fault.ECC_UNCORRECTED, "off-bus": Fault.GPU_LOST, "vanished": Fault.GPU_LOST,
    "near-slowdown": Fault.OVERHEATING, "slowdown": Fault.HARDWARE_SLOWDOWN,
}  # fmt: skip
"""The fault of the GPU for which a burn-in stopped by itself."""


class Problem(Record, kw_only=False):
    """One thing that is wrong with a GPU under load."""

    status: Status
    fault: FaultKind
    text: str
    remedy: str = ""
    """Empty where the check's own remedy holds."""


def judge_burn_in(box: Box) -> Judged:
    """No finding without a burn-in, which is made on request only."""
    by_gpu = {row.a: row for row in rows(box.snapshot.measurement) if row.kind == KIND}
    run = by_gpu.get(ALL)
    if run is None:
        return
    if isinstance(run.value, int | float):
        yield from ((box.subject(gpu), _judge_gpu(box, gpu, by_gpu, run)) for gpu in box.gpus)
    yield HOST, _judge_run(box, run)


def _judge_run(box: Box, run: Measurement) -> Judgement:
    if not isinstance(run.value, int | float):
        return _not_measured(run)
    stopped, detail = run.more.get("stopped"), str(run.more.get("detail"))
    evidence = (_evidence(run, stopped),)
    asked = number(run.more.get("asked"))
    message = f"{duration(run.value)} of {duration(asked or 0.0)} under load"
    if stopped is None:
        return Judgement(Status.PASS, message, run.value, asked, "s", evidence)
    blamed = run.more.get("gpu")
    if (name := next((gpu.name for gpu in box.gpus if blamed is not None and gpu.bdf == blamed), None)) is not None:
        return skip("dependency-failed", f"{message}, stopped by dgxcheck because of {name}", *evidence)
    if stopped == "no-load":
        return skip("dependency-failed", detail, *evidence)
    status, fault = (Status.UNKNOWN, None) if blamed is None else (Status.FAIL, Fault.BURN_IN)
    return Judgement(status, f"{message}, then stopped: {detail}", run.value, None, "s", evidence, fault=fault)


def _judge_gpu(box: Box, gpu: Device, by_gpu: Mapping[str, Measurement], run: Measurement) -> Judgement:
    row = by_gpu.get(str(gpu.bdf))
    stopped = run.more.get("stopped")
    if gpu.bdf is not None and run.more.get("gpu") == gpu.bdf:
        message = f"load stopped after {duration(number(run.value) or 0.0)}: {run.more.get('detail')}"
        remedy = remedy_of("measure.burn-in", "slowed") if stopped in _SLOWDOWN_REASONS else ""
        fault = _STOPS.get(str(stopped), Fault.BURN_IN)
        return Judgement(Status.FAIL, message, evidence=(_evidence(row or run, stopped),), remedy=remedy, fault=fault)
    if row is None:
        return skip("not-visible", "not loaded")
    if row.number is None:
        return _not_measured(row)
    problems = sorted(_problems(box, gpu, row, by_gpu), key=lambda problem: BAD.index(problem.status))
    evidence = (_evidence(row, dict(row.more)),)
    if problems:
        worst = problems[0]
        message = "; ".join(problem.text for problem in problems)
        return Judgement(worst.status, message, number(row.more.get("wrong")), evidence=evidence,
                         remedy=worst.remedy, fault=worst.fault)  # fmt: skip
    if not row.more.get("cycles"):
        if stopped is not None:
            return skip("dependency-failed", "stopped before its first cycle of load ended", *evidence)
        return Judgement(Status.UNKNOWN, "no cycle of load ended", evidence=evidence)
    return Judgement(Status.PASS, _summary(row), 0, 0, "wrong words", evidence)


def _problems(box: Box, gpu: Device, row: Measurement, by_gpu: Mapping[str, Measurement]) -> Iterator[Problem]:
    """All that is wrong with one GPU under load."""
    more = row.more
    yield from _wrong_data(box, row, by_gpu)
    if (errors := number(more.get("dbe"))) is not None and errors > 0:
        message = f"{counted(int(errors), 'uncorrected memory error')} under load"
        yield Problem(Status.FAIL, Fault.ECC_UNCORRECTED, message)
    yield from _broken_load(box, row, by_gpu)
    yield from _held_back(box, more)
    yield from _bandwidth_drift(box, more)
    yield from _low_clock(box, gpu, row, by_gpu)


def _wrong_data(box: Box, row: Measurement, by_gpu: Mapping[str, Measurement]) -> Iterator[Problem]:
    """Wrong words; those in the memory of a peer that has wrong words by itself are the peer's."""
    by_turn = _wrong_words(row)
    peer = by_gpu.get(str(row.more.get("peer")))
    if peer is not None and "memory" in _wrong_words(peer):
        by_turn.pop("peer", None)
    if not by_turn:
        return
    turns = [f"{turn} ({_peer_name(box, row)})" if turn == "peer" else turn for turn in by_turn]
    message = f"{counted(int(sum(by_turn.values())), 'wrong word')} under load, in turn {' and '.join(turns)}"
    remedy = remedy_of("measure.burn-in", "links") if [*by_turn] == ["peer"] else ""
    yield Problem(Status.FAIL, Fault.WRONG_DATA, message, remedy)


def _wrong_words(row: Measurement) -> dict[str, float]:
    """Wrong words by turn of the load."""
    counts = {turn: number(count) or 0.0 for turn, count in members_of(row.more.get("wrong_in")).items()}
    positive = {turn: count for turn, count in counts.items() if count > 0}
    rest = (number(row.more.get("wrong")) or 0.0) - sum(positive.values())
    return positive | ({"memory": rest} if rest > 0 else {})


def _peer_name(box: Box, row: Measurement) -> str:
    return f"with {gpu_name(box, str(row.more.get('peer')))}"


def _broken_load(box: Box, row: Measurement, by_gpu: Mapping[str, Measurement]) -> Iterator[Problem]:
    """A load that ended early; one that ended in the traffic with a GPU that failed by itself is that GPU's fault."""
    more = row.more
    peer = by_gpu.get(str(more.get("peer")))
    peer_failed = peer is not None and (peer.number is None or bool(peer.more.get("ended")))
    if more.get("ended") and not (peer_failed and more.get("turn_ended") == "peer"):
        yield Problem(Status.FAIL, Fault.BURN_IN, f"load ended: {more['ended']}")
    if more.get("with_peer") and not peer_failed:
        message = f"traffic {_peer_name(box, row)} ended: {more['with_peer']}"
        yield Problem(Status.FAIL, Fault.BURN_IN, message, remedy_of("measure.burn-in", "links"))


def _held_back(box: Box, more: Mapping[str, Any]) -> Iterator[Problem]:
    """Clocks held down for too much of the time, by the first reason alone: 0x8 is set along with the others."""
    shares = members_of(more.get("throttled"))
    warn, fail = (box.settings.limit(f"measure.slowdown-{word}") for word in ("warn", "fail"))
    samples = number(more.get("looks"))
    for name, fault in HELD_BACK.values():
        percent = 100 * (number(shares.get(name)) or 0.0)
        if percent > warn and (samples is None or percent * samples / 100 >= _FEWEST_SAMPLES):
            status = Status.FAIL if percent > fail and not name.startswith("software") else Status.WARN
            yield Problem(status, fault, f"{name} {percent:.3g} % of the time", remedy_of("measure.burn-in", "slowed"))
            return


def _bandwidth_drift(box: Box, more: Mapping[str, Any]) -> Iterator[Problem]:
    """Rates at the end against those at the beginning, in GB/s; those of the host as one, for both ways run at once and
    take from each other.
    """
    ends = {
        kind: (first, last) for kind, both in members_of(more.get("drift")).items()
        if kind != "compute" and isinstance(both, list) and len(both) == 2
        and (first := number(both[0])) is not None and (last := number(both[1])) is not None
    }  # fmt: skip
    host = [ends.pop(kind) for kind in _WITH_HOST if kind in ends]
    with_host = {"host": (sum(first for first, _ in host), sum(last for _, last in host))} if host else {}
    for limit, rates in (("measure.drift", ends), ("measure.runs", with_host)):
        for kind, (first, last) in rates.items():
            if first > 0 and 100 * (1 - last / first) > box.settings.limit(limit):
                message = f"{kind} bandwidth fell from {first:g} to {last:g} GB/s under load"
                yield Problem(Status.WARN, Fault.SLOW, message, remedy_of("measure.burn-in", "links"))


def _low_clock(box: Box, gpu: Device, row: Measurement, by_gpu: Mapping[str, Measurement]) -> Iterator[Problem]:
    own = _median_clock(row)
    others = [by_gpu[str(other.bdf)] for other in siblings(box, gpu) if str(other.bdf) in by_gpu]
    clocks = [clock for clock in map(_median_clock, others) if clock is not None]
    if own is None or len(clocks) < _FEWEST_SIBLINGS:
        return
    usual = median(clocks)
    if own < usual * (1 - box.settings.limit("measure.clock") / 100):
        message = f"SM clock {own:g} MHz under load, median for this model {usual:g} MHz"
        yield Problem(Status.WARN, Fault.SLOW, message, remedy_of("measure.burn-in", "slowed"))


def _median_clock(row: Measurement) -> float | None:
    """MHz"""
    return number(members_of(row.more.get("sm_clock")).get("median"))


def _summary(row: Measurement) -> str:
    more = row.more
    clock, celsius, watts = _median_clock(row), number(more.get("temperature_max")), number(more.get("power_max"))
    cycles = more.get("cycles")
    parts = [
        f"{duration(row.number or 0.0)} under load, no wrong words in {cycles} cycle{'' if cycles == 1 else 's'}",
        f"at most {celsius:g} °C" if celsius is not None else "",
        f"{watts:.0f} W" if watts is not None else "",
        f"SM clock {clock:g} MHz" if clock is not None else "",
    ]
    return ", ".join(filter(None, parts))


def _not_measured(row: Measurement) -> Judgement:
    value = row.value
    if isinstance(value, Missing):
        if value.gap is not Gap.TIMEOUT:
            return unjudged(value)
        return Judgement(Status.FAIL, str(value), evidence=(_evidence(row, value.reason),), fault=Fault.BURN_IN)
    if isinstance(value, NotMeasured):
        evidence = _evidence(row, str(value))
        if value.reason == "failed":
            return Judgement(Status.FAIL, str(value), value.code, evidence=(evidence,), fault=Fault.BURN_IN)
        return skip(skip_reason(value), str(value), evidence)
    return skip("not-recorded", "no result of the burn-in")


def _evidence(row: Measurement, value: Any) -> Evidence:
    return Evidence(f"measure {KIND} {row.a}", value)
