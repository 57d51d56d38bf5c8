"""Which device differs from its siblings, and in which fact: one comparison for every kind of device, by the rows of
the facts alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping
from functools import cache

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import BAD, Evidence, Finding, Subject
from dgxcheck.checks.siblings.kinds import Kind, Sibling, siblings
from dgxcheck.facts.faults import DEVICE_DEAD, Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.memory import NumaMemory
from dgxcheck.facts.nature import COMPARED, Fact, row
from dgxcheck.facts.nvml.gpu import GpuModes
from dgxcheck.facts.nvml.readings import GpuMemory, GpuPcie, GpuPower
from dgxcheck.facts.pci import ConfigSpace, Control, Express, PciBars, PciFunction
from dgxcheck.facts.record import Record, remembered
from dgxcheck.facts.typical import gathered, multimode
from dgxcheck.facts.values import (
    UNREAD,
    Leaf,
    Picked,
    Rows,
    Value,
    as_json,
    holds_many,
    is_of,
    is_same,
    leaves,
    option,
    where,
)

OF_THE_DRIVER = ("Gpu", "NvLink")
"""Beginnings of the names of NVML's records: what one GPU does not answer is reported by driver.answers."""
COVERED: Mapping[frozenset[object], frozenset[FaultKind]] = {
    frozenset((GpuMemory.total,)): frozenset({Fault.ECC_OFF, Fault.MEMORY_SIZE}),
    frozenset((GpuPcie.link_width, PciFunction.link_width)): frozenset({Fault.LINK_NARROW}),
    frozenset((GpuPcie.max_link_gen, PciFunction.max_link_gen)): frozenset({Fault.LINK_SLOW}),
    frozenset((GpuPcie.bar1_total, PciBars.bars, PciBars.bar1)): frozenset({Fault.BAR1_SMALL, Fault.BAR1_MISMATCH}),
    frozenset((GpuPower.limit_mw,)): frozenset({Fault.POWER_CAPPED}),
    frozenset((Control.target_gen,)): frozenset({Fault.LINK_SLOW, Fault.LINK_LIMITED}),
    frozenset((Control.memory_space, Control.bus_master)): frozenset({Fault.DEVICE_DISABLED}),
    frozenset((Express.max_payload,)): frozenset({Fault.MAX_PAYLOAD}),
    frozenset((Express.max_read_request,)): frozenset({Fault.READ_REQUEST}),
    frozenset((NumaMemory.memory_kb,)): frozenset({Fault.MEMORY_MISSING}),
}
"""Faults, of the same device or of what a bridge leads to, that a difference follows from. What is evidence of a bad
finding needs no entry, but where its file holds other facts too."""
BLAMED: Mapping[object, str] = {ConfigSpace.acs: "ACS setting"}
"""Parts of the device: where a finding blames one, the difference is known."""
_NOT_COMPARED = DEVICE_DEAD | {Fault.MODULE_NOT_LOADED, Fault.HCA_UNLISTED, Fault.NVSWITCH_MISSING}
"""Faults of devices that are dead, or of which nothing tells what they are for without their driver."""
_Value = tuple[Sibling, Leaf, Record]


class Odd(Record, kw_only=False):
    """One fact of one device that differs, and the value that most of its siblings have."""

    sibling: Sibling
    leaf: Leaf
    record: Record
    usual: Value
    majority: bool
    """False where no value is that of more than half: then every value is odd."""

    @property
    def rows(self) -> Rows:
        return self.leaf[1]

    @property
    def value(self) -> Value:
        return self.leaf[2]

    @property
    def evidence(self) -> Evidence:
        """The file or query, and the value."""
        return Evidence(where(self.record, self.rows), as_json(self.value))


class Comparison(Record, kw_only=False):
    """What differs, by device; and the devices of which at least one fact is as usual, with their kinds."""

    odd: Mapping[Subject, list[Odd]]
    alike: Mapping[Subject, Kind]


def compared(box: Box, kinds: Collection[Kind], only: object = None) -> Comparison:
    """Every fact of every device of these kinds that has siblings, or ``only`` one field.

    A fact is left out where another check reports it: where it is evidence of a bad finding, or follows from its
    fault. A device that is dead is not compared.
    """
    odd: dict[Subject, list[Odd]] = {}
    alike: dict[int, Sibling] = {}
    """By identity: the same few siblings stand in hundreds of groups."""
    for group in _whatever_position(_grouped(box, kinds, only)):
        first = group[0][1][2]
        if any(leaf[2] != first for _, leaf, _ in group):
            group = [(own, leaf, record) for own, leaf, record in group
                     if not is_reported(box, own.subject.bdf, leaf, record, own.below)]  # fmt: skip
            found, as_usual = _of_group(box, group)
            for each in found:
                odd.setdefault(each.sibling.subject, []).append(each)
            alike.update((id(sibling), sibling) for sibling in as_usual)
        elif len(group) > 1 and first != UNREAD:
            alike.update((id(sibling), sibling) for sibling, _, _ in group)
    return Comparison(odd, {sibling.subject: sibling.kind for sibling in alike.values()})


@remembered()
def _bad(box: Box) -> tuple[Finding, ...]:
    return tuple(finding for finding in box.found if finding.status in BAD)


@remembered()
def _places(box: Box) -> frozenset[str]:
    """Where bad findings have their evidence."""
    return frozenset(each.where for finding in _bad(box) for each in finding.judgement.evidence)


def _grouped(box: Box, kinds: Collection[Kind], only: object) -> Mapping[tuple[Hashable, ...], list[_Value]]:
    """Values by what devices have in common whose values are compared; first the position on their boards."""
    dead = {finding.subject.bdf for finding in _bad(box) if finding.judgement.fault in _NOT_COMPARED}
    groups: dict[tuple[Hashable, ...], list[_Value]] = defaultdict(list)
    roles: dict[Hashable, int] = {}
    for sibling in siblings(box, kinds):
        role = roles.setdefault((sibling.kind, sibling.role), len(roles))
        if sibling.subject.bdf is not None and sibling.subject.bdf in dead:
            continue
        picked = _picked(sibling.kind) if only is None else _only(only)
        for record in sibling.rows:
            from_files = not type(record).__name__.startswith(OF_THE_DRIVER)
            for leaf in leaves(record, picked, gaps=from_files):
                if only is not None and leaf[1][-1] is not row(only):
                    continue
                among = option(leaf[1], "among")
                board = sibling.board if among == "board" else None
                within = getattr(sibling, among) if among in ("place", "image", "model") else None
                groups[board, role, leaf[0], within].append((sibling, leaf, record))
    return groups


@cache
def _only(field: object) -> Picked:
    wanted = row(field)
    return lambda each: each is wanted or each.nature == "holder"


@cache
def _picked(kind: Kind) -> Picked:
    """Is a fact compared between devices of a kind? What is known to be good or bad is judged as such."""

    def picked(row: Fact) -> bool:
        if row.nature not in COMPARED:
            return row.nature == "holder"
        other = "differs" in row.more or (row.nature == "state" and "good" in row.more)
        return not other and kind not in row.more.get("differs_in", ())

    return picked


def _whatever_position(groups: Mapping[tuple[Hashable, ...], list[_Value]]) -> Iterator[list[_Value]]:
    """Those at several positions of their boards as one group, where one value is usual at each: the two GPUs of a
    Grace superchip are alike, those of a K80 are not.
    """
    together = gathered((tuple(rest), group) for (_, *rest), group in groups.items())
    for those in together.values():
        if len(those) == 1 or not set.intersection(*({*multimode(leaf[2] for _, leaf, _ in each)} for each in those)):
            yield from those
        else:
            yield [each for group in those for each in group]


def _of_group(box: Box, group: list[_Value]) -> tuple[list[Odd], list[Sibling]]:
    """What could not be read has no vote, and is odd where at least as many siblings could be read."""
    unread = [each for each in group if each[1][2] == UNREAD]
    group = [each for each in group if each[1][2] != UNREAD]
    if not group or len(group) + len(unread) < 2:
        return [], []
    counts = [sum(_equal(box, one, other) for other in group) for one in group]
    most = max(counts)
    usual = group[counts.index(most)]
    majority = 2 * most > len(group)
    odd = [] if most == len(group) else [each for each in group if not (majority and _equal(box, each, usual))]
    found = [Odd(*each, usual[1][2], majority) for each in odd]
    if len(unread) <= len(group):
        found += [Odd(*each, usual[1][2], True) for each in unread]
    return found, [each[0] for each in group if each not in odd]


def _equal(box: Box, one: _Value, other: _Value) -> bool:
    of, a, b = one[1][1], one[1][2], other[1][2]
    if isinstance(a, tuple) and isinstance(b, tuple):
        return sorted(map(str, a)) == sorted(map(str, b)) if option(of, "any_order") else a == b
    shown = of[-1] is row(GpuMemory.total) and (_has_display(box, one[0]) or _has_display(box, other[0]))
    return is_same(of, a, b, box.settings.limit, "gpu.uniform-display" if shown else None)


def _has_display(box: Box, gpu: Sibling) -> bool:
    """Does a display take a part of its memory?"""
    modes = box.gpu(gpu.subject.bdf).modes
    return isinstance(modes, GpuModes) and modes.display_active is True


def is_reported(box: Box, bdf: str | None, leaf: Leaf, record: Record, below: Collection[str] = ()) -> bool:
    """Does a finding of another check follow from this value of a device, or of the bridge above these?"""
    bad, (_, of, value) = _bad(box), leaf
    place = where(record, of)
    if place in _places(box) and (value == UNREAD or not holds_many(place)):
        return True
    faults = {fault for fields, those in COVERED.items() if is_of(of, fields) for fault in those}
    bdfs = {bdf, *below}
    if any(finding.judgement.fault in faults and finding.subject.bdf in bdfs for finding in bad):
        return True
    parts = {part for field, part in BLAMED.items() if is_of(of, frozenset({field}))}
    blamed = (component for finding in bad for component in finding.blames)
    return any(component.part in parts and component.bdf == bdf for component in blamed)
