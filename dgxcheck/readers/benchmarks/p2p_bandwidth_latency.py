"""``p2pBandwidthLatencyTest`` of NVIDIA's samples, and matrices between GPUs.

p2pBandwidthLatencyTest of the CUDA samples, every layout from CUDA 6 to 13.

Which way the data went. Samples that print ``(P2P Writes)`` copy from the row's GPU to the column's, on the row's
stream; under ``(P2P Reads)`` it is the other way round (``performP2PCopy(buffers[j], j, buffers[i], i, ..)``
whose first argument is the destination, in
https://github.com/NVIDIA/cuda-samples/blob/ca37378cb454b74e3979fa7a14c110045d3c4437/Samples/5_Domain_Specific/p2pBandwidthLatencyTest/p2pBandwidthLatencyTest.cu).
Samples before that wrote ``cudaMemcpyPeerAsync(buffers[i], i, buffers[j], j)``: data from the column's GPU to the
row's, as kept in
https://github.com/uuudown/Tartan/blob/957d8606979a7d4dbfa8176b8e7a8641a5af03b0/microbenchmark/scale_up_p2p_packet/p2pBandwidthLatencyTest.cu
The headings of the P2P=Disabled tables are the same in both, so the other tables of the same output decide; where
there is none, today's sample is assumed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from dgxcheck.facts.missing import Json, members_of
from dgxcheck.facts.record import Record
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.combine import Figures, merge_runs
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import MOST_GBS, MOST_US, bare, bounded, gpu, number, squeezed

V = TypeVar("V")

TWO_PLACES = ascii_pattern(r"\d{1,12}\.\d\d")


class Matrix(Record):
    """A table, possibly truncated."""

    corner: str
    """``D\\D``, ``GPU`` (time by the GPU's clock), ``CPU`` (time that the calls took)."""
    heading: int
    """The number of the line, from 0, that names the columns."""
    columns: tuple[int, ...]
    rows: tuple[tuple[int, int, tuple[str, ...]], ...]
    """Number of the line, the row's GPU, its words; fewer than columns where the line was cut."""

    def cells(self, value: Callable[[str], V | None]) -> tuple[list[tuple[int, int, V, int]], set[int]]:
        """Row, column, value and line of every cell that ``value`` can read, and the lines where it read them all."""
        cells: list[tuple[int, int, V, int]] = []
        lines = {self.heading}
        for at, row, words in self.rows:
            values = [(column, value(word)) for column, word in zip(self.columns, words, strict=False)]
            readable = [(row, column, cell_value, at) for column, cell_value in values if cell_value is not None]
            cells += readable
            if len(readable) == len(self.columns):
                lines.add(at)
        return cells, lines


def two_places(most: float) -> Callable[[str], float | None]:
    """A reader of cells printed with two decimals, as ``%6.02f`` does.

    A number with fewer decimals at the end of a cut file lost digits, before the point too for all one can tell.
    """
    return lambda word: number(word, most) if TWO_PLACES.fullmatch(word) else None


def matrices(lines: tuple[str, ...], corners: tuple[str, ...]) -> dict[int, Matrix]:
    """All tables whose first word is one of ``corners``, by the number of the line that it stands in."""
    tables: dict[int, Matrix] = {}
    for start, line in enumerate(lines):
        words = bare(line).split()
        if words and words[0] in corners and (columns := indexes(words[1:])):
            tables[start] = Matrix(
                corner=words[0], heading=start, columns=columns, rows=rows(lines, start, columns, columns)
            )
    return tables


def indexes(words: list[str]) -> tuple[int, ...]:
    """The GPUs that head the columns; none where one is no index or comes twice."""
    columns = tuple(index for word in words if (index := gpu(word)) is not None)
    return columns if len(columns) == len(words) == len(set(columns)) else ()


def rows(
    lines: tuple[str, ...], start: int, columns: tuple[int, ...], expected: tuple[int, ...]
) -> tuple[tuple[int, int, tuple[str, ...]], ...]:
    """The rows below a heading, until one that is none or comes twice. A row with too many cells is no row."""
    table_rows: list[tuple[int, int, tuple[str, ...]]] = []
    gpus: set[int] = set()
    for at in range(start + 1, min(start + 1 + len(expected), len(lines))):
        words = bare(lines[at]).split()
        row = gpu(words[0]) if words else None
        if row is None or row not in expected or row in gpus or len(words) > 1 + len(columns):
            break
        gpus.add(row)
        table_rows.append((at, row, tuple(words[1:])))
    return tuple(table_rows)


Table: TypeAlias = "tuple[re.Match[str], Matrix]"

TOOL = "p2pBandwidthLatencyTest"
HEADING = LazyPattern(
    r"(?:(Unidirectional|Bidirectional) )?P2P=(Disabled|Enabled) (Bandwidth|Latency)"
    r"(?: \(P2P (Writes|Reads)\))? Matrix \((?:GB/s|us)\)"
)
ACCESS = LazyPattern(r"Device=(\d{1,3}) (CAN|CANNOT) Access Peer Device=(\d{1,3})")
DEVICE = LazyPattern(
    r"Device: (\d{1,3}), (.{1,100}), pciBusID: ([0-9a-f]{1,2}), pciDeviceID: ([0-9a-f]{1,2}), "
    r"pciDomainID: ?([0-9a-f]{1,8})"
)
NEAR = 3
"""Lines from a heading to its table, and from the GPU's to the CPU's: further down it is somebody else's."""
CAN_ACCESS = "cudaDeviceCanAccessPeer"
THROUGH_PEERS = frozenset(("p2p", "p2p-both", "latency", "latency-cpu"))
CONNECTIVITY = "P2P Connectivity Matrix"
TITLE = "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]"
CHATTER = (
    "NOTE: In case a device doesn't have P2P access",
    "So you can see lesser Bandwidth",
    "NOTE: The CUDA Samples are not meant for performance",
)


def read_p2p_bandwidth_latency(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``access``, ``p2p``, ``p2p-off``, ``p2p-both``, ``p2p-off-both`` in GB/s, ``latency``, ``latency-off`` in us by
    the GPU's clock and ``latency-cpu`` (the time that queueing a copy takes), and ``device`` (an index's bus id)."""
    lines = bounded(lines)
    tables = matrices(lines, ("D\\D", "GPU", "CPU"))
    part = Figures(TOOL)
    output: list[Table] = []
    heading: re.Match[str] | None = None
    connectivity = headed = False
    until = 0
    for at, raw in enumerate(lines):
        line = squeezed(raw)
        if at in tables:
            table = tables[at]
            if at <= until and connectivity:
                _access(part, table)
            elif at <= until and heading is not None and (table.corner == "CPU" or not headed):
                output.append((heading, table))
            connectivity, headed = False, True
            until = at + len(table.rows) + NEAR
            continue
        if match := HEADING.fullmatch(line):
            if any(match[0] == earlier[0] for earlier, _ in output):
                _figures(part, output)
                output = []
            heading, headed, until = match, False, at + NEAR
        elif line in (CONNECTIVITY, TITLE):
            _figures(part, output)
            output, connectivity, heading, until = [], line == CONNECTIVITY, None, at + NEAR
        elif not (_line(part, line, at) or line.startswith(CHATTER)):
            continue
        part.lines.add(at)
    _figures(part, output)
    return part.imported(mark_without_access(merge_runs(part.measured)))


def mark_without_access(facts: Mapping[str, Json]) -> dict[str, Json]:
    """The facts, ``"access": false`` added to figures of pairs that cannot reach each other: there the tables headed
    P2P=Enabled hold copies through the host."""
    denied = {
        tuple(key.split()[2:])
        for key, fact in facts.items()
        if key.startswith("measure access ") and members_of(fact).get("value") is False
    }
    marked = dict(facts)
    for key, fact in facts.items():
        kind, *pair = key.split()[1:]
        if kind in THROUGH_PEERS and {tuple(pair), tuple(reversed(pair))} & denied:
            marked[key] = {**members_of(fact), "access": False}
    return marked


def _line(part: Figures, line: str, at: int) -> bool:
    """Does a line say by itself who can access whom, or where a device sits?"""
    if match := ACCESS.fullmatch(line):
        a, b = gpu(match[1]), gpu(match[3])
        if a is not None and b is not None and a != b:
            part.measure(f"access {a} {b}", match[2] == "CAN", "", at, CAN_ACCESS)
            return True
    if (match := DEVICE.fullmatch(line)) and (index := gpu(match[1])) is not None:
        bus, device, domain = (int(match[group], 16) for group in (3, 4, 5))
        part.device(index, at, bdf=f"{domain:04x}:{bus:02x}:{device:02x}.0", name=match[2])
        return True
    return False


def _access(part: Figures, table: Matrix) -> None:
    cells, whole = table.cells({"0": False, "1": True}.get)
    part.lines |= whole
    for row, column, able, at in cells:
        if row != column:
            part.measure(f"access {row} {column}", able, "", at, CAN_ACCESS)


def _figures(part: Figures, output: list[Table]) -> None:
    """Those of one run of the tool, whose headings together say how old the sample is."""
    pulled = any(
        operation is None
        for way, switch, _, operation in (match.groups() for match, _ in output)
        if switch == "Enabled" and way != "Bidirectional"  # samples of today name reads or writes there
    )
    for heading, table in output:
        way, switch, what, operation = heading.groups()
        both = way == "Bidirectional"
        reads = operation == "Reads" or (operation is None and pulled)
        one_way = "pulled by the receiver" if reads else "pushed by the sender"
        method = f"cudaMemcpyPeerAsync, {'both directions at once, sum' if both else one_way}"
        kind, unit, most = _kind(what == "Latency", switch == "Enabled", both, table.corner == "CPU")
        cells, whole = table.cells(two_places(most))
        part.lines |= whole
        for row, column, value, at in cells:
            sender, receiver = (column, row) if reads else (row, column)
            if both:
                sender, receiver = min(row, column), max(row, column)
            part.measure(f"{kind} {sender} {receiver}", value, unit, at, method)


def _kind(latency: bool, enabled: bool, both: bool, by_cpu: bool) -> tuple[str, str, float]:
    off = "" if enabled else "-off"
    if latency:
        return f"latency-cpu{off}" if by_cpu else f"latency{off}", "us", MOST_US
    return f"p2p{off}-both" if both else f"p2p{off}", "GB/s", MOST_GBS
