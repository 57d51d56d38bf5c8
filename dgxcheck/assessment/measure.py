"""Measure the live machine, measure again what is low, and keep the figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dgxcheck.assessment.progress import Progress
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.facts.gpu import Nvml
from dgxcheck.facts.host import Host
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.measure import plan, run
from dgxcheck.measure.publishable import publishable_facts
from dgxcheck.source import state_file
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.keys import GroupedFacts, insert
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.survey import Snapshot, survey
from dgxcheck.topology.model import Device, Topology
from dgxcheck.workers.cuda.supervisor import START, CudaStage

FACT = "measure "
Measurements = tuple[Measurement, ...] | Missing
Judge = Callable[[Measurements], tuple[Finding, ...]]


def measure(
    facts: Snapshot, topology: Topology, gpus: tuple[Device, ...], judge: Judge, seconds: float, long: bool,
    progress: Progress,
) -> tuple[dict[str, Json], bool]:  # fmt: skip
    """Measure every GPU and pair, and twice more what the checks of ``judge`` find low. ``seconds``: most for one step.

    Returns every fact by its key, and whether all steps were run.
    """
    stage = CudaStage(seconds)
    keys = [str(step["key"]) for step in plan.steps(topology, gpus)]
    total = len(keys)
    progress.planned(keys)
    try:
        with progress.measuring(total) as step_done:
            shown: set[str] = set()

            def step(key: str, done: int) -> None:
                new = {name: fact for name, fact in publishable_facts(stage.facts).items() if name not in shown}
                shown.update(new)
                for name, fact in new.items():
                    progress.figure(name, fact)
                step_done(key, done)

            measured = run.measure(stage, topology, gpus, facts, step, long)
            low = sorted(_low(judge(as_facts(measured))))
            measured = run.remeasure(stage, topology, gpus, low, measured, step_done, long)
    except KeyboardInterrupt:  # SIGTERM too: what was measured so far is reported all the same
        detail = f"after {len(stage.facts)} of {total} steps"
        return publishable_facts(stage.facts) | {START: {"failed": "interrupted", "detail": detail}}, False
    return measured, True


def as_facts(measured: Mapping[str, Json]) -> Measurements:
    """The measurements as the probe reads them."""
    return survey(RecordedSource(_lines(measured), Origin("live")), ("measurement",)).measurement


def save(facts: Snapshot, measured: Mapping[str, Json]) -> None:
    """Leave the figures in the state directory, for ``record``; one that cannot be written is passed over."""
    at_s, date = state_file.now()
    host, nvml = facts.host, facts.gpu
    boot_id = host.boot_id if isinstance(host, Host) else host
    driver = nvml.driver_version if isinstance(nvml, Nvml) else nvml
    if isinstance(boot_id, Missing):
        return
    reading = state_file.Reading(
        lines=_lines(measured), boot_id=boot_id, driver="" if isinstance(driver, Missing) else driver, at_s=at_s,
        date=date,
    )  # fmt: skip
    try:
        state_file.write(state_file.default_path(state_file.MEASURED), reading)
    except OSError:
        return


def _low(findings: tuple[Finding, ...]) -> set[str]:
    """Keys of the figures that a finding names as its evidence."""
    bad = (finding for finding in findings if finding.status in (Status.WARN, Status.FAIL))
    return {each.where for finding in bad for each in finding.judgement.evidence if each.where.startswith(FACT)}


def _lines(measured: Mapping[str, Json]) -> GroupedFacts:
    lines: GroupedFacts = {}
    for key, fact in measured.items():
        insert(lines, key, fact)
    return lines
