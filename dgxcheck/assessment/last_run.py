"""What an earlier run left of this machine in its state file, and what this run leaves there for the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from dgxcheck.checks.by_nature.last_run import kept
from dgxcheck.checks.engine.box import Growth
from dgxcheck.checks.engine.finding import Judgement, counted, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import DAY_S, duration
from dgxcheck.checks.engine.run import today
from dgxcheck.facts.inventory import Count, Remembered
from dgxcheck.facts.missing import BadInput, Gap, Missing, text_of
from dgxcheck.facts.record import Record, fields, replace
from dgxcheck.settings import Acknowledgement
from dgxcheck.source import state_file
from dgxcheck.source.protocol import Origin, Source
from dgxcheck.source.recording.keys import GroupedFacts
from dgxcheck.source.recording.recorder import RecordingSource
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.survey import COUNTERS, Snapshot, survey
from dgxcheck.topology.model import Topology

RENEWED_AFTER_S = 3600.0
"""Readings in the state file are so far apart, and after the first hour one that is older is compared with: runs each
minute see more than a minute's growth, and none sees a quiet minute after an hour with errors."""


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
    trouble: str = ""
    """What of the file was damaged, and why none is left for the next run."""


def loaded(source: Source, facts: Snapshot, path: str | None, seconds: float, present: Present) -> LastRun:
    """The counters after all that was measured: against an earlier run, else against those before the load."""
    old = survey(source, COUNTERS)
    if isinstance(later := source.later(seconds), Missing):
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
    reading = reading_of(facts, recorder.lines())
    at_s, date = reading.at_s, reading.date
    place = path or state_file.default_path()
    old, trouble = _earlier(place, asked=path is not None)
    inventories, mark = {} if old is None else dict(old.inventories), host_mark(facts)
    kept_counts = inventories.pop(mark, {})
    if mark and present.counts:  # the host that was seen last comes last: the first go where there are too many
        inventories[mark] = updated(kept_counts, present.counts, date, present.accepted)
    values = remembered_values(None if old is None else old.kept, facts, mark, date, present.changes_accepted)
    before = old.kept if old is not None and old.kept is not None and old.kept.mark == mark else None
    xids = remembered(() if old is None else old.xids, facts, date)
    reading = replace(reading, kept=values if present.counts else None, xids=xids, inventories=inventories)
    base = None
    if old is not None and _is_since(old, reading):
        base = _compared_with(old, at_s)
        counters = _renewed(base, reading) if reading.driver else old
        reading = replace(counters, xids=reading.xids, inventories=reading.inventories, kept=reading.kept, damaged=0)
    unwritten = "" if reading == old else written(place, reading)
    trouble = "; ".join(filter(None, (trouble, unwritten)))
    if base is None:
        why = "no earlier run" if old is None else "no earlier run with this driver since the last boot"
        growth = skip("no-history", why if unwritten else f"{why}: the next run compares with this one")
        return LastRun(growth=growth, inventory=kept_counts, kept=before, trouble=trouble)
    earlier: Snapshot = _sensible(survey(RecordedSource(base.lines, Origin("recording")), COUNTERS))
    growth_since = Growth(old=earlier, new=new, seconds=at_s - base.at_s, how=f"since {base.date}", logged=True)
    return LastRun(growth=growth_since, inventory=kept_counts, kept=before, trouble=trouble)


def reading_of(facts: Snapshot, lines: GroupedFacts) -> state_file.Reading:
    """What is read now, with the boot and the driver that it is of; these are empty where they are not known."""
    at_s, date = state_file.now()
    boot_id, driver = text_of(facts.known_host.boot_id).strip(), text_of(facts.driver_version).strip()
    return state_file.Reading(lines=lines, boot_id=boot_id, driver=driver, at_s=at_s, date=date)


def _is_since(old: state_file.Reading, now: state_file.Reading) -> bool:
    """Is it later in the same boot, with the same driver? One that is silent has not changed."""
    return old.boot_id == now.boot_id and old.at_s < now.at_s and now.driver in (old.driver, "")


def _compared_with(old: state_file.Reading, at_s: float) -> state_file.Reading:
    """The newest counters that are an hour old, else the oldest."""
    newer = old.newer
    if newer is None or at_s - newer.at_s < RENEWED_AFTER_S:
        return old
    return replace(old, lines={**old.lines, **newer.changed}, at_s=newer.at_s, date=newer.date, newer=None)


def _renewed(base: state_file.Reading, now: state_file.Reading) -> state_file.Reading:
    """With the counters of now beside those that they are compared with, once these are an hour old."""
    if base.newer is not None or now.at_s - base.at_s < RENEWED_AFTER_S:
        return base
    changed = {line: group for line, group in now.lines.items() if base.lines.get(line) != group}
    return replace(base, newer=state_file.Newer(changed=changed, at_s=now.at_s, date=now.date))


def _sensible(facts: Any) -> Any:
    """What makes no sense in an earlier reading was not read: it tells nothing of the machine as it is now."""
    if isinstance(facts, Missing):
        is_garbled = facts.gap is Gap.GARBLED
        return Missing(Gap.UNRECORDED, facts.where, "makes no sense in the state file") if is_garbled else facts
    if isinstance(facts, Record):
        return type(facts)(**{name: _sensible(getattr(facts, name)) for name in fields(facts)})
    if isinstance(facts, dict):
        return {name: _sensible(each) for name, each in facts.items()}
    return tuple(map(_sensible, facts)) if isinstance(facts, tuple) else facts


def inventory(facts: Snapshot, path: str | None) -> Mapping[str, Count]:
    """What earlier runs counted on this host, where none of its counters are compared; nothing is written."""
    old, _ = _earlier(path or state_file.default_path(), asked=path is not None)
    return {} if old is None else old.inventories.get(host_mark(facts), {})


def _earlier(path: str, asked: bool) -> tuple[state_file.Reading | None, str]:
    """What the state file holds, and what of it was damaged."""
    try:
        old = state_file.read(path)
    except BadInput as error:
        if asked:
            raise
        return None, f"{error}; started over"
    entries = counted(old.damaged if old else 0, "damaged entry", "damaged entries")
    return old, f"{path}: {entries} dropped" if old is not None and old.damaged else ""


def written(path: str, reading: state_file.Reading) -> str:
    """Nothing, or why there will be no history."""
    try:
        state_file.write(path, reading)
    except OSError as error:
        return f"{path} cannot be written: {error.strerror}"
    return ""


_KB_IN_GIB = 1 << 20


def host_mark(facts: Snapshot) -> str:
    """16 hexadecimal digits by which the state file knows this host; empty where its name is not known."""
    host = facts.known_host
    if isinstance(host.hostname, Missing):
        return ""
    from hashlib import sha256

    names = (host.hostname, host.dmi.sys_vendor, host.dmi.product_name)
    return sha256("\n".join(map(text_of, names)).encode()).hexdigest()[:16]


def counts(facts: Snapshot, topology: Topology) -> dict[str, int]:
    """Devices by kind, without kinds that could not be read: GPUs, HCAs and disks; memory in GiB."""
    found: dict[str, int] = {}
    if not isinstance(facts.pci, Missing):
        found["GPU"] = len(topology.gpus)
    if not isinstance(facts.infiniband, Missing):
        found["HCA"] = len(topology.adapters)
    memory_kb, disks = facts.known_host.memory_kb, facts.disks
    if isinstance(memory_kb, int):
        found["memory"] = round(memory_kb / _KB_IN_GIB)
    if not isinstance(disks, Missing):
        # what has a model is a device; device mapper, RAID and virtual disks have none
        found["disk"] = sum(isinstance(disk.model, str) and disk.removable is not True for disk in disks)
    return found


def updated(old: Mapping[str, Count], present: Mapping[str, int], date: str, accepted: bool) -> dict[str, Count]:
    """What the next run is to expect: the most there was, or what there is where the site ``accepted`` that."""
    found = dict(old)
    for kind, number in present.items():
        if accepted or kind not in old or number >= old[kind].number:
            found[kind] = Count(number, date[:10])
    return found


def remembered_values(old: Remembered | None, facts: Snapshot, mark: str, date: str, accepted: bool) -> Remembered:
    """What the next run is to expect: what was read before a change for a day after it, then what is read now."""
    now = kept(facts)
    if old is None or old.mark != mark or accepted:
        return Remembered(mark, date, now)
    if now == old.values:
        return replace(old, changed="")
    if old.changed and _days(old.changed, date) >= 1:
        return Remembered(mark, date, now)
    return replace(old, changed=old.changed or date)


def _days(since: str, until: str) -> float:
    """Between two dates as the state file has them; many where one is none."""
    from datetime import datetime

    try:
        began, ended = (datetime.fromisoformat(each.removesuffix("Z")) for each in (since, until))
    except ValueError:
        return inf
    return (ended - began).total_seconds() / DAY_S


def is_accepted(acknowledgements: Sequence[Acknowledgement], check: str) -> bool:
    """Does the site acknowledge that devices were removed, or what has changed?"""
    return any(entry.check == check and entry.expiry >= today() for entry in acknowledgements)
