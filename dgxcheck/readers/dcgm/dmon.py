"""``dcgmi dmon``: chosen fields of GPUs as a table under their short names, one row for each GPU and sample."""

from __future__ import annotations

import re

from dgxcheck.facts.record import Record
from dgxcheck.readers.dcgm.device_fields import TAGS, Gpu, report, section, value_of
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi.answers import imported
from dgxcheck.readers.reports import Reports
from dgxcheck.readers.values import bounded
from dgxcheck.readers.values import gpu as number_of

TOOL = "dcgmi dmon"
_HEAD = re.compile(r"# ?Entity(?P<tags>(?:\s{1,40}[A-Z][A-Z0-9#]{1,14}){1,64})")
_UNITS = re.compile(r"I[dD](?:\s{1,40}[\w/%]{1,8}){0,64}")
_ROW = re.compile(
    r"(?:(?P<kind>GPU(?:-I|-CI)?|Switch|CPU|Core|Link)[ /]{1,8})?(?P<id>\d{1,4})(?P<cells>(?:\s{1,40}\S{1,30}){1,64})"
)


class _Table(Record):
    """The tags of the columns, and the lines and GPUs so far."""

    tags: tuple[str, ...]
    lines: set[int]
    gpus: dict[int, Gpu]


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """All tables of a text as one output; of several samples of a GPU the first counts."""
    lines_of: set[int] = set()
    gpus: dict[int, Gpu] = {}
    table: _Table | None = None
    for number, line in enumerate(bounded(lines)):
        text = line.strip()
        if head := _HEAD.fullmatch(text):
            table = _Table(tags=tuple(head["tags"].split()), lines={number}, gpus=gpus)
        elif table is None or not text:
            continue
        elif (row := _ROW.fullmatch(text)) and len(cells := row["cells"].split()) == len(table.tags):
            _take(table, row["kind"] or "GPU", row["id"], cells)
            table.lines.add(number)
            lines_of |= table.lines
        elif _UNITS.fullmatch(text):
            table.lines.add(number)
        else:
            table = None
    if not lines_of:
        return ()
    reports = Reports(TOOL)
    for gpu in gpus.values():
        report(reports, gpu)
    output = imported(TOOL, [section(gpu) for gpu in gpus.values()], {}, frozenset(lines_of))
    return (Imported(tool=output.tool, facts={**output.facts, **reports.facts()}, understood=output.understood),)


def _take(table: _Table, kind: str, text: str, cells: list[str]) -> None:
    index = number_of(text) if kind == "GPU" else None
    if index is None:
        return
    gpu = table.gpus.setdefault(index, Gpu(index=index, bdf=None, values={}))
    for tag, cell in zip(table.tags, cells, strict=True):
        path, value = TAGS.get(tag), value_of(cell)
        if path is not None and value is not None:
            gpu.values.setdefault(path, value)
