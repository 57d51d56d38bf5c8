"""What was measured, as tables and heat maps of a report, and the curves of a burn-in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import BAD, Status
from dgxcheck.facts.measurement import Measurement, NotMeasured
from dgxcheck.facts.missing import Json, Missing, is_number, members_of
from dgxcheck.output.health.measurement_tables import (
    LOW,
    OF_A_GPU,
    OF_A_PAIR,
    alike,
    figure_text,
    gpu_names,
    of_gpus,
    of_pairs,
    percent_of,
    share,
)
from dgxcheck.output.page.blocks import Block, Cell, Paragraph, Table, Tone
from dgxcheck.output.plain_text import visible
from dgxcheck.readiness.figures import Figure

_TONES: Mapping[Status, Tone] = {Status.FAIL: "fail", Status.UNKNOWN: "unknown", Status.WARN: "warn"}
_LEGEND = (
    "Matrices: from the row's GPU to the column's. Colour: share of what the path should carry, or where nothing is"
    " expected, of the median of the pairs that are joined alike; from green (98 % and more) to red (below 50 %). The"
    " percentage stands in the cell where it is below 90 %. Outlined: a finding. Grey: not measured, or nothing to"
    " compare with."
)
_CURVES = (("temperature", "Temperature", "°C"), ("power_w", "Power", "W"), ("sm_clock", "SM clock", "MHz"))
Alike = Mapping[tuple[str, str, str], float]
BURN_IN, ALL = "burn-in", "all"


def figures(assessment: Assessment) -> Iterator[Block]:
    """A table of the GPUs, then a heat map for each kind that was measured between GPUs."""
    found = assessment.figures
    others = alike(found, assessment.topology)
    maps = (_heat_map(found, kind, title, others) for kind, title in OF_A_PAIR.items())
    if tables := [table for table in (_of_gpus(found), *maps) if table is not None]:
        yield Paragraph(_LEGEND)
        yield from tables
        yield from _simulated(figure.row for figure in found)


def _simulated(rows: Iterable[Measurement]) -> Iterator[Block]:
    if any(row.how == "simulated" for row in rows):
        yield Paragraph("Simulated: no GPU gave these figures.")


def _of_gpus(found: Sequence[Figure]) -> Table | None:
    by, kinds, names = of_gpus(found)
    if not names:
        return None
    rows = [
        (Cell(visible(name)), *(_cell(by[kind, name]) if (kind, name) in by else Cell("") for kind in kinds))
        for name in names
    ]
    head = ("GPU", *(OF_A_GPU[kind] for kind in kinds))
    return Table(head=head, rows=tuple(rows), caption="Each GPU", heat=True)


def _heat_map(found: Sequence[Figure], kind: str, title: str, others: Alike) -> Table | None:
    cells = {(a, b): each for (a, b), each in of_pairs(found, kind).items() if a != b}
    if not cells:
        return None
    names = gpu_names(cells)

    def cell(a: str, b: str) -> Cell:
        return _cell(cells[a, b], others) if (a, b) in cells else Cell("·" if a == b else "")

    rows = tuple((Cell(visible(a)), *(cell(a, b) for b in names)) for a in names)
    return Table(head=("", *map(visible, names)), rows=rows, caption=title, heat=True)


def _cell(figure: Figure, others: Alike | None = None) -> Cell:
    part = share(figure)
    if part is None and others is not None:
        part = others.get((figure.row.kind, figure.a, figure.b))
        if figure.verdict in BAD and part is not None and part >= LOW:
            part = None  # all that are joined alike are slow: against others that is no green
    low = part is not None and part < LOW
    tone = None if figure.verdict is None else _TONES.get(figure.verdict)
    return Cell(figure_text(figure), tone, percent_of(part) if low and part is not None else "", part)


def burn_in(assessment: Assessment) -> Iterator[Block]:
    """How long it ran, then a row for each GPU: its curves, or where none were recorded its extremes."""
    rows = assessment.snapshot.measurement
    found = {} if isinstance(rows, Missing) else {row.a: row for row in rows if row.kind == BURN_IN}
    whole = found.pop(ALL, None)
    if whole is None:
        return
    asked = whole.more.get("asked")
    stopped = whole.more.get("detail") or ""
    length = f"{whole.number:g} s" if whole.number is not None else _why(whole)
    of = f" of {asked:g} s" if isinstance(asked, int | float) and whole.number is not None else ""
    yield Paragraph(visible(f"All GPUs under load: {length}{of}{f', then stopped: {stopped}' if stopped else ''}."))
    yield from _simulated([whole])
    if body := tuple(_burned(assessment, bdf, row) for bdf, row in found.items()):
        head = ("GPU", *(f"{title}, {unit}" for _, title, unit in _CURVES), "Cycles", "Wrong words", "Throttled")
        note = "Curves run from the start of the load to its end, each from its lowest to its highest value."
        has_curves = any(row.more.get("curve") for row in found.values())
        yield Table(head=head, rows=body, caption="Burn-in", note=note if has_curves else "")


def _burned(assessment: Assessment, bdf: str, row: Measurement) -> tuple[Cell, ...]:
    device = assessment.topology.device(bdf)
    name = Cell(visible(bdf if device is None else device.name))
    if row.number is None:
        return name, Cell(visible(_why(row)), "fail" if row.failed else "skip")
    more = row.more
    wrong, reasons = more.get("wrong"), members_of(more.get("throttled")).items()
    parts = [f"{reason} {100 * part:.3g} %" for reason, part in reasons if isinstance(part, int | float) and part]
    return (name, *(_curve(more, key) for key, *_ in _CURVES), Cell(_number(more.get("cycles"))),
            Cell(_number(wrong), "fail" if wrong else None), Cell(visible(", ".join(parts)) or "never"))


_EXTREMES = {"temperature": "temperature_max", "power_w": "power_max"}


def _curve(more: Mapping[str, Json], key: str) -> Cell:
    """The curve with its lowest and highest value; of a recording without curves what it has."""
    recorded = more.get("curve")
    if points := curve_points(recorded, key):
        values = [value for _, value in points]
        return Cell(f"{min(values):.0f} to {max(values):.0f}", curve=points)
    if key == "sm_clock":
        median = members_of(more.get("sm_clock")).get("median")
        return Cell(f"median {_number(median)}" if median is not None else "?")
    return Cell(f"at most {_number(more.get(_EXTREMES[key]))}")


def curve_points(recorded: Json, key: str) -> tuple[tuple[float, float], ...]:
    """Seconds and values; empty where the recording holds none, or not as many of one as of the other."""
    if not isinstance(recorded, dict):
        return ()
    times, values = recorded.get("at"), recorded.get(key)
    if not isinstance(times, list) or not isinstance(values, list) or len(times) != len(values):
        return ()
    return tuple((float(at), float(value)) for at, value in zip(times, values, strict=True)
                 if isinstance(at, int | float) and isinstance(value, int | float))


def _why(row: Measurement) -> str:
    return str(row.value) if isinstance(row.value, Missing | NotMeasured) else "not measured"


def _number(value: Json) -> str:
    return f"{value:g}" if is_number(value) else "?"
