"""What a reference machine measured, as expectations of the figures of a box."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.checks.measurement.expectations import reference
from dgxcheck.checks.measurement.failures import has_failed, is_withheld, measured_figures
from dgxcheck.checks.measurement.lookup import Figures, device, gpu_name, pairs
from dgxcheck.facts.measurement import Measurement, NotMeasured
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import replace
from dgxcheck.profiles.model import Number, SelectedProfile
from dgxcheck.score.expectation import Area, Expectation, of_number
from dgxcheck.score.gpus import area_applies

INTACT = Number(1, "no wrong words")


def expected_figures(box: Box, choice: SelectedProfile) -> Iterator[Expectation]:
    """One expectation per GPU and direction, per pair of GPUs whose path has a reference, and of intact data."""
    box = replace(box, gpus=box.topology.gpus)
    if isinstance(figures := measured_figures(box, ""), Judgement):
        yield from _unmeasured(box)
        return
    for kind, area in {**_AREAS, "p2p": "pcie", **_INTACT}.items():
        if area != "integrity" or area_applies(area, choice):
            yield from _of_kind(box, figures, kind, area)


def _of_kind(box: Box, figures: Figures, kind: str, area: Area) -> Iterator[Expectation]:
    """Of each GPU, or each pair of them; data are intact where no word was wrong."""
    measured = (
        [((a, b), figures.each_way(kind, a, b)) for a, b in pairs(box, figures, (kind,))] if kind.startswith("p2p")
        else [((row.a,), [row]) for row in figures.of_kinds(kind)]
    )  # fmt: skip
    for ends, rows in measured:
        number = INTACT if kind in _INTACT else reference(box, rows[0])
        unusable = device(box, ends[0]) is None or any(row.how == "simulated" for row in rows)
        if number is None or unusable or (kind == "p2p" and figures.access_refused(*ends)):
            continue
        by_nvlink = kind == "p2p" and _by_nvlink(figures, *ends)
        subject = "-".join(gpu_name(box, end) for end in ends)
        what = kind.removesuffix("-integrity")
        yield _expectation(box, "nvlink" if by_nvlink else area, what, subject, rows, number)


_AREAS: dict[str, Area] = {"host-to-device": "pcie", "device-to-host": "pcie", "device-copy": "memory"}
_INTACT: dict[str, Area] = {"memory-integrity": "integrity", "p2p-integrity": "integrity"}


def _unmeasured(box: Box) -> Iterator[Expectation]:
    """What measuring would have given of each GPU, where it was tried and nothing could be measured."""
    why = NotMeasured(reason="dependency-failed", detail="nothing was measured")
    for kind, area in _AREAS.items():
        for gpu in box.gpus:
            row = Measurement(
                kind=kind, a=gpu.bdf or "", b="", value=why, unit="GB/s", method="", tool="", how="measured",
                samples=(), runs=(), more={},
            )  # fmt: skip
            if (number := reference(box, row)) is not None:
                yield _expectation(box, area, kind, gpu.name, [row], number)


def _by_nvlink(figures: Figures, a: str, b: str) -> bool:
    pair_class = figures.classes.get((a, b)) or figures.classes.get((b, a))
    return pair_class is not None and pair_class[0].startswith("NV")


def _expectation(box: Box, area: Area, what: str, subject: str, rows: list[Measurement], number: Number) -> Expectation:
    """An expectation of the lowest row; a figure above the check's warning threshold counts in full."""
    figures = [_figure(row, number) for row in rows]
    gaps = [reading for reading in figures if isinstance(reading, Missing)]
    least = min((reading for reading in figures if not isinstance(reading, Missing)), default=0.0)
    covered = not gaps or (least == 0 and len(gaps) < len(figures))
    measured = least if covered else gaps[0]
    enough = not isinstance(measured, Missing) and measured >= number.value * box.settings.limit("measure.warn") / 100
    unit = "" if number is INTACT else rows[0].unit
    return replace(of_number(number, area, f"{area}.measured-{what}", subject, measured, unit), enough=enough)


def _figure(row: Measurement, number: Number) -> float | Missing:
    """The figure of a measurement; 0 if it failed, timed out or moved wrong data, Missing if it was not tried."""
    if isinstance(value := row.value, Missing):
        return 0.0 if value.gap is Gap.TIMEOUT else value
    if isinstance(value, NotMeasured):
        failed = has_failed(row) or (value.reason == "failed" and is_withheld(value))
        return 0.0 if failed else Missing(Gap.UNASKED, f"measure {row.kind}", str(value))
    if number is INTACT:
        return float(not row.number and row.more.get("timed_out") is not True)
    return row.number or 0.0
