"""Burn-in: all GPUs under load for a time, and what the checks find in counters and kernel log meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dgxcheck.assessment.interrupt import interruptible
from dgxcheck.assessment.progress import BurnInProgress, Progress
from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.finding import Judgement, Status, skip
from dgxcheck.checks.engine.growth import duration
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.facts.record import Record, replace
from dgxcheck.measure import plan
from dgxcheck.measure.burn_in import plan as burn_in_plan
from dgxcheck.measure.burn_in.events import Event
from dgxcheck.measure.burn_in.polling import Poll, Poller
from dgxcheck.measure.burn_in.run import BurnIn
from dgxcheck.measure.burn_in.stop_rules import limits
from dgxcheck.source.protocol import Source
from dgxcheck.survey import COUNTERS, Snapshot, survey

_BAD = (Status.WARN, Status.UNKNOWN, Status.FAIL)
"""Mildest first."""
OWN = "measure."


class BurnInFacts(Record):
    """What a burn-in adds to the facts of a machine."""

    measured: dict[str, Json]
    """``measure burn-in BDF`` of each GPU and ``measure burn-in all``."""
    growth: Growth | Judgement
    """The counters after the load against those before it."""
    kernel_log: KernelLog | Missing


def burn_in(
    box: Box, source: Source, seconds: float, test_seconds: float, left_out: Mapping[str, Json], progress: Progress,
    root: str,
) -> BurnInFacts:  # fmt: skip
    """Load all GPUs for so many seconds, but those of ``left_out``, whose facts are given there by bdf.

    ``test_seconds``: how long a load may be silent. ``root``: where the machine's files are.
    """
    facts = box.snapshot
    before = survey(source, COUNTERS)
    gpus = [gpu for gpu in box.gpus if gpu.bdf not in left_out]
    poller = Poller(lambda: survey(source, ("kernel_log",)).kernel_log, lambda: _counters(source))
    with progress.burning_in(seconds) as elapsed:
        burn = BurnIn(
            burn_in_plan.loads(box.topology, gpus, facts.gpu_modes), seconds, test_seconds,
            limits(facts.gpu_thermal), poller, survey(source, ("kernel_log",)).kernel_log,
            Follower(box, before, progress, elapsed),
            burn_in_plan.files(root, facts.aer),
        )  # fmt: skip
        with interruptible(burn.interrupt):
            measured = burn.run()
    return BurnInFacts(
        measured=measured | {f"measure burn-in {bdf}": why for bdf, why in left_out.items()},
        growth=_growth(before, burn.last) or skip("no-history", "the counters were not read again"),
        kernel_log=burn.log,
    )


def not_loaded(box: Box, measured: Mapping[str, Json]) -> dict[str, Json]:
    """GPUs that are left out, by bdf: as they are set up, or because a measurement of them never ended."""
    broken: dict[str, Json] = {}
    for gpu in box.gpus:
        for kind in plan.OF_ONE:
            fact = measured.get(f"measure {kind} {gpu.bdf}")
            if isinstance(fact, dict) and gpu.bdf and (fact.get("missing") == "timeout" or fact.get("sticky")):
                broken[gpu.bdf] = {"skipped": "dependency-failed", "detail": f"not loaded after measure {kind}"}
    return broken | plan.skipped_gpus(box.gpus, box.snapshot)


def interrupted_before(seconds: float) -> dict[str, Json]:
    """The fact of a burn-in of so many seconds that was interrupted before it began."""
    return {"measure burn-in all": {"value": 0, "unit": "s", "asked": seconds, "stopped": "interrupted", "gpu": None,
                                    "detail": "interrupted before it began", "events": []}}  # fmt: skip


class Follower:
    """Passes samples and events on, and lets the checks look at every reading of the counters."""

    def __init__(self, box: Box, before: Snapshot, progress: Progress, elapsed: BurnInProgress) -> None:
        self._box, self._before, self._progress, self._elapsed = box, before, progress, elapsed
        self._checks = [check for check in CHECKS if not check.id.startswith(OWN)]
        self._known = {finding.key for finding in run(box, self._checks) if finding.status in _BAD}
        self._worst: tuple[int, str] = (-1, "")

    def sample(self, at: float, sample: Mapping[str, Any]) -> None:
        self._pass_on(at, {"event": "sample", "gpus": sample["gpus"]})

    def event(self, at: float, event: Event) -> None:
        self._pass_on(at, event)
        status = event.get("status")
        rank = next((rank for rank, each in enumerate(_BAD) if each.value == status), -1)
        if rank > self._worst[0]:
            self._worst = rank, f"{status}: {' '.join(filter(None, (self._name(event), str(event['text']))))}"

    def progress(self, elapsed: float, step: str) -> None:
        self._elapsed(elapsed, step, self._worst[1])

    def new_findings(self, read: Poll) -> Sequence[Event]:
        growth = _growth(self._before, read)
        if growth is None:
            return []
        facts = self._box.snapshot
        log = facts.kernel_log if isinstance(read.log, Missing) else read.log
        box = replace(self._box, growth=growth, snapshot=replace(facts, kernel_log=log))
        new = [each for each in run(box, self._checks) if each.status in _BAD and each.key not in self._known]
        self._known |= {finding.key for finding in new}
        return [
            {"event": "finding", "gpu": each.subject.bdf, "text": f"{each.id}: {each.judgement.message}",
             "status": each.status.value} for each in new
        ]  # fmt: skip

    def _name(self, event: Event) -> str:
        return next((gpu.name for gpu in self._box.gpus if gpu.bdf == event.get("gpu")), str(event.get("gpu") or ""))

    def _pass_on(self, at: float, members: Mapping[str, Json]) -> None:
        self._progress.burn_in_event({"under_load_s": round(at, 3), **members})


def _counters(source: Source) -> tuple[float, Snapshot] | Missing:
    later = source.later(0.0)
    return later if isinstance(later, Missing) else (later.at_s - source.at_s, survey(later, COUNTERS))


def _growth(before: Snapshot, poll: Poll | None) -> Growth | None:
    """The counters now against those before the load."""
    if poll is None or not isinstance(poll.counters, Snapshot):
        return None
    return Growth(old=before, new=poll.counters, seconds=poll.seconds, how=f"within {duration(poll.seconds)}")
