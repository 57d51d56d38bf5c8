"""What the reference machine was measured at: only where this box was measured too, and not simulated."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.checks.measurement.comparisons import denied
from dgxcheck.checks.measurement.expectations import reference
from dgxcheck.checks.measurement.lookup import Figures, device, figures, name, pairs
from dgxcheck.checks.measurement.untaken import broken, withheld
from dgxcheck.facts.measurement import Measurement, Untaken
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import replace
from dgxcheck.profiles.model import OF_THE_GPUS, Choice
from dgxcheck.score.expectation import Area, Expectation

WRONG = "no wrong word"


def expected(box: Box, choice: Choice) -> Iterator[Expectation]:
    """One expectation per GPU and direction, and per pair of GPUs with a reference for what joins them."""
    box = replace(box, gpus=box.topology.gpus)
    found = figures(box, "")
    if isinstance(found, Judgement):
        return
    for kind, area in _AREAS.items():
        for row in found.kinds(kind):
            number = reference(box, row)
            if number is not None and row.how != "simulated" and device(box, row.a) is not None:
                yield _due(box, area, kind, name(box, row.a), [row], number.value, row.unit, number.source)
    for a, b in pairs(box, found, ("p2p",)):
        rows = found.both("p2p", a, b)
        number = reference(box, rows[0])
        if number is not None and not denied(found, a, b) and all(row.how != "simulated" for row in rows):
            area = "nvlink" if _by_nvlink(found, a, b) else "pcie"
            yield _due(box, area, "p2p", _pair(box, a, b), rows, number.value, rows[0].unit, number.source)
    if choice.how != "gpus" or "integrity" in OF_THE_GPUS:
        yield from _sound(box, found)


_AREAS: dict[str, Area] = {"host-to-device": "pcie", "device-to-host": "pcie", "device-copy": "memory"}


def _by_nvlink(found: Figures, a: str, b: str) -> bool:
    joined = found.classes.get((a, b)) or found.classes.get((b, a))
    return joined is not None and joined[0].startswith("NV")


def _sound(box: Box, found: Figures) -> Iterator[Expectation]:
    """Did the data arrive? 1 where they did."""
    for row in found.kinds("memory-integrity"):
        if row.how != "simulated" and device(box, row.a) is not None:
            yield _due(box, "integrity", "memory", name(box, row.a), [row], 1, "", WRONG, _right)
    for a, b in pairs(box, found, ("p2p-integrity",)):
        rows = found.both("p2p-integrity", a, b)
        if all(row.how != "simulated" for row in rows) and device(box, a) is not None:
            yield _due(box, "integrity", "p2p", _pair(box, a, b), rows, 1, "", WRONG, _right)


def _pair(box: Box, a: str, b: str) -> str:
    return f"{name(box, a)}-{name(box, b)}"


def _figure(row: Measurement) -> float:
    return row.number or 0.0


def _right(row: Measurement) -> float:
    return float(not row.number and row.more.get("timed_out") is not True)


def _due(
    box: Box,
    area: Area,
    what: str,
    subject: str,
    rows: list[Measurement],
    value: float,
    unit: str,
    source: str,
    figure: Callable[[Measurement], float] = _figure,
) -> Expectation:
    """The lowest of the rows; what is within the warning of the check is all there."""
    taken = [_taken(row, figure) for row in rows]
    gaps = [each for each in taken if isinstance(each, Missing)]
    least = min((each for each in taken if not isinstance(each, Missing)), default=0.0)
    covered = not gaps or (least == 0 and len(gaps) < len(taken))
    measured = least if covered else gaps[0]
    enough = not isinstance(measured, Missing) and measured >= value * box.settings.limit("measure.warn") / 100
    return Expectation(
        area=area, id=f"{area}.measured-{what}", subject=subject, measured=measured, expected=value, unit=unit,
        source=source, enough=enough,
    )  # fmt: skip


def _taken(row: Measurement, figure: Callable[[Measurement], float]) -> float | Missing:
    """What failed, hung or arrived wrong counts nothing; what was not tried is not covered."""
    value = row.value
    if isinstance(value, Missing):
        return 0.0 if value.gap is Gap.TIMEOUT else value
    if isinstance(value, Untaken):
        lost = broken(row) or (value.reason == "failed" and withheld(value))
        return 0.0 if lost else Missing(Gap.UNASKED, f"measure {row.kind}", value.detail)
    return figure(row)
