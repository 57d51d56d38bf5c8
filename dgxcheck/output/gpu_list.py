"""The list of GPUs: a line each, or JSON."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.assessment.gpu_list import ListedGpu
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.output.json_values import compact, either, head, members, source
from dgxcheck.output.plain_text import fit_columns, hidden_columns, lines, shown, visible
from dgxcheck.source.protocol import Origin

SCHEMA = "dgxcheck/list/1"


def text(rows: Sequence[ListedGpu], notes: Sequence[str], width: int | None) -> str:
    """Aligned columns; ``-`` for what the board or chassis does not have, ``?`` for what is unknown."""
    head = ("GPU", "Bus id", "Name", "UUID", "Serial", "Slot", "VBIOS")
    if not rows:
        return lines(["No NVIDIA GPUs found on this machine.", *map(visible, notes)])
    index, bdf, name, *others = ([*column] for column in zip(head, *map(_cells, rows), strict=True))
    table, dropped = fit_columns(index, [bdf, name], others, width)
    notes_below = [*map(visible, notes), *hidden_columns(dropped)]
    return lines([*table, *([""] if notes_below else []), *notes_below])


def _cells(row: ListedGpu) -> tuple[str, ...]:
    name, uuid, serial, vbios = (
        _cell(value, row.index is not None) for value in (row.name, row.uuid, row.serial, row.vbios)
    )
    index, bdf = str(row.index) if isinstance(row.index, int) else "?", row.bdf if isinstance(row.bdf, str) else "-"
    return index, bdf, name, uuid, serial, _cell(row.slot, True), vbios


def _cell(value: str | Missing, listed: bool) -> str:
    """``-`` if a listed GPU does not have it, ``?`` if it is unknown."""
    nothing = isinstance(value, Missing) and value.gap in (Gap.ABSENT, Gap.UNSUPPORTED)
    return "-" if nothing and listed else shown(value)


def as_json(rows: Sequence[ListedGpu], notes: Sequence[str], origin: Origin) -> str:
    """The document of schema ``dgxcheck/list/1``."""
    gpus: list[Json] = [
        either("index", row.uuid if row.index is None else row.index) | members(row, "bdf name uuid serial slot vbios")
        for row in rows
    ]
    return compact({**head(SCHEMA, dated=False), "source": source(origin), "gpus": gpus, "notes": [*notes]})
