"""Which two readings of the counters a run compares."""

from __future__ import annotations

from contextlib import nullcontext

from dgxcheck.assessment.machine import topology_of
from dgxcheck.assessment.progress import SILENT, Progress
from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import INTERRUPTED, duration
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvml.nvlink import NvLink
from dgxcheck.facts.record import replace
from dgxcheck.source.protocol import Source
from dgxcheck.survey import COUNTERS, Snapshot, survey


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
