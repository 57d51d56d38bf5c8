"""nccl-tests (``all_reduce_perf`` ..) and the test programs of NCCL 1 (``reduce_test`` ..): bus bandwidth by size.

The value is the bus bandwidth at the largest size. ``Avg bus bandwidth`` is no figure of the box: it averages over all
sizes, the smallest too. A run over several hosts says so in ``hosts``: it measures their network.
"""

from __future__ import annotations

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.measurement import MANY_RANKS
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.benchmarks.nccl_tables import (
    MOST_RANKS,
    Columns,
    SizeRow,
    are_many,
    columns,
    headless,
    operation,
    ranks_of,
    row,
)
from dgxcheck.readers.combine import Figures, merge_runs
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bounded, gpu, integer, squeezed
from dgxcheck.readers.wording import any_of

MOST_SIZES = 64
OPERATIONS = "all_reduce|all_gather|alltoallv?|broadcast|reduce_scatter|reduce|sendrecv|gather|scatter|hypercube"
COMMAND = LazyPattern(rf"(?:^|[\s/=])({OPERATIONS})_(perf|test)(?:_mpi)?(?:\s|$)")
STARTING = LazyPattern(rf"Collective test (?:starting|concluded): ({OPERATIONS})_perf")
VERSION = LazyPattern(r"nccl-tests version (\d{1,3}(?:\.\d{1,3}){1,3}) .*")
RANK = LazyPattern(
    r"Rank (\d{1,6}) (?:Group \d{1,6} )?(?:Pid \d{1,9} )?(?:on (\S{1,255})|uses) device (\d{1,3}) "
    r"\[([0-9a-fA-Fx:.]{1,16})\] (.{1,100})"
)
BOUNDS = LazyPattern(r"Out of bounds values : (\d{1,12}) (?:OK|FAILED)")
CHATTER = LazyPattern(any_of("benchmarks/lines", "nccl-tests"))
_WRITER = r"[A-Za-z][\w.-]{0,254}:\d{1,10}:\d{1,10} \[\d{1,4}\] "
PIECE = LazyPattern(
    rf"(?P<head>\d{{1,15}} \d{{1,15}} [a-z]\w{{1,12}}(?: [a-z]{{2,8}})? -1)(?={_WRITER})"
    rf"|(?P<tail>[\d.]{{1,12}} [\d.]{{1,12}} [\d.]{{1,12}} (?:\d{{1,12}}|N/A))(?:(?={_WRITER})|$)"
)
"""With NCCL_DEBUG=INFO each half of a row is printed when it is known, and a line of NCCL follows without a break."""
PROMPT = LazyPattern(r"\S{0,255}\$ .*|\[.{1,100}\][$#] .*|\.?/.*|[A-Z_]{1,40}=.*|(?:mpirun|srun) .*")


class Rank(Record, kw_only=False):
    """A line of the list of devices."""

    number: int
    host: str
    device: int
    bus: str
    name: str
    at: int


class _Run:
    """What has been read since the last test began."""

    def __init__(self) -> None:
        self.op = ""
        self.tool = "nccl-tests"
        self.ranks: list[Rank] = []
        self.heading: Columns | None = None
        self.headed = False
        """Does the text show the heading?"""
        self.rows: list[tuple[SizeRow, int]] = []
        self.wrong: int | None = None
        self.pieces: list[str] = []
        """Of a row that NCCL's own lines cut: its first columns, then the group of each half."""


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """One part for each release: ``collective OP N`` in GB/s with ``sizes`` [[bytes, us, algbw, busbw], ..],
    ``in_place`` and ``wrong`` (wrong elements, where they were checked), and ``device`` where the bus ids of one host
    are printed. OP is ``unknown`` where neither a name nor the columns give it."""
    runs = _Runs()
    run = _Run()
    for at, raw in enumerate(bounded(lines)):
        line = squeezed(raw)
        starting = STARTING.fullmatch(line)
        command = None if starting else COMMAND.search(line)
        if starting and "concluded" in line:
            run.op = run.op or starting[1]
        elif named := starting or command:
            run = runs.close(run)
            run.op = named[1]
            if command:
                run.tool = "NCCL 1 tests" if command[2] == "test" else run.tool
                if not PROMPT.fullmatch(line):
                    continue
        elif line == "Using devices":
            run = runs.close(run)
            run.ranks = []
        elif version := VERSION.fullmatch(line):
            run = runs.close(run)
            run.tool = f"nccl-tests {version[1]}"
        elif match := RANK.fullmatch(line):
            number, device = integer(match[1], MOST_RANKS), gpu(match[3])
            if number is None or device is None:
                continue
            run.ranks.append(Rank(number, match[2] or "", device, match[4], match[5], at))
        elif heading := columns(line):
            run = runs.close(run)
            run.heading, run.headed = heading, True
        elif run.heading is not None and (piece := PIECE.match(line)) is not None:
            run.pieces = [piece["head"]] if piece["head"] else [*run.pieces, piece["tail"]]
            if len(run.pieces) == 1 + len(run.heading.tail) // 4:
                whole, run.pieces = row(" ".join(run.pieces), run.heading), []
                run.rows += [] if whole is None else [(whole, at)]
        elif (heading := run.heading or headless(line)) is not None and (result := row(line, heading)) is not None:
            run.heading = heading
            run.rows.append((result, at))
            continue
        elif bounds := BOUNDS.fullmatch(line):
            run.wrong = int(bounds[1])
        elif not CHATTER.fullmatch(line) and raw.strip(" \t>") != "#":
            continue
        runs.lines.add(at)
    if not run.rows:
        _devices(runs.of(run), run)  # of a run that was cut, or failed
    runs.close(run)
    found = {tool: merge_runs(part.measured) for tool, part in runs.parts.items() if part.measured}
    if not found and (len({rank.host for rank in run.ranks}) > 1 or (len(run.ranks) == 1 and run.rows)):
        found = {run.tool: {}}  # over several hosts, cut before its rows, or of one rank, which moves no data
    understood = frozenset(runs.lines)
    return tuple(Imported(tool=tool, facts=facts, understood=understood) for tool, facts in found.items())


class _Runs:
    """The tests that were read, by release."""

    def __init__(self) -> None:
        self.parts: dict[str, Figures] = {}
        self.lines: set[int] = set()

    def of(self, run: _Run) -> Figures:
        """Those of the same release."""
        return self.parts.setdefault(run.tool, Figures(run.tool))

    def close(self, run: _Run) -> _Run:
        """A test that has rows: its facts are added, its rows accounted for. The next one has nothing of it."""
        if run.heading is None or not run.rows:
            return run
        if rows := tuple(result for result, _ in run.rows if result.size):
            ranks = max((rank.number for rank in run.ranks), default=-1) + 1
            op = run.op or operation(rows, run.heading, ranks or None)
            ranks = ranks or ranks_of(rows, op) or 0
            many = not ranks and run.headed and are_many(rows, op)
            named = str(ranks) if ranks > 1 else MANY_RANKS if many else ""
            if named:
                _measure(self.of(run), run, rows, op, ranks, named)
                _devices(self.of(run), run)
            if named or ranks == 1:
                self.lines.update(at for _, at in run.rows)
        return _Run()


def _measure(part: Figures, run: _Run, rows: tuple[SizeRow, ...], op: str, ranks: int, named: str) -> None:
    """One test: among rows of the largest size (several types or roots) the fastest.

    The hosts are counted only where all ranks are listed.
    """
    largest = max(rows, key=lambda result: (result.size, result.busbw))
    checked = [result.wrong for result in rows if result.wrong is not None]
    by_size = sorted(rows, key=lambda result: result.size)[-MOST_SIZES:]
    more: dict[str, Json] = {"sizes": [[each.size, each.time_us, each.algbw, each.busbw] for each in by_size]}
    if largest.in_place is not None:
        more["in_place"] = largest.in_place
    if checked or run.wrong:
        more["wrong"] = max(sum(checked), run.wrong or 0)
    if run.ranks:
        devices: list[Json] = [rank.device for rank in run.ranks[:MOST_SIZES]]
        more["devices"] = devices
        if len(run.ranks) == ranks:
            more["hosts"] = len({rank.host for rank in run.ranks})
    at = next(at for result, at in run.rows if result is largest)
    method = f"{op or 'a collective'}, bus bandwidth at {largest.size} bytes, out of place"
    method += ", named by its columns" if op and not run.op else ""
    part.measure(f"collective {op or 'unknown'} {named}", largest.busbw, "GB/s", at, method, largest.size, **more)


def _devices(part: Figures, run: _Run) -> None:
    """Where the devices of one host sit. ``[0x06]`` leaves out the domain; in some virtual machines all are 0."""
    buses = {rank.bus for rank in run.ranks}
    if len({rank.host for rank in run.ranks}) != 1 or len(buses) != len(run.ranks):
        return
    if sorted(rank.number for rank in run.ranks) != [*range(len(run.ranks))]:
        return  # a part of a list, whose buses may be in other domains
    for rank in run.ranks:
        if bdf := as_bdf(f"{rank.bus[2:]}:00" if rank.bus.startswith("0x") else rank.bus, short=True):
            part.device(rank.device, rank.at, bdf=bdf, name=rank.name)
