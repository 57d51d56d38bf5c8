"""One fact of one device changed, and whether a check sees it.

A check that does not read a field gives the same findings whatever the field holds, so only the checks that read it are
run again; where the wiring itself changes, all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from enum import Enum
from typing import Any, get_args

from findings_golden import plain as run  # of thousands of facts none is noted
from sample import BY_NAME
from traced_reads import traced

from dgxcheck.assessment import assess
from dgxcheck.assessment.machine import topology_of
from dgxcheck.assessment.request import Request
from dgxcheck.checks.by_nature.last_run import CHECK as LAST_RUN
from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import BAD, Finding
from dgxcheck.checks.registry import CHECKS
from dgxcheck.checks.siblings.kinds import Kind, siblings
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nature import Fact, rows_of
from dgxcheck.facts.record import Record, fields, replace
from dgxcheck.profiles.library import boards_for
from dgxcheck.survey import WIRING, Snapshot

NO_DEVICES = ("pci_names", "slots", "modules", "host", "memlock", "units", "kernel_log", "measurement", "stated")
"""Fields of the snapshot that hold no facts of devices."""
Path = tuple[str | int, ...]
"""Fields and places in tuples, from the snapshot down to a value."""
FILE = Missing(Gap.UNSUPPORTED, "/sys/changed-by-a-test")
ANSWER = Missing(Gap.UNSUPPORTED, "nvmlChangedByATest", "NVML 3: Not Supported", 3)


class Change(Record):
    """One value in place of another."""

    fact: str
    """``GpuPower.limit_mw``"""
    device: str
    how: str
    """``gap``, ``zero``, ``double``, ``next``, ``other``, ``empty``"""
    path: Path
    value: object
    alone: bool
    """Has the device no sibling on this box?"""


class Changeable:
    """One shipped box, judged, with what each check read."""

    def __init__(self, name: str) -> None:
        judged = assess(BY_NAME[name], Request(profile="k80-x8") if name == "k80-x8" else Request())
        self.box = Box(
            snapshot=judged.snapshot, topology=judged.topology, gpus=judged.topology.gpus, settings=judged.settings,
            choice=judged.choice, boards=boards_for(judged.choice),
        )  # fmt: skip
        self._readers: dict[tuple[int, str], set[str]] = defaultdict(set)
        self._found: dict[str, list[Finding]] = {}
        self._roles: dict[int, tuple[str, Hashable]] = {}
        last = [check for check in CHECKS if check.last]
        for check in (*(check for check in CHECKS if not check.last), *last):
            self._found[check.id] = self._traced(self._with_others(self._found, check), check)

    def _traced(self, box: Box, check: Check) -> list[Finding]:
        own, readers = check.id, self._readers

        def heard(record: object, name: str, _: str) -> None:
            readers[id(record), name].add(own)

        with traced(heard):
            return list(run(box, [check]))

    def changes(self) -> Iterator[Change]:
        """Every change of every fact of one device of each kind and role; the facts take turns with the devices."""
        for (_, _, role), rows in self._alike().items():
            facts = [*dict.fromkeys(fact for path, row in rows for _, fact, _ in _values(row, path, _name(row)))]
            for number, fact in enumerate(facts):
                having = [
                    (path, row)
                    for path, row in rows
                    if any(each == fact for _, each, _ in _values(row, path, _name(row)))
                ]
                path, row = having[number % len(having)]
                at, _, value = next(each for each in _values(row, path, _name(row)) if each[1] == fact)
                gap = ANSWER if fact.startswith(("Gpu", "NvLink", "P2p")) else FILE
                for how, new in _others(value, self._annotation(at), gap):
                    yield Change(
                        fact=fact, device=_device(row), how=how, path=at, value=new, alone=role is None or len(rows) < 2
                    )

    def roles(self) -> dict[int, tuple[str, Hashable]]:
        """Kind and role of each record of a device that has siblings, by the record's id."""
        if not self._roles:
            kinds: tuple[Kind, ...] = get_args(Kind)
            self._roles = {id(row): (each.kind, each.role) for each in siblings(self.box, kinds) for row in each.rows}
        return self._roles

    def sees(self, change: Any, growth: Growth | None = None) -> bool:
        """Does a check find more than in the box as it is?"""
        snapshot = put(self.box.snapshot, change.path, change.value)
        topology = topology_of(snapshot) if change.path[0] in WIRING else self.box.topology
        changed = replace(self.box, snapshot=snapshot, topology=topology, gpus=topology.gpus)
        rewired = topology is not self.box.topology and _wiring(topology) != _wiring(self.box.topology)
        read = {*self._readers_of(change.path), LAST_RUN}
        checks = [check for check in CHECKS if rewired or check.id in read]
        if growth is not None:
            changed, checks = replace(changed, growth=growth), [*CHECKS]
        found = dict(self._found)
        for check in (*(check for check in checks if not check.last), *(check for check in checks if check.last)):
            found[check.id] = list(run(self._with_others(found, check, changed), [check]))
            if any(finding.status in BAD for finding in found[check.id]):
                return True
        return False

    def _with_others(self, found: dict[str, list[Finding]], check: Check, box: Box | None = None) -> Box:
        others = tuple(each for findings in found.values() for each in findings) if check.last else ()
        return replace(box or self.box, found=others)

    def rows_of(self, path: Path) -> tuple[Fact, ...]:
        """The rows of the fields on the way to a value."""
        found: list[Fact] = []
        at: Any = self.box.snapshot
        for step in path:
            if isinstance(at, Record) and not isinstance(at, Snapshot):
                found.append(rows_of(type(at))[str(step)])
            at = getattr(at, str(step)) if isinstance(at, Record) else at[step]
        return tuple(found)

    def kind_of(self, path: Path) -> str:
        """The kind of the device that the value is of; empty where it has no siblings."""
        roles, kind = self.roles(), ""
        at: Any = self.box.snapshot
        for step in path:
            at = getattr(at, str(step)) if isinstance(at, Record) else at[step]
            kind = roles.get(id(at), (kind,))[0]
        return kind

    def _readers_of(self, path: Path) -> set[str]:
        owner, field = self._owner(path)
        return self._readers[id(owner), field]

    def _annotation(self, path: Path) -> str:
        owner, field = self._owner(path)
        return str(type(owner).__annotations__[field])

    def _owner(self, path: Path) -> tuple[Record, str]:
        """The record and the field in which the path ends."""
        at: Any = self.box.snapshot
        owner: Record = self.box.snapshot
        field = str(path[0])
        for step in path:
            if isinstance(at, Mapping):
                break
            if isinstance(at, Record):
                owner, field = at, str(step)
                at = getattr(at, field)
            else:
                at = at[step]
        return owner, field

    def _alike(self) -> dict[tuple[str, str, Hashable], list[tuple[Path, Record]]]:
        """Rows of the snapshot, each with its path, by field and role of the device."""
        roles = self.roles()
        groups: dict[tuple[str, str, Hashable], list[tuple[Path, Record]]] = defaultdict(list)
        for name in [name for name in fields(self.box.snapshot) if name not in NO_DEVICES]:
            for path, row in _rows(getattr(self.box.snapshot, name), (name,)):
                groups[name, _name(row), roles.get(id(row))].append((path, row))
        return groups


def _rows(value: object, path: Path) -> Iterator[tuple[Path, Record]]:
    """The records of a field; those in the fields of its one record; ports in place of the record that lists them."""
    if isinstance(value, Record) and not isinstance(value, Missing):
        for name in fields(value):
            yield from _rows(getattr(value, name), (*path, name))
    elif isinstance(value, tuple):
        for number, row in enumerate(value):
            if isinstance(row, Record) and not isinstance(row, Missing):
                ports = [*_rows(getattr(row, "ports", ()), (*path, number, "ports"))]
                yield from ports or [((*path, number), row)]


def _values(value: object, path: Path, fact: str) -> Iterator[tuple[Path, str, object]]:
    """Every value in a record, with its path and fact; gaps are none. A tuple and a mapping are one value."""
    if isinstance(value, Record) and not isinstance(value, Missing):
        for name in fields(value):
            yield from _values(getattr(value, name), (*path, name), f"{fact}.{name}")
    elif isinstance(value, tuple) and value and isinstance(value[0], Record):
        yield path, fact, value
        yield from _values(value[0], (*path, 0), fact)
    elif not isinstance(value, Missing):
        yield path, fact, value


def _others(value: object, annotation: str, gap: Missing) -> Iterator[tuple[str, object]]:
    """Other values of the same type, and a gap where the field may have one; nothing for a key, which is no fact."""
    if annotation in ("str", "int"):
        return
    if isinstance(value, bool):
        yield "other", not value
    elif isinstance(value, Enum):
        yield "other", next(each for each in type(value) if each is not value)
    elif isinstance(value, int | float):
        yield "next", value + 1
        yield from [("zero", 0), ("double", value * 2)] if value else [("many", 1000)]
    elif isinstance(value, str):
        yield "other", f"{value[:-1]}{'x' if value[-1:] != 'x' else 'y'}"
    elif isinstance(value, tuple):
        yield "empty", ()
    elif isinstance(value, Mapping):
        yield "empty", {}
    if "Missing" in annotation:
        yield "gap", gap


def put(whole: Any, path: Path, value: object) -> Any:
    """The whole with another value at the end of the path."""
    if not path:
        return value
    step, *rest = path
    if isinstance(step, int):
        return (*whole[:step], put(whole[step], tuple(rest), value), *whole[step + 1 :])
    if isinstance(whole, Mapping):
        return {**whole, step: put(whole[step], tuple(rest), value)}
    return replace(whole, **{step: put(getattr(whole, step), tuple(rest), value)})


def _wiring(topology: Any) -> object:
    return topology.links, tuple(replace(device, function=None) for device in topology.devices)


def _name(row: Record) -> str:
    return type(row).__name__


def _device(row: Record) -> str:
    return str(next((getattr(row, name) for name in ("bdf", "name", "device", "node", "a") if hasattr(row, name)), ""))
