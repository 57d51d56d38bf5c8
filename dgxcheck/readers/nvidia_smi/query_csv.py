"""``nvidia-smi --query-gpu=.. --format=csv``: any columns, with or without units; the head may be the command above.

Also ``--query-remapped-rows``, and tables that a spreadsheet wrote again: with semicolons and decimal commas.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.record import Record
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi.answers import NOWHERE, Section, imported
from dgxcheck.readers.nvidia_smi.query_columns import BUS_ID, field, is_column
from dgxcheck.readers.values import bounded, gpu
from dgxcheck.readers.values import number as decimal

TOOL = "nvidia-smi --query-gpu"
LONGEST = 16_384
"""Characters of a line; all 190 columns of R590 have 5,000."""
_UNIT = re.compile(r" {0,2}\[[^\]]{1,12}\]$")
_COMMAND = re.compile(r"--query-(?:gpu|remapped-rows)[= ]['\"]?([\w.,]{1,8000})")
_SEPARATORS = (re.compile(r" ?, ?|\t"), re.compile(r", "), re.compile(r" ?; ?"))
"""That of nvidia-smi, and those of tables with decimal commas."""
_DECIMAL_COMMA = re.compile(r"(-?\d{1,9}),(\d{1,6}(?: [A-Za-z%]{1,6})?)")
_OF_PAGES = (".address", ".cause")
"""Columns of ``--query-retired-pages``, which has one row a page."""
_TROUBLE = re.compile(r"GPU is lost|GPU requires reset|Unknown Error|ERR!")
_OTHERS = 8
"""Lines that are no rows, after which a table is over."""
_TEMPERATURE = "temperature.gpu"
_OURS = frozenset(("uuid", "gpu_uuid", "gpu_name", "gpu_bus_id", "driver_version", "vbios_version", "pstate"))
"""Columns that no other table has; neither have others names with a dot or a unit."""
_ALONE = ("name", "uuid", "gpu_name", "gpu_uuid", "pci.bus_id", "gpu_bus_id")
"""Columns that may be the only one where no command is above them."""
_VALUE = re.compile(
    r"\[?(?:N/A|Not Supported|Unknown Error|No|Yes|Enabled|Disabled|Active|Not Active|Default|None)\]?|P\d{1,2}"
    r"|[\d.]{1,20}(?: [A-Za-z/%]{1,6})?|0x[0-9A-Fa-f]{1,16}|GPU-[0-9a-f-]{8,40}"
    r"|[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d"
    r"|(?:NVIDIA|Tesla|GeForce|Quadro|GRID|TITAN) .{1,60}"
)
"""What stands in a table of one column."""
_GPU_NAME = re.compile(r"\b(?:NVIDIA|Tesla|GeForce|Quadro|GRID|TITAN)\b")


class _Table(Record, kw_only=False):
    """The columns that are open, the lines of their head, and the rows so far."""

    columns: tuple[str, ...]
    certain: bool
    """Is it nvidia-smi's by its columns alone? Otherwise a row has to name a GPU's model."""
    lines: set[int]
    gpus: list[Section]
    system: dict[str, str]
    worst: dict[str, tuple[bool, float]]
    """Of the sample of each GPU that counts: does it tell of trouble, and its temperature; by number or bus id."""


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every table of a text; of several samples of a GPU, as with ``-l``, that with trouble, the hottest, the last."""
    tables: list[_Table] = []
    asked: tuple[str, ...] = ()
    open_ = False
    others = 0
    for number, line in enumerate(bounded(lines)):
        text = line.strip()
        if not text or len(text) > LONGEST:
            open_ = open_ and (not tables or len(tables[-1].columns) > 1 or not tables[-1].gpus)
            continue
        if command := _COMMAND.search(text):
            asked = tuple(command[1].split(","))
            tables.append(_Table(asked, True, set(), [], {}, {}))
            open_, others = True, 0
        elif (columns := _head(text, asked)) is not None:
            certain = columns == asked or _UNIT.search(text) is not None or any(map(_is_ours, columns))
            if not certain and not any(field(name) or name == "index" for name in columns):
                continue  # options of nvidia-smi in its help
            tables.append(_Table(columns, certain, {number}, [], {}, {}))
            open_, others = True, 0
        elif tables and open_:
            others += 1
            if (cells := _cells(text, len(tables[-1].columns))) and _row(tables[-1], number, cells):
                others = 0
            open_ = others < _OTHERS
    return tuple(imported(TOOL, table.gpus, table.system, frozenset(table.lines)) for table in tables if table.gpus)


def _head(text: str, asked: tuple[str, ...]) -> tuple[str, ...] | None:
    """Names of columns without units, where all words of a line are such."""
    for separator in _SEPARATORS:
        names = tuple(_UNIT.sub("", cell.strip('"')) for cell in separator.split(text))
        enough = len(names) > 1 or names == asked or _UNIT.search(text) or names[0] in _ALONE
        of_pages = any(name.endswith(_OF_PAGES) for name in names)
        if enough and not text.isupper() and not of_pages and all(map(is_column, names)):
            return names
    return None


def _cells(text: str, count: int) -> list[str]:
    """The cells of a row, with decimal points; empty where it has another number of them."""
    split = (separator.split(text) for separator in _SEPARATORS)
    found = next((cells for cells in split if len(cells) == count), [])
    return [_DECIMAL_COMMA.sub(r"\1.\2", cell) if _DECIMAL_COMMA.fullmatch(cell) else cell for cell in found]


def _is_ours(column: str) -> bool:
    return "." in column or column in _OURS


def _row(table: _Table, number: int, cells: Sequence[str]) -> bool:
    """One GPU; a row whose number or bus id is none is not read: False."""
    row = dict(zip(table.columns, (cell.strip().strip('"') for cell in cells), strict=True))
    address = next((row[name] for name in BUS_ID if name in row), None)
    bdf = NOWHERE if address is None else as_bdf(address)
    index = gpu(row["index"]) if "index" in row else None
    if bdf is None or ("index" in row and index is None) or not any(row.values()):
        return False
    alone = len(cells) == 1 and _VALUE.fullmatch(cells[0]) is None
    if all(map(is_column, cells)) or alone or not (table.certain or any(map(_GPU_NAME.search, cells))):
        return False  # a list of columns, or somebody's table of names and counts
    table.lines.add(number)
    fields = {path: value for name, value in row.items() if (path := field(name)) is not None}
    place = len(table.gpus)
    section = Section(bdf, {**fields, "": ""}, index if index is not None or bdf != NOWHERE else place)
    name, rank = f"{index} {bdf}", _rank(row)
    if index is None and bdf == NOWHERE:
        table.gpus.append(section)
    elif name not in table.worst:
        table.worst[name] = rank
        table.gpus.append(section)
    elif rank >= table.worst[name]:
        table.worst[name] = rank
        at = next(at for at, each in enumerate(table.gpus) if (each.index, each.bdf) == (index, bdf))
        table.gpus[at] = section
    for name in ("driver_version", "cuda_version"):
        table.system.setdefault(name.replace("_", " "), row.get(name, ""))
    return True


def _rank(row: Mapping[str, str]) -> tuple[bool, float]:
    """Of the samples of a GPU the highest one counts."""
    trouble = any(_TROUBLE.search(value) is not None for value in row.values())
    return trouble, decimal(row.get(_TEMPERATURE, "").partition(" ")[0], 1000) or 0.0
