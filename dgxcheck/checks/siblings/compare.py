"""Which device differs from its siblings, and in which fact: one comparison for every kind of device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping
from functools import cache

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import BAD, Evidence
from dgxcheck.checks.siblings.kinds import Kind, Sibling, siblings
from dgxcheck.checks.siblings.leaves import UNREAD, Leaf, Value, leaves
from dgxcheck.checks.siblings.natural import (
    BLAMED,
    BY_BOARD,
    BY_IMAGE,
    BY_PLACE,
    COVERED,
    IN_ANY_ORDER,
    NATURAL,
    NATURAL_OF,
    SLACK,
    TOLERANCE,
)
from dgxcheck.checks.siblings.where import where
from dgxcheck.facts.faults import DEVICE_DEAD
from dgxcheck.facts.gpu import GpuModes
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import multimode

OF_THE_DRIVER = ("Gpu", "NvLink")
"""Beginnings of the names of NVML's records: what one GPU does not answer is reported by driver.answers."""
_Value = tuple[Sibling, Leaf, Record]


class Compared(Record, kw_only=False):
    """One fact of one device, and the value that most of its siblings have."""

    sibling: Sibling
    leaf: Leaf
    row: Record
    usual: Value
    majority: bool
    """False where no value is that of more than half."""
    odd: bool
    """Does it differ? Without a majority every value does."""

    @property
    def evidence(self) -> Evidence:
        """The file or query, and the value."""
        return Evidence(where(self.row, self.leaf), self.leaf.json)


def compared(box: Box, kinds: Collection[Kind], facts: Collection[str] = ()) -> Iterator[Compared]:
    """Every fact of every device of these kinds that has siblings; of ``facts`` alone where some are named.

    A fact is left out where another check reports it: where it is evidence of a bad finding, or follows from its
    fault. A device that is dead is not compared.
    """
    dead = {each.subject.bdf for each in box.found if each.judgement.fault in DEVICE_DEAD}
    groups: dict[tuple[Hashable, ...], list[_Value]] = defaultdict(list)
    for sibling in siblings(box, kinds):
        if sibling.subject.bdf is None or sibling.subject.bdf not in dead:
            for row in sibling.rows:
                from_files = not type(row).__name__.startswith(OF_THE_DRIVER)
                for leaf in leaves(row, _skipped(sibling.kind), gaps=from_files):
                    if not facts or leaf.fact in facts:
                        groups[_group(sibling, leaf)].append((sibling, leaf, row))
    reported = _reported(box)
    for group in _whatever_position(groups):
        yield from _of_group(box, group, reported)


@cache
def _skipped(kind: Kind) -> frozenset[str]:
    """The facts that are not compared between devices of a kind."""
    return frozenset(NATURAL.keys() | NATURAL_OF.get(kind, {}).keys())


def _whatever_position(groups: Mapping[tuple[Hashable, ...], list[_Value]]) -> Iterator[list[_Value]]:
    """Those at several positions of their boards as one group, where one value is usual at each: the two GPUs of a
    Grace superchip are alike, those of a K80 are not.
    """
    together: dict[Hashable, list[list[_Value]]] = defaultdict(list)
    for (_, *rest), group in groups.items():
        together[tuple(rest)].append(group)
    for those in together.values():
        usual = [{*multimode(leaf.value for _, leaf, _ in group)} for group in those]
        if set.intersection(*usual):
            yield [each for group in those for each in group]
        else:
            yield from those


def _group(sibling: Sibling, leaf: Leaf) -> tuple[Hashable, ...]:
    """What devices have in common whose values of this fact are compared; first the position on their boards."""
    place = sibling.place if leaf.fact in BY_PLACE else None
    board = sibling.board if leaf.fact in BY_BOARD else None
    image = sibling.image if leaf.fact in BY_IMAGE else None
    return board, sibling.kind, sibling.role, leaf.name, place, image


def _of_group(box: Box, group: list[_Value], reported: Collection[str]) -> Iterator[Compared]:
    """What could not be read has no vote, and is odd where at least as many siblings could be read."""
    alike = len({leaf.value for _, leaf, _ in group}) == 1
    if not alike:
        group = [each for each in group if not _is_reported(box, *each, reported)]
    unread = [each for each in group if each[1].value == UNREAD]
    group = [each for each in group if each[1].value != UNREAD]
    if not group or len(group) + len(unread) < 2:
        return
    counts = [len(group) if alike else sum(_equal(box, one, other) for other in group) for one in group]
    most = max(counts)
    usual = group[counts.index(most)]
    majority = 2 * most > len(group)
    for one in group:
        odd = most < len(group) and not (majority and _equal(box, one, usual))
        yield Compared(*one, usual[1].value, majority, odd)
    for one in unread if len(unread) <= len(group) else ():
        yield Compared(*one, usual[1].value, True, True)


def _equal(box: Box, one: _Value, other: _Value) -> bool:
    fact, a, b = one[1].fact, one[1].value, other[1].value
    if isinstance(a, tuple) and isinstance(b, tuple):
        return sorted(map(str, a)) == sorted(map(str, b)) if fact in IN_ANY_ORDER else a == b
    limit = TOLERANCE.get(fact)
    if a == b or limit is None or not isinstance(a, int | float) or not isinstance(b, int | float):
        return a == b
    if fact == "GpuMemory.total" and (_has_display(box, one[0]) or _has_display(box, other[0])):
        limit = "gpu.uniform-display"
    return abs(a - b) <= max(max(a, b) * box.settings.limit(limit) / 100, SLACK.get(fact, 0))


def _has_display(box: Box, gpu: Sibling) -> bool:
    """Does a display take a part of its memory?"""
    modes = box.gpu(gpu.subject.bdf).modes
    return isinstance(modes, GpuModes) and modes.display_active is True


def _reported(box: Box) -> frozenset[str]:
    """Files and queries that are evidence of a bad finding."""
    bad = (found for found in box.found if found.status in BAD)
    return frozenset(each.where for found in bad for each in found.judgement.evidence)


def _is_reported(box: Box, sibling: Sibling, leaf: Leaf, row: Record, reported: Collection[str]) -> bool:
    if where(row, leaf) in reported:
        return True
    faults = {fault for fact in COVERED if f"{leaf.fact}.".startswith(f"{fact}.") for fault in COVERED[fact]}
    bdfs = {sibling.subject.bdf, *sibling.below}
    if any(each.judgement.fault in faults and each.subject.bdf in bdfs for each in box.found):
        return True
    parts = {BLAMED[fact] for fact in BLAMED if f"{leaf.fact}.".startswith(f"{fact}.")}
    blamed = (component for each in box.found for component in each.blames)
    return any(each.part in parts and each.bdf == sibling.subject.bdf for each in blamed)
