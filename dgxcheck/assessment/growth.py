"""Which two readings of the counters a run compares."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext

from dgxcheck.assessment.inventory import host_mark, remembered_values, updated
from dgxcheck.assessment.machine import topology_of
from dgxcheck.assessment.progress import SILENT, Progress
from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.finding import Judgement, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import duration
from dgxcheck.facts.gpu import Nvml
from dgxcheck.facts.host import Host
from dgxcheck.facts.inventory import Count, Remembered
from dgxcheck.facts.missing import BadInput, Gap, Missing
from dgxcheck.facts.nvlink import NvLink
from dgxcheck.facts.record import Record, replace
from dgxcheck.source import state_file
from dgxcheck.source.protocol import Origin, Source
from dgxcheck.source.recording.recorder import RecordingSource
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.survey import COUNTERS, Snapshot, survey

RENEWED_AFTER_S = 3600.0
"""Until then the state file stays as it is, so that runs each minute see more than a minute's growth."""


class Present(Record):
    """The devices that this run counted, by kind; has the site accepted that some were removed, or that they are now
    others?"""

    counts: Mapping[str, int]
    accepted: bool
    changes_accepted: bool = False


class LastRun(Record):
    """What the state file says of this host: counters to compare with, and the devices that it had."""

    growth: Growth | Judgement
    inventory: Mapping[str, Count]
    kept: Remembered | None = None


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
        return skip("no-history", "interrupted before the counters were read again")
    if isinstance(later, Missing):
        return unjudged(later)
    taken = later.at_s - source.at_s
    return Growth(old=old, new=survey(later, COUNTERS), seconds=taken, how=f"within {duration(taken)}")


def loaded(source: Source, facts: Snapshot, path: str | None, seconds: float, present: Present) -> LastRun:
    """The counters after all that was measured: against an earlier run, else against those before the load."""
    old = survey(source, COUNTERS)
    later = source.later(seconds)
    if isinstance(later, Missing):
        return LastRun(growth=unjudged(later), inventory={})
    since = last_run(later, facts, path, present)
    if isinstance(since.growth, Growth):
        return since
    taken = later.at_s - source.at_s
    growth = Growth(old=old, new=survey(later, COUNTERS), seconds=taken, how=f"within {duration(taken)}")
    return replace(since, growth=growth)


def last_run(source: Source, facts: Snapshot, path: str | None, present: Present) -> LastRun:
    """Against the state file of an earlier run with the same boot and driver; the file is made or renewed, and with new
    Xids written again.

    A ``path`` that was asked for must be a state file or not be there; the usual one is replaced whatever it holds.
    """
    from dgxcheck.assessment.xid_history import remembered

    recorder = RecordingSource(source)
    new = survey(recorder, COUNTERS)
    at_s, date = state_file.now()
    host, nvml = facts.host, facts.gpu
    reading = state_file.Reading(
        lines=recorder.lines(), at_s=at_s, date=date,
        boot_id=_text(host.boot_id if isinstance(host, Host) else host),
        driver=_text(nvml.driver_version if isinstance(nvml, Nvml) else nvml),
    )  # fmt: skip
    place = path or state_file.default_path()
    old = _earlier(place, asked=path is not None)
    inventories, mark = {} if old is None else dict(old.inventories), host_mark(facts)
    known = inventories.pop(mark, {})
    if mark and present.counts:  # the host that was seen last comes last: the first go where there are too many
        inventories[mark] = updated(known, present.counts, date, present.accepted)
    values = remembered_values(None if old is None else old.kept, facts, mark, date, present.changes_accepted)
    before = old.kept if old is not None and old.kept is not None and old.kept.mark == mark else None
    xids = remembered(() if old is None else old.xids, facts, date)
    reading = replace(reading, kept=values if present.counts else None, xids=xids, inventories=inventories)
    same = old is not None and old.boot_id == reading.boot_id and old.at_s < at_s
    same = same and old is not None and reading.driver in (old.driver, "")  # one that is silent has not changed
    fresh = old is not None and (at_s - old.at_s < RENEWED_AFTER_S or not reading.driver)
    if same and fresh and old is not None:  # its counters stay, so that growth is over a longer time
        reading = replace(old, xids=reading.xids, inventories=reading.inventories, kept=reading.kept)
    unwritten = "" if reading == old else _written(place, reading)
    if not same or old is None:
        why = "no earlier run" if old is None else "no earlier run with this driver since the last boot"
        growth = skip("no-history", f"{why}{unwritten or ': the next run compares with this one'}")
        return LastRun(growth=growth, inventory=known, kept=before)
    counters = survey(RecordedSource(old.lines, Origin("recording")), COUNTERS)
    growth_since = Growth(old=counters, new=new, seconds=at_s - old.at_s, how=f"since {old.date}")
    return LastRun(growth=growth_since, inventory=known, kept=before)


def inventory(facts: Snapshot, path: str | None) -> Mapping[str, Count]:
    """What earlier runs counted on this host, where none of its counters are compared; nothing is written."""
    old = _earlier(path or state_file.default_path(), asked=path is not None)
    return {} if old is None else old.inventories.get(host_mark(facts), {})


def _earlier(path: str, asked: bool) -> state_file.Reading | None:
    try:
        return state_file.read(path)
    except BadInput:
        if asked:
            raise
        return None


def _written(path: str, reading: state_file.Reading) -> str:
    """Nothing, or why there will be no history."""
    try:
        state_file.write(path, reading)
    except OSError as error:
        return f", and {path} cannot be written: {error.strerror}"
    return ""


def _text(value: str | Missing) -> str:
    return "" if isinstance(value, Missing) else value.strip()
