"""What figures tell by themselves: runs, directions and GPUs or pairs of one kind that should be alike."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, Status
from dgxcheck.checks.engine.siblings import siblings
from dgxcheck.checks.measurement.expectations import amount
from dgxcheck.checks.measurement.lookup import P2P, Figures, device, evidence, way
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.expected import to_host

FEWEST = 2
"""A class of so many can be compared."""


def warned(row: Measurement, what: str, other: float, *more: Measurement) -> Judgement:
    """A warning with the figure that it is compared with."""
    seen = tuple(evidence(each) for each in (row, *more))
    return Judgement(Status.WARN, what, row.number, round(other, 3), row.unit, seen)


def runs(box: Box, row: Measurement) -> Judgement | None:
    """Runs of one GPU or pair that differ: on another NUMA node, or while it was busy."""
    if not row.runs or not _below(min(row.runs), max(row.runs), box.settings.limit("measure.runs")):
        return None
    low, high = min(row.runs), max(row.runs)
    message = (
        f"{way(box, row)}: runs of {row.kind} differ, {amount(low)} and {amount(high)} {row.unit}:"
        " another NUMA node, or other work at the time"
    )
    return warned(row, message, high)


def slower_than(box: Box, row: Measurement, other: Measurement | None, limit: str, words: str) -> Judgement | None:
    """A figure that is below another one of the same tool and method."""
    if other is None or row.number is None or other.number is None or other.tool != row.tool or other.how != row.how:
        return None
    if not _below(row.number, other.number, box.settings.limit(limit)):
        return None
    message = f"{way(box, row)} {row.kind} {amount(row.number)} {row.unit}, {words} {amount(other.number)}"
    return warned(row, message, other.number, other)


def below_class(box: Box, row: Measurement, alike: Iterable[Measurement], limit: str, words: str) -> Judgement | None:
    """A figure that is below the median of its class."""
    same = [each.number for each in alike if each.number is not None and each.tool == row.tool and each.how == row.how]
    if row.number is None or len(same) < FEWEST:
        return None
    middle = median(same)
    if not _below(row.number, middle, box.settings.limit(limit)):
        return None
    message = f"{way(box, row)} {row.kind} {amount(row.number)} {row.unit}, {words} {amount(middle)}"
    return warned(row, message, middle)


def gpus_alike(box: Box, found: Figures, row: Measurement) -> list[Measurement]:
    """The same kind at GPUs of the same model, this one too; for host copies those with a link as wide."""
    gpu = device(box, row.a)
    if gpu is None:
        return []
    ids = [row.a, *(str(each.bdf) for each in siblings(box, gpu))]
    if row.kind in ("host-to-device", "device-to-host"):
        own = _to_host(box, row.a)
        ids = [id for id in ids if _to_host(box, id) == own]
    rows = (found.of(row.kind, id) for id in ids)
    return [each for each in rows if each is not None]


def _to_host(box: Box, id: str) -> float | None:
    gpu = device(box, id)
    line = to_host(gpu, box.topology).line_gbs if gpu is not None else None
    return None if isinstance(line, Missing) else line


def pairs_alike(found: Figures, row: Measurement) -> list[Measurement]:
    """The same kind between pairs that the same number of links, or the same kind of PCI path, joins."""
    own = found.classes.get((row.a, row.b))
    if own is None or row.kind not in P2P:
        return []
    alike = [each for each in found.kinds(row.kind) if found.classes.get((each.a, each.b)) == own]
    return [each for each in alike if not denied(found, each.a, each.b)]


def denied(found: Figures, a: str, b: str) -> bool:
    """Does the driver offer these two no access to each other? Tools measure the way through the host then."""
    return any(row is not None and row.value is False for row in (found.of("access", a, b), found.of("access", b, a)))


def again(row: Measurement) -> str:
    """How often a low figure was measured again."""
    retries = row.more.get("retries")
    times = len(retries) if isinstance(retries, list) else 0
    return "" if not times else f", the best of {times + 1} measurements"


def _below(low: float, high: float, percent: float) -> bool:
    return low < high * (1 - percent / 100)
