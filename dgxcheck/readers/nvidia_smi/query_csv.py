"""``nvidia-smi --query-gpu=.. --format=csv``, ``--query-remapped-rows`` and ``--query-retired-pages``: any columns.

With or without units; the head may be the command above, or a spreadsheet wrote the table again, with semicolons and
decimal commas. Columns: ``nvidia-smi --help-query-gpu`` of R352 to R590.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.facts.bdf import as_bdf, nameless
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.readers.listing import WITHOUT_NUMBER
from dgxcheck.readers.model import Imported, ToolPart
from dgxcheck.readers.nvidia_smi.answers import NOWHERE, GpuDump, imported
from dgxcheck.readers.values import gpu, numbered
from dgxcheck.readers.values import number as decimal
from dgxcheck.readers.wording import any_of, rows

_TABLE = (*rows("nvidia_smi/columns"),)
_COLUMNS = {row["column"]: row["path"] for row in _TABLE}
TAGS = {tag: row["path"] for row in _TABLE for tag in row["tags"].split()}
"""Path by the name of a column of ``nvidia-smi dmon``."""
BUS_ID = ("pci.bus_id", "gpu_bus_id")
UNUSED = caseless_pattern(any_of("nvidia_smi/lines", "--query-gpu"))
"""Columns that exist and answer nothing that is asked."""


def field(column: str) -> str | None:
    """The path of a field in a dump; None for a column that is not used, or not known."""
    return _COLUMNS.get(column.lower())


def is_column(name: str) -> bool:
    """Is this the name of a column, used or not?"""
    if not name.replace(".", "_").isidentifier():
        return False
    return name in BUS_ID or field(name) is not None or UNUSED.fullmatch(name) is not None


CSV_TOOL = "nvidia-smi --query-gpu"
LONGEST = 16_384
"""Characters of a line; all 190 columns of R590 have 5,000."""
_UNIT = LazyPattern(r" {0,2}\[[^\]]{1,12}\]$")
_CSV_COMMAND = LazyPattern(r"--query-(?:gpu|remapped-rows)[= ]['\"]?([\w.,]{1,8000})")
_SEPARATORS = (LazyPattern(r" ?, ?|\t"), LazyPattern(r", "), LazyPattern(r" ?; ?"))
"""That of nvidia-smi, and those of tables with decimal commas."""
_DECIMAL_COMMA = LazyPattern(r"(-?\d{1,9}),(\d{1,6}(?: [A-Za-z%]{1,6})?)")
_OF_PAGES = (".address", ".cause")
"""Columns of ``--query-retired-pages``, which has one row a page."""
_TROUBLE = LazyPattern(r"GPU is lost|GPU requires reset|Unknown Error|ERR!")
_OTHERS = 8
"""Lines that are no rows, after which a table is over."""
_OURS = frozenset(("uuid", "gpu_uuid", "gpu_name", "gpu_bus_id", "driver_version", "vbios_version", "pstate"))
"""Columns that no other table has; neither have others names with a dot or a unit."""
_ALONE = ("name", "uuid", "gpu_name", "gpu_uuid", "pci.bus_id", "gpu_bus_id")
"""Columns that may be the only one where no command is above them."""
_VALUE = LazyPattern(any_of("nvidia_smi/lines", "a value"))
"""What stands in a table of one column."""
_GPU_NAME = LazyPattern(r"\b(?:NVIDIA|Tesla|GeForce|Quadro|GRID|TITAN)\b")


class _Table(Record, kw_only=False):
    """The columns that are open, the lines of their head, and the rows so far."""

    columns: tuple[str, ...]
    certain: bool
    """Is it nvidia-smi's by its columns alone? Otherwise a row has to name a GPU's model."""
    lines: set[int]
    gpus: list[GpuDump]
    system: dict[str, str]
    worst: dict[str, tuple[bool, float]]
    """Of the sample of each GPU that counts: does it tell of trouble, and its temperature; by number or bus id."""


def read_csv(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every table of a text; of several samples of a GPU, as with ``-l``, that with trouble, the hottest, the last."""
    tables: list[_Table] = []
    asked: tuple[str, ...] = ()
    left = 0  # so many other lines end the last table
    for number, text in numbered(lines):
        if not text or len(text) > LONGEST:
            left = left if left and (len(tables[-1].columns) > 1 or not tables[-1].gpus) else 0
            continue
        if command := _CSV_COMMAND.search(text):
            asked = tuple(command[1].split(","))
            tables.append(_Table(asked, True, set(), [], {}, {}))
            left = _OTHERS
        elif (columns := _head(text, asked)) is not None:
            ours = any("." in name or name in _OURS for name in columns)
            certain = ours or columns == asked or _UNIT.search(text) is not None
            if not certain and not any(field(name) or name == "index" for name in columns):
                continue  # options of nvidia-smi in its help
            tables.append(_Table(columns, certain, {number}, [], {}, {}))
            left = _OTHERS
        elif left:
            cells = _cells(text, len(tables[-1].columns))
            left = _OTHERS if cells and _row(tables[-1], number, cells) else left - 1
    return tuple(imported(CSV_TOOL, table.gpus, table.system, frozenset(table.lines)) for table in tables if table.gpus)


def _head(text: str, asked: tuple[str, ...]) -> tuple[str, ...] | None:
    """Names of columns without units, where all words of a line are such."""
    for separator in _SEPARATORS:
        first, *others = separator.split(text)
        if not is_column(_name(first)):
            continue
        names = (_name(first), *map(_name, others))
        enough = len(names) > 1 or names == asked or _UNIT.search(text) or names[0] in _ALONE
        of_pages = any(name.endswith(_OF_PAGES) for name in names)
        if enough and not text.isupper() and not of_pages and all(map(is_column, names)):
            return names
    return None


def _name(cell: str) -> str:
    return _UNIT.sub("", cell.strip('"'))


def _cells(text: str, count: int) -> list[str]:
    """The cells of a row, with decimal points; empty where it has another number of them."""
    split = (separator.split(text) for separator in _SEPARATORS)
    found = next((cells for cells in split if len(cells) == count), [])
    return [_DECIMAL_COMMA.sub(r"\1.\2", cell) if _DECIMAL_COMMA.fullmatch(cell) else cell for cell in found]


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
    section = GpuDump(bdf, {**fields, "": ""}, index if index is not None or bdf != NOWHERE else place)
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
    return trouble, decimal(row.get("temperature.gpu", "").partition(" ")[0], 1000) or 0.0


_NAMES = r"gpu_name|gpu_bus_id|gpu_serial|gpu_uuid|timestamp|(?:retired_pages\.)?(?:address|cause|timestamp)"
_HEAD = LazyPattern(rf"(?:(?:{_NAMES})(?:, ?|$)){{2,8}}")
_PAGES_COMMAND = LazyPattern(rf"--query-retired-pages[= ]['\"]?(?P<names>(?:(?:{_NAMES}),?){{1,8}})")
_SEPARATOR = LazyPattern(r", ?")
_ADDRESS = caseless_pattern(r"0x[0-9a-f]{1,16}")
_CAUSES = (("single", 0), ("double", 1))
"""A word of the cause, and ``nvmlPageRetirementCause_t``."""
_GET = "nvml nvmlDeviceGet"
_NAMED = {"gpu_name": "Name", "gpu_serial": "Serial", "gpu_uuid": "UUID"}


def read_pages(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The pages of each GPU by cause; a GPU without retired pages has no row, so its number is not known to be 0."""
    columns: tuple[str, ...] = ()
    part = ToolPart("nvidia-smi --query-retired-pages")
    pages: dict[str, list[Json]] = {}
    gpus: dict[str, str] = {}
    head: set[int] = set()
    for number, text in numbered(lines):
        if command := _PAGES_COMMAND.search(text):
            columns, head = tuple(filter(None, command["names"].split(","))), {number}
        elif _HEAD.fullmatch(text) and ("retired_pages" in text or (columns and "address" in text)):
            columns, head = tuple(_SEPARATOR.split(text)), head | {number}
            part.lines |= head
        elif text and len(cells := _SEPARATOR.split(text)) == len(columns):
            row = {name.removeprefix("retired_pages."): cell.strip() for name, cell in zip(columns, cells, strict=True)}
            cause = next((code for word, code in _CAUSES if word in row.get("cause", "").lower()), None)
            bdf = _bdf(row, gpus)
            if bdf is None or cause is None or not _ADDRESS.fullmatch(row.get("address", "")):
                part.lines |= head | {number} if bdf and row.get("address") == "[N/A]" else set()
                continue
            for name, question in _NAMED.items():
                if row.get(name):
                    part.found[f"{_GET}{question} {bdf}"] = row[name]
            page: Json = {"address": int(row["address"], 16)}
            pages.setdefault(f"{_GET}RetiredPages {bdf} {cause}", []).append(page)
            part.lines |= head | {number}
    part.found |= {f"{WITHOUT_NUMBER} {bdf}": True for bdf in gpus.values()}
    return part.imported(pages)


def _bdf(row: dict[str, str], gpus: dict[str, str]) -> str | None:
    """The bus id of the row, or what stands for that of a GPU known by its UUID or serial number."""
    if "gpu_bus_id" in row:
        bdf = as_bdf(row["gpu_bus_id"])
        return gpus.setdefault(bdf, bdf) if bdf is not None else None
    name = row.get("gpu_uuid") or row.get("gpu_serial") or ""
    return gpus.setdefault(name, nameless(len(gpus)))
