"""Readings of a GPU that bound each other, by their rows: a part and its whole, a value and its highest, or any."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import chain

from dgxcheck.checks.consistency.contradiction import Contradiction, Facts, number
from dgxcheck.checks.consistency.contradiction import reading as read_at
from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.finding import Evidence
from dgxcheck.components.device_facts import records_of
from dgxcheck.facts.nature import Fact, rows_of
from dgxcheck.facts.nvml.readings import ClockPair, Clocks, RowHistogram
from dgxcheck.facts.record import Record, remembered
from dgxcheck.facts.values import Rows, described, label, leaves, option, text, where
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Device

_LIMITS = frozenset(("low", "high", "most", "part_of"))
_INNER = (Clocks, ClockPair, RowHistogram)
"""Records whose limits are those of the field that holds them."""
_Reading = tuple[Record, Rows, float]


def never_above(box: Box, gpu: Device, _: Facts) -> Iterator[Contradiction]:
    """A value above the highest that it can have. A hypervisor shows its guest PCIe links of its own making."""
    for reading, most in _bounded(box, gpu):
        hidden = "link" in reading[1][-1].name and guest(box) is not None
        if reading[2] > most[2] and not hidden:
            words = f"{described(*reading[1:])} above {text(*most[1:])}"
            yield Contradiction(words, (_evidence(*reading), _evidence(*most)))


def told_twice(box: Box, gpu: Device, facts: Facts) -> Iterator[Contradiction]:
    """The PCIe link by NVML and by sysfs. Lanes do not come and go between two readings. The generation does: a GPU
    that NVML woke is faster than in sysfs; slower, in its highest performance state, is a contradiction. A hypervisor
    shows its guest links of its own making."""
    awake = number(facts, "gpu_clocks.performance_state") == 0
    for name, words in (("link_width", "lanes"), ("link_gen", "generation")) if guest(box) is None else ():
        paths = f"gpu_pcie.{name}", f"pci.{name}"
        nvml, sysfs = (number(facts, path) for path in paths)
        if nvml is None or sysfs is None:
            continue
        if (nvml != sysfs and name == "link_width") or (awake and nvml < sysfs):
            evidence = tuple(read_at(box, gpu, path) for path in paths)
            yield Contradiction(f"PCIe {words} {nvml:g} by NVML, {sysfs:g} by sysfs", evidence)


def ranges(box: Box, gpu: Device, _: Facts) -> Iterator[Contradiction]:
    """A value that no GPU has: power and temperature of silicon that runs are not 0."""
    for reading in _readings(box, gpu):
        low, high = option(reading[1], "low"), option(reading[1], "high")
        if (isinstance(low, int) and reading[2] < low) or (isinstance(high, int) and reading[2] > high):
            yield Contradiction(f"{described(*reading[1:])} is impossible", (_evidence(*reading),))


def parts(box: Box, gpu: Device, _: Facts) -> Iterator[Contradiction]:
    """Parts that are more than their whole."""
    wholes: dict[tuple[int, Rows, float], tuple[_Reading, list[_Reading]]] = {}
    for reading in _readings(box, gpu):
        for whole in (_read(reading[0], of) for of in _beside(reading[1], "part_of")):
            if whole is not None:
                wholes.setdefault((id(whole[0]), *whole[1:]), (whole, []))[1].append(reading)
    for whole, those in wholes.values():
        values = [value for *_, value in those]
        if sum(values) > whole[2] >= max(values):
            names = " and ".join(label(of) for _, of, _ in those)
            words = f"{names} {text(whole[1], sum(values))} above {text(*whole[1:])}"
            yield Contradiction(words, tuple(_evidence(*each) for each in (*those, whole)))


def spare_rows(box: Box, gpu: Device, _: Facts) -> Iterator[Contradiction]:
    """A row remapper that answers and counts no memory bank at all."""
    of_banks = [reading for reading in _readings(box, gpu) if reading[1][-1].record is RowHistogram]
    if of_banks and not any(value for *_, value in of_banks):
        yield Contradiction("the row remapper counts no memory bank", (_evidence(*of_banks[0]),))


def is_compared(box: Box, gpu: Device) -> bool:
    """Was anything read that bounds another value?"""
    return next(_bounded(box, gpu), None) is not None


def _bounded(box: Box, gpu: Device) -> Iterator[tuple[_Reading, _Reading]]:
    """Each reading with the one that it cannot exceed."""
    for reading in _readings(box, gpu):
        for of in _beside(reading[1], "most"):
            if (most := _read(reading[0], of)) is not None:
                yield reading, most


@cache
def _beside(of: Rows, what: str) -> tuple[Rows, ...]:
    """The rows of what bounds a value: of ``current.sm``, where ``current`` names ``max``, those of ``max.sm``."""
    named = ((depth, rows_of(row.record)[row.more[what]]) for depth, row in enumerate(of) if what in row.more)
    return tuple((*of[:depth], row, *of[depth + 1 :]) for depth, row in named)


def _readings(box: Box, gpu: Device) -> tuple[_Reading, ...]:
    """Of both times that counters were read."""
    found = (_readings_of(snapshot, gpu.bdf or "") for snapshot in box.readings)
    return tuple(chain.from_iterable(found))


@remembered(64)
def _readings_of(snapshot: Snapshot, bdf: str) -> tuple[_Reading, ...]:
    """Every number of a record that has limits, or holds a record that may."""
    return tuple(
        (record, of, value)
        for record in records_of(snapshot, bdf)
        if _has_limits(type(record))
        for _, of, value in leaves(record, _may_have_limits)
        if isinstance(value, int | float)
    )


@cache
def _has_limits(kind: type[Record]) -> bool:
    return any(_LIMITS & row.more.keys() or "prefix" in row.more for row in rows_of(kind).values())


def _may_have_limits(row: Fact) -> bool:
    of_numbers = row.record.__annotations__[row.name].startswith(("int", "float"))
    return "prefix" in row.more or bool(_LIMITS & row.more.keys()) or (of_numbers and row.record in _INNER)


def _read(record: Record, of: Rows) -> _Reading | None:
    value: object = record
    for row in of:
        value = getattr(value, row.name, None)
    return (record, of, value) if isinstance(value, int | float) else None


def _evidence(record: Record, of: Rows, value: float) -> Evidence:
    return Evidence(where(record, of), value)
