"""``dgxcheck health --duration``: all GPUs under load for a time, and what the checks say of the counters meanwhile."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from typing import Any

from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.finding import Judgement, Status, skip
from dgxcheck.checks.engine.growth import duration
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.cli.interrupt import interruptible
from dgxcheck.cli.terminal.progress import Told, countdown
from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.facts.record import Record, replace
from dgxcheck.measure import plan
from dgxcheck.measure.burn_in import plan as burn_in_plan
from dgxcheck.measure.burn_in.events import Event
from dgxcheck.measure.burn_in.polling import Round, Rounds
from dgxcheck.measure.burn_in.run import BurnIn
from dgxcheck.measure.burn_in.stop_rules import limits
from dgxcheck.source.debug_log import DebugLog
from dgxcheck.source.protocol import Source
from dgxcheck.survey import COUNTERS, Snapshot, survey

_BAD = (Status.WARN, Status.UNKNOWN, Status.FAIL)
"""Mildest first."""
OWN = "measure."


class Asking(Record):
    """What a burn-in is asked for beside its time."""

    seconds: float
    test_seconds: float
    root: str
    log: DebugLog | None


class Burned(Record):
    """What came of it."""

    facts: dict[str, Json]
    growth: Growth | Judgement
    kernel_log: KernelLog | Missing


def burned(found: Box, source: Source, asking: Asking, left_out: Mapping[str, Json]) -> Burned:
    """Burn in; ``left_out`` are GPUs that are not loaded, with the facts that stand for it."""
    gc.enable()  # a run is short but for this one
    facts = found.snapshot
    before = survey(source, COUNTERS)
    gpus = [gpu for gpu in found.gpus if gpu.bdf not in left_out]
    rounds = Rounds(lambda: survey(source, ("kernel_log",)).kernel_log, lambda: _counters(source))
    with countdown(asking.seconds) as told:
        burn = BurnIn(
            burn_in_plan.loads(found.topology, gpus, facts.gpu_modes), asking.seconds, asking.test_seconds,
            limits(facts.gpu_thermal), rounds, survey(source, ("kernel_log",)).kernel_log,
            Follower(found, before, asking.log, told),
            burn_in_plan.files(asking.root, facts.aer),
        )  # fmt: skip
        with interruptible(burn.interrupt):
            seen = burn.run()
    return Burned(
        facts=seen | {f"measure burn-in {bdf}": why for bdf, why in left_out.items()},
        growth=_growth(before, burn.last) or skip("no-history", "the counters were not read again"),
        kernel_log=burn.log,
    )


def refused(found: Box, measured: Mapping[str, Json]) -> dict[str, Json]:
    """GPUs that are not loaded: as they are set up, or because a measurement of them never ended."""
    broken: dict[str, Json] = {}
    for gpu in found.gpus:
        for kind in plan.OF_ONE:
            fact = measured.get(f"measure {kind} {gpu.bdf}")
            if isinstance(fact, dict) and gpu.bdf and (fact.get("missing") == "timeout" or fact.get("sticky")):
                broken[gpu.bdf] = {"skipped": "dependency-failed", "detail": f"not loaded after measure {kind}"}
    return broken | plan.refused(found.gpus, found.snapshot)


def interrupted(seconds: float) -> dict[str, Json]:
    """What stands for a burn-in that it never came to."""
    return {"measure burn-in all": {"value": 0, "unit": "s", "asked": seconds, "stopped": "interrupted", "gpu": None,
                                    "detail": "interrupted before it began", "events": []}}  # fmt: skip


class Follower:
    """Writes the log, moves the display, and lets the checks look at every reading."""

    def __init__(self, found: Box, before: Snapshot, log: DebugLog | None, told: Told) -> None:
        self._found, self._before, self._log, self._told = found, before, log, told
        self._checks = [check for check in CHECKS if not check.id.startswith(OWN)]
        self._known = {finding.key for finding in run(found, self._checks) if finding.status in _BAD}
        self._worst: tuple[int, str] = (-1, "")

    def sample(self, at: float, sample: Mapping[str, Any]) -> None:
        self._write(at, {"event": "sample", "gpus": sample["gpus"]})

    def event(self, at: float, event: Event) -> None:
        self._write(at, event)
        status = event.get("status")
        rank = next((rank for rank, each in enumerate(_BAD) if each.value == status), -1)
        if rank > self._worst[0]:
            self._worst = rank, f"{status}: {' '.join(filter(None, (self._name(event), str(event['text']))))}"

    def moment(self, elapsed: float, step: str) -> None:
        self._told(elapsed, step, self._worst[1])

    def judged(self, read: Round) -> Sequence[Event]:
        growth = _growth(self._before, read)
        if growth is None:
            return []
        facts = self._found.snapshot
        log = facts.kernel_log if isinstance(read.log, Missing) else read.log
        box = replace(self._found, growth=growth, snapshot=replace(facts, kernel_log=log))
        new = [each for each in run(box, self._checks) if each.status in _BAD and each.key not in self._known]
        self._known |= {finding.key for finding in new}
        return [
            {"event": "finding", "gpu": each.subject.bdf, "text": f"{each.id}: {each.judgement.message}",
             "status": each.status.value} for each in new
        ]  # fmt: skip

    def _name(self, event: Event) -> str:
        return next((gpu.name for gpu in self._found.gpus if gpu.bdf == event.get("gpu")), str(event.get("gpu") or ""))

    def _write(self, at: float, members: Mapping[str, Json]) -> None:
        if self._log is not None:
            self._log.line({"under_load_s": round(at, 3), **members})


def _counters(source: Source) -> tuple[float, Snapshot] | Missing:
    later = source.later(0.0)
    return later if isinstance(later, Missing) else (later.at_s - source.at_s, survey(later, COUNTERS))


def _growth(before: Snapshot, read: Round | None) -> Growth | None:
    """The counters now against those before the load."""
    if read is None or not isinstance(read.counters, Snapshot):
        return None
    return Growth(old=before, new=read.counters, seconds=read.seconds, how=f"within {duration(read.seconds)}")
