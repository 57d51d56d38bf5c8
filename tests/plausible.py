"""Every recorded fact of one device at a plausible other value, and whether a check notices: the figure of coverage.

A counter is raised by a million within an hour; an identity takes that of another device; inventory and versions are
those of another last run too. What no check notices has its reason in its row, or is counted as unseen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from enum import Enum
from typing import Any

from one_fact import Changeable, Path, _device, _name, put

from dgxcheck.checks.by_nature.last_run import kept
from dgxcheck.checks.engine.box import Growth
from dgxcheck.facts.host import NetInterface
from dgxcheck.facts.inventory import Remembered
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nature import Fact, rows_of
from dgxcheck.facts.nvml.readings import RetiredPage
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import Record, fields, replace
from dgxcheck.survey import COUNTERS

MILLION, HOUR_S = 1_000_000, 3600.0
NEVER = ("key", "holder", "load", "event")
"""Natures that are not judged: which device it is, what it holds, what it is doing at the moment."""
NO_FACTS = ("pci_names", "kernel_log", "measurement", "stated", "tool_reports")
"""Fields of the snapshot that hold names for people, events, figures and what other tools printed."""
_ETHERNET = 1
"""ARPHRD number of an interface."""


class Plausible(Record):
    """One value in place of another."""

    fact: str
    nature: str
    device: str
    path: Path
    value: object
    reason: str
    """Why it is not judged; empty where it is."""
    alone: bool


def plausible(box: Changeable) -> Iterator[Plausible]:
    """One change of each fact of each kind and role of device; the facts take turns with the devices."""
    roles = box.roles()
    groups: dict[Hashable, list[tuple[Path, Record]]] = defaultdict(list)
    for name in [name for name in fields(box.box.snapshot) if name not in NO_FACTS]:
        for path, record in _records(getattr(box.box.snapshot, name), (name,)):
            groups[name, type(record), roles.get(id(record))].append((path, record))
    for those in groups.values():
        by_fact: dict[str, list[tuple[Path, Record, tuple[Fact, ...], object]]] = defaultdict(list)
        for path, record in those:
            for at, of, value in _values(record, path, ()):
                if not any(row.nature in NEVER and row.nature != "holder" for row in of) and of[-1].nature != "holder":
                    fact = ".".join((_name(record), *(row.name for row in of)))
                    by_fact[fact].append((at, record, of, value))
        for number, (fact, having) in enumerate(by_fact.items()):
            at, record, of, value = having[number % len(having)]
            others = [other for *_, other in having if other != value]
            nature = next(row.nature for row in of if row.nature != "holder")
            yield Plausible(
                fact=fact, nature=nature, device=_device(record), path=at, value=_other(nature, value, others),
                reason=_reason(record, of, roles.get(id(record))), alone=len(those) < 2,
            )  # fmt: skip


def remember(box: Changeable) -> None:
    """Let the last run have read what the box has now."""
    box.box = replace(box.box, kept=Remembered("", "2026-11-20", kept(box.box.snapshot)))


def is_seen(box: Changeable, change: Plausible) -> bool:
    """Does a check find more than in the box as it is? Whatever is kept is compared with the last run."""
    if change.nature != "counter":
        return box.sees(change)
    facts = box.box.snapshot
    later = put(facts, change.path, change.value)
    old, new = (type(facts)(**{name: getattr(each, name) for name in COUNTERS}) for each in (facts, later))
    return box.sees(change, Growth(old=old, new=new, seconds=HOUR_S, how="within an hour"))


def _reason(record: Record, of: tuple[Fact, ...], role: Any) -> str:
    kind = role[0] if isinstance(role, tuple) else ""
    if isinstance(record, NetInterface) and of[0].name == "carrier_down_count" and record.type != _ETHERNET:
        return "host.carrier is about cables of Ethernet: InfiniBand counts the same in link_downed, and lo has none"
    if isinstance(record, NetInterface) and of[0].name == "mac" and record.name == "lo":
        return "the loopback interface is no device"
    if of[0].record is PciFunction and not kind:
        return "it carries no GPU, HCA or disk: its links and its place in the tree are no fault of the box"
    said = (row.more.get("differs") or row.more.get("any") or row.more.get("differs_in", {}).get(kind) for row in of)
    return next((each for each in said if each), "")


def _records(value: object, path: Path) -> Iterator[tuple[Path, Record]]:
    """The records of devices: those in a tuple, and those in the fields of the one record that a field holds."""
    if isinstance(value, Record) and not isinstance(value, Missing):
        yield path, value
    elif isinstance(value, tuple):
        for number, each in enumerate(value):
            if isinstance(each, Record) and not isinstance(each, Missing):
                ports = getattr(each, "ports", None)
                if isinstance(ports, tuple):
                    yield from _records(ports, (*path, number, "ports"))
                yield (*path, number), each
    if isinstance(value, Record) and not isinstance(value, Missing):
        for name, row in rows_of(type(value)).items():
            held = getattr(value, name)
            if row.nature == "holder" and isinstance(held, tuple):
                yield from _records(held, (*path, name))


def _values(record: Record, path: Path, above: tuple[Fact, ...]) -> Iterator[tuple[Path, tuple[Fact, ...], object]]:
    """Values with their rows; of a mapping of counters each by its name."""
    for name, row in rows_of(type(record)).items():
        value, at, of = getattr(record, name), (*path, name), (*above, row)
        if isinstance(value, Missing) or value is None:
            continue
        if isinstance(value, Record):
            yield from _values(value, at, of)
        elif isinstance(value, tuple) and value and isinstance(value[0], Record):
            if row.nature != "holder":
                yield from _values(value[0], (*at, 0), of)
        elif isinstance(value, Mapping) and "names" in row.more:
            for key, count in value.items():
                own = row.more["names"](key) or Fact(dict, key, ("counter", (), {}))
                yield (*at, key), (*of, own), count
        else:
            yield at, of, value


def _other(nature: str, value: object, others: list[object]) -> object:
    if nature == "counter" and isinstance(value, int) and not isinstance(value, bool):
        return value + MILLION
    if nature == "counter" and isinstance(value, tuple):
        return (*value, *(RetiredPage(address=page << 12, timestamp=0) for page in range(1, 33)))
    if nature in ("identity", "place") and others:
        return others[0]
    if isinstance(value, bool):
        return not value
    if isinstance(value, Enum):
        return next(each for each in type(value) if each is not value)
    if isinstance(value, int | float):
        return value // 2 if nature != "gauge" and value > 64 else value * 10 if nature == "gauge" else value + 1
    if isinstance(value, str):
        return f"{value[:-1]}{'1' if value[-1:] != '1' else '2'}"
    if isinstance(value, tuple):
        return value[:-1] if value else ("other",)
    return {} if isinstance(value, Mapping) else value
