"""``nvbandwidth``: its matrices, and its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json, items_of, text_of
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.benchmarks.nvbandwidth_tests import (
    HEADING,
    Case,
    by_heading,
    case,
    cells,
    device,
    most,
    version,
    without_result,
    wrong,
)
from dgxcheck.readers.benchmarks.p2p_bandwidth_latency import Matrix, indexes, rows, two_places
from dgxcheck.readers.combine import Figures
from dgxcheck.readers.formats import documents
from dgxcheck.readers.model import HOST, Imported, Reports
from dgxcheck.readers.values import MOST_BYTES, MOST_GBS, MOST_GPUS, bare, bounded, integer, number, squeezed
from dgxcheck.readers.wording import any_of

VERSION = LazyPattern(r"nvbandwidth Version: (v?[0-9.]{1,20})")
RUNNING = LazyPattern(r"Running ([a-z0-9_]{1,60})\.")
WAIVING = LazyPattern(r"Waiving ([a-z0-9_]{1,60})\.")
TOTALS = LazyPattern(r"(?:SUM|MIN|MAX|AVG|&&&& PERF) ([a-z0-9_]{1,60}?)(?:_(?:read|write)[12]|_total)? \S{1,40}")
BROKEN = LazyPattern(r"\[(CUDA_ERROR_[A-Z0-9_]{1,60})\] (.{1,200}?) in expression .*|(?:ERROR|Error): (.{1,200})")
WRONG = LazyPattern(r"Invalid value when checking the pattern at .*")
OFFSET = ascii_pattern(r"Current offset :? ?\[? ?(\d{1,20}).*")
AFTER_WRONG = LazyPattern(r"Current offset .*|ASSERT in expression .*")
BETWEEN_HOSTS = LazyPattern(r"multinode_device_to_device_memcpy_(?:read|write)_(?:ce|sm)")
PROCESS = LazyPattern(r"Process (?P<number>\d{1,6}) \((?P<host>.{1,255})\): device (?P<device>\d{1,3}): .{1,200}")
CHATTER = LazyPattern(any_of("benchmarks/lines", "nvbandwidth"))


def read_text(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """One part for each version line: ``host-to-device``, ``device-to-host``, ``p2p``, ``p2p-both``, ``device-copy``
    and more in GB/s, ``latency-sm`` in ns; ``method`` tells copies by a kernel from those of the copy engine. With
    ``-contended`` it is one direction's rate while the other is loaded, with ``-shared`` a GPU's while all copy."""
    lines = bounded(lines)
    starts = [at for at, line in enumerate(lines) if VERSION.fullmatch(bare(line))]
    parts = (_part(lines, start, end) for start, end in zip([0, *starts], [*starts, len(lines)], strict=True))
    return tuple(chain.from_iterable(parts))


def _part(lines: tuple[str, ...], start: int, end: int) -> tuple[Imported, ...]:
    match = VERSION.fullmatch(bare(lines[start])) if start < end else None
    part = Figures(f"nvbandwidth {match[1]}" if match else "nvbandwidth")
    tool_version = version(match[1]) if match else None
    other = Reports("nvbandwidth")
    """Results of tests between hosts, which have no figure here."""
    part.lines |= {start} if match else set()
    name, broke, begun = "", False, False
    processes: dict[int, str] = {}
    for at in range(start, end):
        line = squeezed(lines[at])
        running = case(name, version=tool_version)
        if process := PROCESS.fullmatch(line):
            processes[int(process["number"])] = f"{process['host']}, device {process['device']}"
        if started := RUNNING.fullmatch(line):
            name, broke, begun = started[1], False, True
        elif waived := WAIVING.fullmatch(line):
            if (skipped := case(waived[1], version=tool_version)) is not None:
                without_result(part, skipped, "skipped", "not-supported", "waived by nvbandwidth", at)
        elif heading := HEADING.fullmatch(line):
            named = name or _name_in_totals(lines[at : min(at + MOST_GPUS + 4, end)]) or by_heading(heading)
            if BETWEEN_HOSTS.fullmatch(named):
                part.lines |= _between_hosts(other, named, lines, at, processes) | {at}
            if (test := case(named, heading["part"] or "", tool_version)) is None:
                continue
            table, whole_lines = _table(lines, at, test)
            cells(part, test, table)
            part.lines |= whole_lines
            name = name if heading["part"] else ""
        elif WRONG.fullmatch(line) and running is not None and running.kind:
            wrong(part, running, _offset(squeezed("".join(lines[at + 1 : at + 2]))), at)
            broke = True
        elif (broken := BROKEN.fullmatch(line)) and running is not None:
            without_result(part, running, "failed", broken[1] or "ERROR", broken[2] or broken[3], at)
        elif broken and name and (match or broken[1]):
            other.add(HOST, "run", "unknown", None, f"{name}: {broken[1] or 'ERROR'}: {broken[2] or broken[3]}")
        elif device(part, line, at, match is not None and not begun):
            if len(bare("".join(lines[at - 1 : at])).split()) == 1:
                part.lines.add(at - 1)  # the host's name, since 0.6
        elif not (CHATTER.fullmatch(line) or (broke and AFTER_WRONG.fullmatch(line))):
            continue
        part.lines.add(at)
    part.measured += other.facts().items()
    return part.imported()


def _name_in_totals(lines: tuple[str, ...]) -> str:
    """The test's name in the sum below its table, where the line above was cut off."""
    for line in lines[1:]:
        text = squeezed(line)
        if match := TOTALS.fullmatch(text):
            return match[1]
        if HEADING.fullmatch(text) or RUNNING.fullmatch(text):
            break
    return ""


def _offset(text: str) -> int | None:
    """Where in the buffer the wrong word was, by the line below it or the whole error."""
    match = OFFSET.search(text)
    return integer(match[1], MOST_BYTES) if match else None


def _table(lines: tuple[str, ...], heading: int, test: Case) -> tuple[list[tuple[int, int, float, int]], set[int]]:
    """The cells below a heading, and the lines that are whole."""
    columns = indexes(bare(lines[heading + 1]).split()) if heading + 1 < len(lines) else ()
    if not columns:
        return [], set()
    expected = columns if test.pairs else tuple(range(MOST_GPUS))
    below = rows(lines, heading + 1, columns, expected)
    number = two_places(most(test))
    table = Matrix(corner="", heading=heading + 1, columns=columns, rows=below)
    return table.cells(lambda word: 0.0 if word == "N/A" else number(word))


def _between_hosts(
    reports: Reports, name: str, lines: tuple[str, ...], heading: int, processes: Mapping[int, str]
) -> set[int]:
    """Warns of pairs below half of the table's upper quartile (one bad GPU has half of the pairs of four), and names
    the process that all of them share; returns the lines of the table."""
    columns = bare("".join(lines[heading + 1 : heading + 2])).split()
    if not columns or columns != [str(number) for number in range(len(columns))]:
        return set()
    rates: dict[tuple[int, int], float] = {}
    whole_lines, figure = {heading + 1}, two_places(MOST_GBS)
    for row, at in enumerate(range(heading + 2, min(heading + 2 + len(columns), len(lines)))):
        if (words := bare(lines[at]).split())[:1] != [str(row)] or len(words) != len(columns) + 1:
            break
        rates |= {(row, to): rate for to, word in enumerate(words[1:]) if (rate := figure(word)) is not None}
        whole_lines.add(at)
    usual = sorted(rates.values())[3 * len(rates) // 4] if rates else 0.0
    slow = {pair: rate for pair, rate in rates.items() if 2 * rate < usual}
    if slow:
        (row, column), rate = min(slow.items(), key=lambda each: each[1])
        text = f"{len(slow)} of {len(rates)} pairs below half of the usual {usual:g} GB/s; {row} to {column} {rate:g}"
        shared = set.intersection(*map(set, slow)) if len(slow) > 1 else set[int]()
        ends = [f"process {end} ({processes.get(end, 'of an unnamed host')})" for end in sorted(shared)]
        reports.add(HOST, name, "warn", Fault.SLOW, f"{text}; all have {' and '.join(ends)}" if ends else text)
    return whole_lines


MOST_CASES = 256


def read_json(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """One part for each JSON document, or for each test of one that was cut; kinds as the text's reader has them."""
    lines = bounded(lines)
    found = documents(lines, lambda each: bool(_body(each)))
    return tuple(chain.from_iterable(_output(_body(each), lines, where) for each, where in found))


def _body(found: Mapping[str, Json]) -> Mapping[str, Json]:
    """The output that a document holds, also of a single test; empty for another document."""
    body = found.get("nvbandwidth")
    if isinstance(body, dict):
        return body
    return {"testcases": [dict(found)]} if "bandwidth_matrix" in found else {}


def _output(body: Mapping[str, Json], lines: tuple[str, ...], where: Sequence[int]) -> tuple[Imported, ...]:
    version_text = body.get("version")
    tool_version = version(version_text) if isinstance(version_text, str) else None
    part = Figures(f"nvbandwidth {version_text}" if tool_version else "nvbandwidth")
    part.lines.update(where)
    listed = items_of(body.get("GPU Device list", body.get("GPU Device info")))
    for text in listed[:MOST_GPUS]:
        if isinstance(text, str):
            device(part, text, _line(lines, where, text))
    tests = [test for test in items_of(body.get("testcases"))[:MOST_CASES] if isinstance(test, dict)]
    for test in tests:
        _test(part, test, tool_version, lines, where)
    last_case = case(text_of(tests[-1].get("name")), version=tool_version) if tests else None
    if last_case and (broken := _broken(body)):
        _broken_off(part, last_case, broken, where[0])
    return part.imported()


def _test(
    part: Figures, test: Mapping[str, Json], tool_version: tuple[int, int] | None, lines: tuple[str, ...],
    where: Sequence[int],
) -> None:  # fmt: skip
    name, status = text_of(test.get("name")), text_of(test.get("status"))
    heading = HEADING.fullmatch(text_of(test.get("bandwidth_description")))
    case_of_test = case(name, (heading["part"] or "") if heading else "", tool_version)
    if case_of_test is None:
        return
    at = _line(lines, where, name)
    if status == "Waived":
        without_result(part, case_of_test, "skipped", "not-supported", "waived by nvbandwidth", at)
    elif broken := _broken(test):
        _broken_off(part, case_of_test, broken, at)
    else:
        cells(part, case_of_test, _cells(test.get("bandwidth_matrix"), case_of_test, at))


def _cells(matrix: Json, test_case: Case, at: int) -> list[tuple[int, int, float, int]]:
    """Row, column, number. The three tables of a bidirectional test are one below the other: the last is the sum."""
    table = [*map(items_of, items_of(matrix))]
    width = max(map(len, table), default=0)
    if test_case.kind.startswith("p2p-both"):
        table = table[-width:]
    if width > MOST_GPUS or len(table) > MOST_GPUS:
        return []
    return [
        (row, column, value, at)
        for row, words in enumerate(table)
        for column, word in enumerate(words)
        if isinstance(word, str) and (value := number(word, most(test_case))) is not None
    ]


def _broken(body: Mapping[str, Json]) -> str:
    if error := text_of(body.get("error")):
        return error[:500]
    return "nvbandwidth's test failed" if body.get("status") in ("Error", "ERROR") else ""


def _broken_off(part: Figures, test_case: Case, error: str, at: int) -> None:
    if WRONG.search(error):
        wrong(part, test_case, _offset(error), at)
    else:
        without_result(part, test_case, "failed", "ERROR", error, at)


def _line(lines: tuple[str, ...], where: Sequence[int], text: str) -> int:
    """Where a text stands, as nearly as can be told: the first line that holds it."""
    return next((at for at in where if text in lines[at]), where[0])
