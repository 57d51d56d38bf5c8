"""Everything that loads the live machine: measurements, then a burn-in, as facts of the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dgxcheck.assessment import last_run
from dgxcheck.assessment.host_use import HostWatch
from dgxcheck.assessment.progress import BurnInProgress, interruptible
from dgxcheck.assessment.request import Request
from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import FAULTY, Finding, Status, skip
from dgxcheck.checks.engine.growth import duration
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.facts.record import replace
from dgxcheck.measure import plan
from dgxcheck.measure import run as measure_run
from dgxcheck.measure.burn_in import plan as burn_in_plan
from dgxcheck.measure.burn_in.events import Event
from dgxcheck.measure.burn_in.polling import Poll, Poller
from dgxcheck.measure.burn_in.run import BurnIn
from dgxcheck.measure.burn_in.stop_rules import limits
from dgxcheck.measure.publishable import publishable_facts
from dgxcheck.source import state_file
from dgxcheck.source.protocol import Origin, Source
from dgxcheck.source.recording.keys import grouped
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.survey import COUNTERS, Snapshot, survey
from dgxcheck.workers.cuda.supervisor import START, CudaStage

FACT = "measure "
Measurements = tuple[Measurement, ...] | Missing
JudgeMeasurements = Callable[[Measurements], tuple[Finding, ...]]


def measure(
    box: Box, judge: JudgeMeasurements, seconds: float, long: bool, watch: HostWatch
) -> tuple[dict[str, Json], bool]:
    """Measure every GPU and pair, and twice more what the checks of ``judge`` find low. ``seconds``: most for one step.

    Returns every fact by its key, and whether all steps were run.
    """
    stage = CudaStage(seconds)
    facts, topology, gpus = box.snapshot, box.topology, box.gpus
    keys = [str(step["key"]) for step in plan.steps(topology, gpus)]
    total = len(keys)
    progress = watch.progress
    progress.planned(keys)
    try:
        with progress.measuring(total) as show:
            watch.look()
            shown: set[str] = set()

            def step_done(key: str, done: int) -> None:
                watch.look()
                show(key, done)

            def step(key: str, done: int) -> None:
                new = {name: fact for name, fact in publishable_facts(stage.facts).items() if name not in shown}
                shown.update(new)
                for name, fact in new.items():
                    progress.figure(name, fact)
                step_done(key, done)

            measured = measure_run.measure(stage, topology, gpus, facts, step, long)
            low = sorted(_low(judge(as_facts(measured))))
            measured = measure_run.remeasure(stage, topology, gpus, low, measured, step_done, long)
    except KeyboardInterrupt:  # SIGTERM too: what was measured so far is reported all the same
        detail = f"after {len(stage.facts)} of {total} steps"
        return publishable_facts(stage.facts) | {START: {"failed": "interrupted", "detail": detail}}, False
    return measured, True


def as_facts(measured: Mapping[str, Json]) -> Measurements:
    """The measurements as the probe reads them."""
    return survey(RecordedSource(grouped(measured), Origin("live")), ("measurement",)).measurement


def save(facts: Snapshot, measured: Mapping[str, Json]) -> None:
    """Leave the figures in the state directory, for ``record``; one that cannot be written is passed over."""
    reading = last_run.reading_of(facts, grouped(measured))
    if reading.boot_id:
        last_run.written(state_file.default_path(state_file.MEASURED), reading)


def _low(findings: tuple[Finding, ...]) -> set[str]:
    """Keys of the figures that a finding names as its evidence."""
    bad = (finding for finding in findings if finding.status in FAULTY)
    return {item.where for finding in bad for item in finding.judgement.evidence if item.where.startswith(FACT)}


_BAD = (Status.WARN, Status.UNKNOWN, Status.FAIL)
"""Mildest first."""
OWN = "measure."


def burn_in(
    box: Box, source: Source, seconds: float, test_seconds: float, left_out: Mapping[str, Json], watch: HostWatch,
    root: str,
) -> tuple[Box, dict[str, Json]]:  # fmt: skip
    """Load all GPUs for so many seconds, but those of ``left_out``, whose facts are given there by bdf.

    Returns the box with its kernel log and the growth of its counters after the load, and ``measure burn-in BDF`` of
    each GPU and ``measure burn-in all``.
    ``test_seconds``: how long a load may be silent. ``root``: where the machine's files are.
    """
    facts = box.snapshot
    before = survey(source, COUNTERS)
    gpus = [gpu for gpu in box.gpus if gpu.bdf not in left_out]
    poller = Poller(lambda: survey(source, ("kernel_log",)).kernel_log, lambda: _counters(source))
    with watch.progress.burning_in(seconds) as elapsed:
        watch.look()
        burn = BurnIn(
            burn_in_plan.loads(box.topology, gpus, facts.gpu_modes), seconds, test_seconds, limits(facts.gpu_thermal),
            poller, survey(source, ("kernel_log",)).kernel_log, Follower(box, before, watch, elapsed),
            burn_in_plan.files(root, facts.aer),
        )  # fmt: skip
        with interruptible(burn.interrupt):
            measured = burn.run()
    growth = _growth(before, burn.last) or skip("no-history", "the counters were not read again")
    box = replace(box, growth=growth, snapshot=replace(facts, kernel_log=burn.log))
    return box, measured | {f"measure burn-in {bdf}": why for bdf, why in left_out.items()}


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

    def __init__(self, box: Box, before: Snapshot, watch: HostWatch, elapsed: BurnInProgress) -> None:
        self._box, self._before, self._watch, self._elapsed = box, before, watch, elapsed
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
        self._watch.look()
        self._elapsed(elapsed, step, self._worst[1])

    def new_findings(self, read: Poll) -> Sequence[Event]:
        if (growth := _growth(self._before, read)) is None:
            return []
        facts = self._box.snapshot
        log = facts.kernel_log if isinstance(read.log, Missing) else read.log
        box = replace(self._box, growth=growth, snapshot=replace(facts, kernel_log=log))
        new = [each for each in run(box, self._checks) if each.status in _BAD and each.key not in self._known]
        self._known |= {finding.key for finding in new}
        return [{"event": "finding", "gpu": finding.subject.bdf, "text": f"{finding.id}: {finding.judgement.message}",
                 "status": finding.status.value} for finding in new]  # fmt: skip

    def _name(self, event: Event) -> str:
        return next((gpu.name for gpu in self._box.gpus if gpu.bdf == event.get("gpu")), str(event.get("gpu") or ""))

    def _pass_on(self, at: float, members: Mapping[str, Json]) -> None:
        self._watch.progress.burn_in_event({"under_load_s": round(at, 3), **members})


def _counters(source: Source) -> tuple[float, Snapshot] | Missing:
    later = source.later(0.0)
    return later if isinstance(later, Missing) else (later.at_s - source.at_s, survey(later, COUNTERS))


def _growth(before: Snapshot, poll: Poll | None) -> Growth | None:
    """The counters now against those before the load."""
    if poll is None or not isinstance(poll.counters, Snapshot):
        return None
    return Growth(old=before, new=poll.counters, seconds=poll.seconds, how=f"within {duration(poll.seconds)}")


UNDER_LOAD = ("measure.", "pcie.width", "pcie.generation")
"""What the ids of the checks begin with that judge what was measured."""
BURN_IN = "measure.burn-in"


def under_load(box: Box, source: Source, request: Request, checks: Sequence[Check], watch: HostWatch, root: str) -> Box:
    """The box with what was measured, and with a burn-in's counter growth and kernel log.

    Nothing is measured that none of ``checks`` judges. ``root``: where the machine's files are.
    """
    judging = [check for check in CHECKS if check.id.startswith("measure.")]

    def judge(measurements: Measurements) -> tuple[Finding, ...]:
        return run(_with_measurements(box, measurements), judging)

    facts: dict[str, Json] = {}
    whole = True
    if any(check.id.startswith(UNDER_LOAD) and check.id != BURN_IN for check in checks):
        facts, whole = measure(box, judge, request.test_seconds, request.long, watch)
    if request.duration is not None:
        if whole:
            left_out = not_loaded(box, facts)
            box, burned = burn_in(box, source, request.duration, request.test_seconds, left_out, watch, root)
            facts |= burned
        else:
            facts |= interrupted_before(request.duration)
    if facts and whole:
        save(box.snapshot, facts)
    return _with_measurements(box, as_facts(facts)) if facts else box


def _with_measurements(box: Box, measurements: Measurements) -> Box:
    return replace(box, snapshot=replace(box.snapshot, measurement=measurements))
