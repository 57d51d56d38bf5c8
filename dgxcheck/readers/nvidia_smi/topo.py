"""The matrices of ``nvidia-smi topo``: labels (-m, -mp) and access between GPUs (-p2p).

The matrices of ``nvidia-smi topo``: a head with names, a row per device, a legend; pasted, cut and run together.

Heads seen in the field: tabs or blanks, underlined even when piped (590), names run together (``GPU0GPU1``), bare
numbers, ``CPU     Affinity``; rows with tabs doubled before ``N/A``, cells run together (``SYSSYS``), or a list
markup's ``| |`` behind them.

``nvidia-smi topo -m`` and ``-mp`` of every era, as ``stated`` facts of devices that it names.

Labels: SOC until 2017, SYS and NODE since (R387 or R390). A matrix without any NV# may be one of PCI paths alone,
unless its legend knows NV# or is older than NVLink.

``nvidia-smi topo -p2p r|w|n|a|p``: which GPUs may reach each other's memory.

The output does not say which of the five was asked; a command line pasted above it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dgxcheck.facts.missing import Json
from dgxcheck.facts.nvml.nvlink import CAPABILITIES, STATUSES
from dgxcheck.facts.record import Record
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers import values
from dgxcheck.readers.model import Imported

MOST_COLUMNS = 512
TITLES = {"CPU": "cpu-affinity", "NUMA": "numa-affinity", "GPU": "gpu-numa-id"}
"""First word of a title -> kind of fact."""
_ESCAPE = LazyPattern(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_TITLE = LazyPattern(
    r"(CPU|NUMA) {0,8}Affinity|(GPU) {0,8}NUMA {0,8}ID"
    r"|(?<= )(CPU|NUMA|GPU)(?: {1,8}(?:Node|A[finty]{0,7}|N[UMA]{0,3}(?: I)?))? {0,8}$"
)
"""The last one also where a narrow terminal broke the head within it."""
_GLUED = LazyPattern(r"(GPU\d{1,3}|NIC\d{1,3}|mlx\d_\d{1,3})(?=\D)")
_NAME = ascii_pattern(r"(?!NV\d+$)(?=[\w.-]{0,63}\d)[A-Za-z][\w.-]{0,63}")
_CELL = LazyPattern(r"X|PIX|PXB|PHB|NODE|SOC|SYS|NV\d+|OK|CNS|GNS|TNS|NS|DR|U")
_GPU = ascii_pattern(r"GPU\d{1,3}")
_REST = ascii_pattern(r"[\d,-]{1,4096}|N/A|0N/A")
"""What stands under the titles."""
LONGEST_REST = 4096
_COMMAND = LazyPattern(r"nvidia-smi\s+topo\s+(-\S+)(?:\s+(\w+))?")
_LEGEND = LazyPattern(r"(?:NIC )?Legend:|\S{1,4}\s*=\s\S.*")
_NIC = ascii_pattern(r"(NIC\d{1,3}):\s+(\S{1,64})")


class TopoRow(Record, kw_only=False):
    """One device's line: its name, its cells by column, and the texts under the titles (CPU Affinity ..)."""

    line: int
    name: str
    cells: tuple[str, ...]
    rest: tuple[str, ...]
    more: tuple[int, ...] = ()
    """Further lines of a row that was wrapped."""


class TopoMatrix(Record):
    """A matrix as it is printed; ``lines`` are those of its head, legend and command."""

    columns: tuple[str, ...]
    titles: tuple[str, ...]
    rows: tuple[TopoRow, ...]
    option: str
    """``-m``, ``-mp``, ``-p2p r``: from the command line above the matrix; empty without one."""
    legend: str
    nics: dict[str, str]
    lines: frozenset[int]

    @property
    def words(self) -> set[str]:
        """The distinct texts of its cells."""
        return {cell for row in self.rows for cell in row.cells}


def plain(line: str) -> str:
    """A line without terminal escapes, tabs expanded to eight blanks."""
    return _ESCAPE.sub("", line).expandtabs() if "\x1b" in line or "\t" in line else line


def bare(line: str) -> str:
    """A line without terminal escapes, quoting and list markers."""
    return values.bare(_ESCAPE.sub("", line))


def matrices(lines: tuple[str, ...]) -> Iterator[TopoMatrix]:
    """Every matrix in a text, in order."""
    lines, more = _unwrapped(values.bounded(lines))
    heads: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []
    commands: dict[int, str] = {}
    for number, line in enumerate(lines):
        if (head := _head(line)) is not None:
            heads.append((number, *head))
        elif command := _COMMAND.search(line[:400]):
            commands[number] = " ".join(filter(None, command.groups()))
    ends = [*(number for number, _, _ in heads[1:]), len(lines)]
    previous = -1
    cut = len(lines) - 1  # a last line without an end may be half of one
    for (number, columns, titles), end in zip(heads, ends, strict=False):
        above = [at for at in range(max(previous + 1, number - 8), number) if at in commands]
        if rows := [row for at in range(number + 1, end) if (row := _row(at, lines[at], columns, more)) is not None]:
            below = [(at, bare(lines[at]).strip()) for at in range(rows[-1].line + 1, end)]
            legend = {at: text for at, text in below if _LEGEND.fullmatch(text)}
            nics = {at: nic for at, text in below if at < cut and (nic := _NIC.fullmatch(text))}
            yield TopoMatrix(
                columns=columns,
                titles=titles,
                rows=_sure(rows, cut),
                option=commands[above[-1]] if above else "",
                legend="\n".join(legend.values()),
                nics={nic[1]: nic[2] for nic in nics.values()},
                lines=frozenset((number, *more.get(number, ()), *above, *legend, *nics)),
            )
            previous = max(rows[-1].line, number)


def _unwrapped(lines: tuple[str, ...]) -> tuple[tuple[str, ...], dict[int, tuple[int, ...]]]:
    """Heads and rows that a narrow terminal or a mail broke, as one line each; by line, the others that it was on."""
    found = [*lines]
    more: dict[int, tuple[int, ...]] = {}
    open_at = -1
    for at, line in enumerate(lines):
        words = bare(line).split() if open_at >= 0 and len(line) < LONGEST_REST else []
        if not words:
            open_at = at if _head(line) is not None or _GPU.match(line.lstrip()) else -1
        elif open_at == at - 1 - len(more.get(open_at, ())) and _continues(found[open_at], words):
            found[open_at] = _glued(found[open_at], line)
            found[at] = ""
            more[open_at] = (*more.get(open_at, ()), at)
        else:
            open_at = at
    return tuple(found), more


def _continues(line: str, words: list[str]) -> bool:
    """Are these words the rest of a head or of a row?"""
    if (head := _head(line)) is not None:
        return not head[1] and _names(words) and not any(map(_CELL.fullmatch, words))
    first = bare(line).split()
    return (
        len(first) > 1 and _NAME.fullmatch(first[0]) is not None and _CELL.fullmatch(first[1]) is not None
        and all(_CELL.fullmatch(word) or _REST.fullmatch(word) for word in words)
    )  # fmt: skip


def _names(words: list[str]) -> bool:
    text = _TITLE.sub(" ", " ".join(words))
    return all(map(_NAME.fullmatch, _GLUED.sub(r"\1 ", text).split()))


def _glued(first: str, rest: str) -> str:
    """Two halves of a line, with nothing between them where a word was broken: ``NV1`` ``8``, ``NV`` ``18``."""
    last, begin = first.split()[-1], rest.split()[0]
    whole = _CELL.fullmatch(last + begin) is not None and not rest[:1].isspace()
    parts = _CELL.fullmatch(last) is not None and (_CELL.fullmatch(begin) is not None or _REST.fullmatch(begin))
    broken = whole and (not parts or len(begin) < 3)
    return f"{first.rstrip()}{rest}" if broken and not first[-1:].isspace() else f"{first} {rest}"


def _sure(rows: list[TopoRow], cut: int) -> tuple[TopoRow, ...]:
    """The rows; the affinities of a last line that may be cut are kept only if another row has the same."""
    last = rows[-1]
    if cut in (last.line, *last.more) and last.rest not in [row.rest for row in rows[:-1]]:
        rows[-1] = TopoRow(last.line, last.name, last.cells, (), last.more)
    return tuple(rows)


def _head(line: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Columns and titles; None for any other line."""
    if len(line) > 80 * MOST_COLUMNS or "0" not in line or not ("GPU" in line or "Affinity" in line or "NUMA" in line):
        return None
    text = bare(line)
    first = text.split(None, 2)[:2] if text.startswith(("GPU", "0")) else []
    if not first or _CELL.fullmatch(first[-1]):
        return None
    text = text.expandtabs(1)
    titles = tuple(TITLES[next(filter(None, title.groups()))] for title in _TITLE.finditer(text))
    words = _GLUED.sub(r"\1 ", _TITLE.sub(" ", text)).split()
    if titles and words[:1] == ["0"]:
        numbers = [word for word in words if word.isascii() and word.isdecimal()]
        if numbers == [str(n) for n in range(len(numbers))]:
            words = [f"GPU{word}" if word in numbers else word for word in words]
    named = all(map(_NAME.fullmatch, words)) and len(set(words)) == len(words) <= MOST_COLUMNS
    return (tuple(words), titles) if words and named and _GPU.fullmatch(words[0]) else None


def _row(number: int, line: str, columns: tuple[str, ...], more: Mapping[int, tuple[int, ...]]) -> TopoRow | None:
    name, *cells = bare(line).split() or [""]
    words = [name, *(part for cell in cells for part in _parted(cell))]
    if len(words) < 2 or (words[0] not in columns and not _GPU.fullmatch(words[0])):
        return None
    if not any(map(_CELL.fullmatch, words[1 : 1 + len(columns)])):
        return None
    rest = " ".join(words[1 + len(columns) :]).replace("0N/A", "0 N/A").split()
    return TopoRow(number, words[0], tuple(words[1 : 1 + len(columns)]), tuple(rest), more.get(number, ()))


def _parted(cell: str) -> list[str]:
    """The cells of a word: ``SYSSYS`` and ``PXBNODE`` are two, where a terminal ate the tab between them."""
    parts = _CELL.findall(cell)
    return parts if len(parts) > 1 and "".join(parts) == cell else [cell]


_LABEL = ascii_pattern(r"PIX|PXB|PHB|NODE|SOC|SYS|NV[1-9]\d{0,2}")
_BEFORE_NVLINK = "Path traverses"
"""Words of the legend of 2015 and 2016 (352)."""
_CPUS = ascii_pattern(r"[\d,-]{1,4096}|N/A")


def read_labels(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every matrix of labels in a text."""
    return tuple(_labels_imported(matrix) for matrix in matrices(lines) if _is_labels(matrix))


def _is_labels(matrix: TopoMatrix) -> bool:
    labels = matrix.words - {"X"}
    by_command = matrix.option.startswith("-m") or (not matrix.option and len(matrix.columns) == 1)
    return any(map(_LABEL.fullmatch, labels)) or (not labels and (by_command or bool(matrix.titles)))


def _labels_imported(matrix: TopoMatrix) -> Imported:
    kind = "label" if _shows_nvlinks(matrix) else "label-pci"
    facts, understood = _pairs(matrix, kind, lambda cell: _LABEL.fullmatch(cell) is not None, matrix.titles)
    facts |= {f"stated nic-name {name}": nic_name for name, nic_name in matrix.nics.items() if name in matrix.columns}
    tool = f"nvidia-smi topo {'-m' if kind == 'label' else matrix.option}".strip()
    return Imported(tool=tool, facts=facts, understood=understood)


def _pairs(
    matrix: TopoMatrix, kind: str, is_valid: Callable[[str], bool], titles: tuple[str, ...] = ()
) -> tuple[dict[str, Json], frozenset[int]]:
    """What cells state, and what stands under the titles; and the lines of the matrix that say nothing else."""
    facts: dict[str, Json] = {}
    understood = set(matrix.lines)
    for row in matrix.rows:
        whole = len(row.cells) == len(matrix.columns)
        complete = whole and row.name in matrix.columns
        cells = row.cells if whole else row.cells[:-1]  # the last may be cut: NV1 of NV12, N of NS
        for column, cell in zip(matrix.columns, cells, strict=False):
            valid = cell == "X" if column == row.name else is_valid(cell)
            fact: Json = cell if valid else {"missing": "garbled", "detail": cell[:40]}
            complete = facts.setdefault(f"stated {kind} {row.name} {column}", fact) == fact and valid and complete
        facts |= dict(_affinities(row, titles))
        if complete:
            understood |= {row.line, *row.more}
    return facts, frozenset(understood)


def _shows_nvlinks(matrix: TopoMatrix) -> bool:
    if any(word.startswith("NV") for word in matrix.words):
        return True
    if matrix.option:
        return not matrix.option.startswith(("-mp", "--matrix_pci"))
    return "NV#" in matrix.legend or _BEFORE_NVLINK in matrix.legend


def _affinities(row: TopoRow, titles: tuple[str, ...]) -> Iterator[tuple[str, Json]]:
    """What stands under the titles; rows of NICs end before them, and too few or many words tell nothing."""
    if len(row.rest) == len(titles):
        for kind, text in zip(titles, row.rest, strict=True):
            if _CPUS.fullmatch(text) and not text.endswith((",", "-")):  # where the text is cut
                yield f"stated {kind} {row.name}", text


_OPTIONS = {name[0]: name for name in CAPABILITIES}


def read_p2p(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every matrix of status words in a text."""
    return tuple(_p2p_imported(matrix) for matrix in matrices(lines) if matrix.words & set(STATUSES))


def _p2p_imported(matrix: TopoMatrix) -> Imported:
    option = matrix.option.partition(" ")[2]
    capability = _OPTIONS.get(option, "") if "p2p" in matrix.option else ""
    facts, understood = _pairs(matrix, f"p2p-{capability}" if capability else "p2p", STATUSES.__contains__)
    return Imported(tool=f"nvidia-smi topo -p2p {option}".strip(), facts=facts, understood=understood)
