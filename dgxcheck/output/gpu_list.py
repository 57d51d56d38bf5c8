"""The list of GPUs: a line each, or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dgxcheck import __version__
from dgxcheck.frozen import Record
from dgxcheck.output.plain import columns, lines, shown, visible
from dgxcheck.output.topo_json import either, source
from dgxcheck.reading import Gap, Json, Missing
from dgxcheck.source.protocol import Origin

SCHEMA = "dgxcheck/list/1"


class Row(Record):
    """One GPU; ``index`` None for one that NVML does not list."""

    index: int | None
    bdf: str
    name: str | Missing
    uuid: str | Missing
    serial: str | Missing
    slot: str | Missing
    vbios: str | Missing


def text(rows: Sequence[Row], notes: Sequence[str]) -> str:
    """Aligned columns; ``-`` for what the board or chassis does not have, ``?`` for what is not known."""
    head = ("GPU", "Bus id", "Name", "UUID", "Serial", "Slot", "VBIOS")
    table = [head, *(("?" if row.index is None else str(row.index), *map(_cell, _cells(row))) for row in rows)]
    found = columns(table) if rows else ["No NVIDIA GPU is known on this machine."]
    return lines([*found, *([""] if rows and notes else []), *map(visible, notes)])


def _cell(value: object) -> str:
    nothing = isinstance(value, Missing) and value.gap in (Gap.ABSENT, Gap.UNSUPPORTED)
    return "-" if nothing else shown(value)


def _cells(row: Row) -> tuple[object, ...]:
    return row.bdf, row.name, row.uuid, row.serial, row.slot, row.vbios


def as_json(rows: Sequence[Row], notes: Sequence[str], origin: Origin) -> str:
    """The document of schema ``dgxcheck/list/1``."""
    gpus: list[Json] = []
    for row in rows:
        gpu: dict[str, Json] = {"index": row.index, "bdf": row.bdf}
        for key in ("name", "uuid", "serial", "slot", "vbios"):
            gpu |= either(key, getattr(row, key))
        gpus.append(gpu)
    whole: dict[str, Json] = {"schema": SCHEMA, "tool_version": __version__, "source": source(origin)}
    return json.dumps(whole | {"gpus": gpus, "notes": list(notes)}, indent=1) + "\n"
