"""``dgxcheck health --extended`` on the live machine: measure it, look twice at what is low, and keep the figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.cli.terminal.progress import progress
from dgxcheck.facts.gpu import Nvml
from dgxcheck.facts.host import Host
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.measure import plan, run
from dgxcheck.measure.publishable import published
from dgxcheck.source import state_file
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.keys import Lines, insert
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.survey import Snapshot, survey
from dgxcheck.topology.model import Device, Topology
from dgxcheck.workers.cuda.supervisor import START, CudaStage

FACT = "measure "
Measured = tuple[Measurement, ...] | Missing
Judge = Callable[[Measured], tuple[Finding, ...]]


def measured(
    facts: Snapshot, topology: Topology, gpus: tuple[Device, ...], judge: Judge, seconds: float, long: bool = False
) -> tuple[dict[str, Json], bool]:
    """Measure all there is; what the checks find low is measured twice more. ``seconds`` is the most for one step.

    All facts by key, and whether it came to its end.
    """
    stage = CudaStage(seconds)
    total = len(plan.steps(topology, gpus))
    try:
        with progress(total) as told:
            found = run.measure(stage, topology, gpus, facts, told, long)
            low = sorted(_low(judge(as_facts(found))))
            found = run.again(stage, topology, gpus, low, found, told, long)
    except KeyboardInterrupt:  # SIGTERM too: what was seen of the box is told all the same
        seen = f"after {len(stage.facts)} of {total} steps"
        return published(stage.facts) | {START: {"failed": "interrupted", "detail": seen}}, False
    return found, True


def as_facts(found: Mapping[str, Json]) -> Measured:
    """The measurements as the probe reads them."""
    return survey(RecordedSource(_lines(found), Origin("live")), ("measurement",)).measurement


def keep(facts: Snapshot, found: Mapping[str, Json]) -> None:
    """Leave the figures in the state directory, for ``record``; where that cannot be written, they are told only."""
    at_s, date = state_file.now()
    host, nvml = facts.host, facts.gpu
    boot_id = host.boot_id if isinstance(host, Host) else host
    driver = nvml.driver_version if isinstance(nvml, Nvml) else nvml
    if isinstance(boot_id, Missing):
        return
    reading = state_file.Reading(
        lines=_lines(found), boot_id=boot_id, driver="" if isinstance(driver, Missing) else driver, at_s=at_s, date=date
    )
    try:
        state_file.write(state_file.default_path(state_file.MEASURED), reading)
    except OSError:
        return


def _low(findings: tuple[Finding, ...]) -> set[str]:
    """Keys of the figures that a finding names as its evidence."""
    bad = (finding for finding in findings if finding.status in (Status.WARN, Status.FAIL))
    return {each.where for finding in bad for each in finding.judgement.evidence if each.where.startswith(FACT)}


def _lines(found: Mapping[str, Json]) -> Lines:
    lines: Lines = {}
    for key, fact in found.items():
        insert(lines, key, fact)
    return lines
