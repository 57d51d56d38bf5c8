"""Judge a machine: what ``dgxcheck health`` prints, as data; which two readings of the counters a run compares."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from math import inf
from typing import TYPE_CHECKING

from dgxcheck.assessment.machine import opened, surveyed, topology_of
from dgxcheck.assessment.progress import SILENT, Progress
from dgxcheck.assessment.request import DEFAULT, WINDOW_S, Request, validate
from dgxcheck.assessment.result import Assessment
from dgxcheck.assessment.selection import selected, site_settings
from dgxcheck.checks.by_nature.last_run import CHECK as LAST_RUN
from dgxcheck.checks.by_nature.last_run import INVENTORY
from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Finding, Judgement, Status
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import INTERRUPTED, duration
from dgxcheck.checks.engine.run import LEAST_CHECKS, acknowledged, run, today, unmatched, verdict
from dgxcheck.checks.registry import PROBES
from dgxcheck.diagnosis.model import HEALTHY, Diagnosis
from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvml.nvlink import NvLink
from dgxcheck.facts.record import replace
from dgxcheck.profiles import library
from dgxcheck.score.box import score_of
from dgxcheck.source.protocol import Origin, Source
from dgxcheck.survey import COUNTERS, Snapshot, log_facts, survey
from dgxcheck.topology.build import NOTHING_STATED

if TYPE_CHECKING:
    from dgxcheck.assessment.host_use import HostWatch
    from dgxcheck.assessment.machine import Given
    from dgxcheck.difference.model import Compared
    from dgxcheck.readiness.figures import Figure

KERNEL_LOG = "kernel_log"
MEASUREMENT = "measurement"


def assess(
    source: Given = None, request: Request = DEFAULT, *, progress: Progress = SILENT, root: str = "/"
) -> Assessment:
    """Judge a machine, and find what is to blame.

    ``source`` is what ``--from`` takes: the name of a shipped recording, a recording file or a directory; None or
    ``live`` is this machine. On a live machine, the levels default and extended renew the state file, and only the
    level extended and ``duration`` put load on the GPUs; Ctrl-C ends that load, and what was measured by then is
    judged. ``progress`` follows it. ``root``: where the files of the live machine are. Raises ``BadInput`` if the
    source cannot be read or the request cannot be met.
    """
    begun = time.monotonic()
    checks, required = selected(request)
    with opened(source, "HEALTH", request.driver_deadline, root) as machine:
        live = machine.origin.kind == "live"
        validate(request, live)
        facts, read_at = _facts(machine, request), time.time()
        if not live:
            box = _box(machine, request, facts, checks, progress, root, None)
            return _assessment(box, machine.origin, request, checks, required, begun)
        from dgxcheck.assessment.host_use import HostWatch, programs

        watch = HostWatch(progress)
        box = _box(machine, request, facts, checks, progress, root, watch)
        used = programs(box.gpus, facts.gpu_processes, read_at)
        judged = _assessment(box, machine.origin, request, checks, required, begun)
        return replace(judged, programs=used, host_load=watch.load)


def _assessment(
    box: Box, origin: Origin, request: Request, checks: Sequence[Check], required: set[str], begun: float
) -> Assessment:
    findings = acknowledged(run(box, checks, required), box.settings.acknowledged, today())
    of_text = origin.provenance == "imported"
    judged = verdict(findings, 1 if request.only else LEAST_CHECKS, of_text, required)
    diagnosis = _diagnosis(box, findings)
    return Assessment(
        origin=origin, snapshot=box.snapshot, topology=box.topology,
        level="extended" if request.measures else request.level, settings=box.settings, choice=box.choice,
        findings=findings, verdict=judged, diagnosis=diagnosis, score=score_of(box, diagnosis.causes, findings),
        figures=_figures(box),
        host={"host": box.snapshot.known_host.hostname, "boot_id": box.snapshot.known_host.boot_id},
        seconds=time.monotonic() - begun, unmatched=unmatched(findings, box.settings.acknowledged, box),
    )  # fmt: skip


def _diagnosis(box: Box, findings: Sequence[Finding]) -> Diagnosis:
    if not any(finding.counts for finding in findings):
        return HEALTHY
    from dgxcheck.diagnosis.causes import diagnose

    return diagnose(box, findings)


def _figures(box: Box) -> tuple[Figure, ...]:
    if isinstance(box.snapshot.measurement, Missing):
        return ()
    from dgxcheck.readiness.figures import all_figures

    return all_figures(box)


def _box(
    source: Source, request: Request, facts: Snapshot, checks: Sequence[Check], progress: Progress, root: str,
    watch: HostWatch | None,
) -> Box:  # fmt: skip
    """All that the checks judge: facts, counters at two times, and what they are compared with; ``watch`` of a live
    machine alone.
    """
    live = watch is not None
    settings = site_settings(request.config) if request.settings is None else request.settings
    if live and isinstance(facts.kernel_log, KernelLog) and facts.kernel_log.forgeable:  # a forged line drains no node
        of_log = {check.id: Status.WARN.value for check in checks if check.witness == "log"}
        settings = replace(settings, severities={**settings.severities, **of_log})
    topology = topology_of(replace(facts, stated=NOTHING_STATED))  # nvlink.matrix judges what a matrix states
    choice = library.select(request.profile, facts, topology)
    gpus = topology.gpus
    if request.gpus:
        from dgxcheck.assessment import gpu_list

        gpus = tuple(dict.fromkeys(gpu_list.gpus(topology, ",".join(request.gpus))))
    box = Box(
        snapshot=facts, topology=topology, gpus=gpus, settings=settings, choice=choice,
        cut=source.origin.note or (facts.kernel_log.cut if isinstance(facts.kernel_log, KernelLog) else ""),
        boards={} if request.profile == "none" else library.boards_for(choice),
    )  # fmt: skip
    if watch is not None and request.measures:
        from dgxcheck.assessment.load import under_load

        box = under_load(box, source, request, checks, watch, root)
    if request.baseline is not None:
        box = replace(box, drift=_drift(request.baseline, source, box))
    once = request.level == "quick" or request.duration is not None
    if live:
        box = _with_last_run(box, source, request, once or request.window is not None)
    if once or (live and request.window is None):
        return box
    return with_growth(box, within(source, facts, inf if request.window is None else request.window, progress))


def _facts(source: Source, request: Request) -> Snapshot:
    """The facts that checks judge; at the level quick neither kernel log nor measurements are read."""
    live, quick = source.origin.kind == "live", request.level == "quick"
    saved = None if request.kernel_log is None else _saved_log(request.kernel_log)
    unread = {name for name, left_out in ((KERNEL_LOG, quick or saved is not None), (MEASUREMENT, quick or live))
              if left_out}  # fmt: skip
    facts = surveyed(source, [name for name in PROBES if name not in unread])
    if saved is not None:
        return replace(facts, kernel_log=saved)
    if live and request.state is not None and isinstance(facts.kernel_log, KernelLog):
        from dgxcheck.assessment import xid_history
        from dgxcheck.source import state_file

        earlier_run = state_file.read(request.state)
        earlier = () if earlier_run is None else xid_history.read(earlier_run.xids, state_file.now()[1])
        return replace(facts, kernel_log=replace(facts.kernel_log, earlier=earlier))
    return facts


def _drift(spec: str, source: Source, box: Box) -> Compared:
    """What differs from an earlier recording of this machine."""
    from dgxcheck.assessment.compare import called_as, namespace, side_of
    from dgxcheck.assessment.machine import open_source
    from dgxcheck.difference.compare import compare
    from dgxcheck.difference.model import Side

    old = side_of(open_source(spec))
    new = Side(snapshot=box.snapshot, topology=box.topology, namespace=namespace(source))
    return compare(called_as(old, new.namespace), called_as(new, old.namespace))


def _with_last_run(box: Box, source: Source, request: Request, only_devices: bool) -> Box:
    """The live machine against what an earlier run left of it: its devices, else its counters and values too."""
    from dgxcheck.assessment import last_run

    facts, acknowledgements = box.snapshot, box.settings.acknowledged
    present = last_run.Present(
        counts=last_run.counts(facts, box.topology), accepted=last_run.is_accepted(acknowledgements, INVENTORY),
        changes_accepted=last_run.is_accepted(acknowledgements, LAST_RUN),
    )  # fmt: skip
    if only_devices:
        return replace(box, inventory=last_run.inventory(facts, request.state), present=present.counts)
    if request.measures:
        last = last_run.loaded(source, facts, request.state, WINDOW_S, present)
    else:
        last = last_run.last_run(source, facts, request.state, present)
    return replace(
        with_growth(box, last.growth), inventory=last.inventory, kept=last.kept, present=present.counts,
        state_trouble=last.trouble,
    )  # fmt: skip


def _saved_log(path: str) -> KernelLog | Missing:
    """A saved kernel log as facts."""
    from dgxcheck.readers.kernel_log.excerpt import saved_log
    from dgxcheck.source.kernel_log.kmsg import relevant_lines

    saved = saved_log(path)
    log = log_facts(relevant_lines(saved))
    where = f"{path}, {saved.part}" if saved.part else path
    return log.of(where) if isinstance(log, Missing) else replace(log, where=where, cut=saved.cut or log.cut)


def with_growth(box: Box, growth: Growth | Judgement) -> Box:
    """The box with the counters at two times. An NVLink that was not up at both readings is as at the worse one."""
    first, second = box.snapshot.nvlink, None if isinstance(growth, Judgement) else growth.new.nvlink
    if isinstance(first, Missing) or second is None or isinstance(second, Missing):
        return replace(box, growth=growth)
    later = {(row.bdf, row.link): row for row in second}
    worse = tuple(_worse(row, later.get((row.bdf, row.link))) for row in first)
    if worse == first:
        return replace(box, growth=growth)
    facts = replace(box.snapshot, nvlink=worse)
    topology, asked = topology_of(facts), {gpu.name for gpu in box.gpus}
    gpus = tuple(gpu for gpu in topology.gpus if gpu.name in asked)
    return replace(box, snapshot=facts, topology=topology, gpus=gpus, growth=growth)


def _worse(first: NvLink, second: NvLink | None) -> NvLink:
    """The second state of a link that was up, unless nobody asked for it."""
    if second is None or first.up is not True:
        return first
    unasked = isinstance(second.up, Missing) and second.up.gap in (Gap.UNRECORDED, Gap.UNASKED)
    return first if unasked or second.up is True else second


def within(source: Source, facts: Snapshot, seconds: float, progress: Progress = SILENT) -> Growth | Judgement:
    """The counters now and so many seconds later; of a recording, those of its facts and at the first of its moments
    from then on.

    Ctrl-C ends the waiting of a live machine: then they were read once.
    """
    live = source.origin.kind == "live"
    old = survey(source, COUNTERS) if live else Snapshot(**{name: getattr(facts, name) for name in COUNTERS})
    try:
        with progress.waiting(seconds) if live else nullcontext():
            later = source.later(seconds)
    except KeyboardInterrupt:
        return INTERRUPTED
    if isinstance(later, Missing):
        return unjudged(later)
    taken = later.at_s - source.at_s
    return Growth(old=old, new=survey(later, (*COUNTERS, "gpu")), seconds=taken, how=f"within {duration(taken)}")
