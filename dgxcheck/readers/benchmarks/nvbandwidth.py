"""nvbandwidth's text output, versions 0.1 to 0.8 (what its tests measure: ``nvbandwidth_tests``)."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.readers.benchmarks.matrix import Matrix, indexes, rows, two_places
from dgxcheck.readers.benchmarks.nvbandwidth_facts import cells, device, most, version, without_result, wrong
from dgxcheck.readers.benchmarks.nvbandwidth_tests import HEADING, Case, by_heading, case
from dgxcheck.readers.merge import merge_runs
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import MOST_GPUS, bare, bounded, integer

VERSION = re.compile(r"nvbandwidth Version: (v?[0-9.]{1,20})")
RUNNING = re.compile(r"Running ([a-z0-9_]{1,60})\.")
WAIVING = re.compile(r"Waiving ([a-z0-9_]{1,60})\.")
TOTALS = re.compile(r"(?:SUM|MIN|MAX|AVG|&&&& PERF) ([a-z0-9_]{1,60}?)(?:_(?:read|write)[12]|_total)? \S{1,40}")
BROKEN = re.compile(r"\[(CUDA_ERROR_[A-Z0-9_]{1,60})\] (.{1,200}?) in expression .*|(?:ERROR|Error): (.{1,200})")
WRONG = re.compile(r"Invalid value when checking the pattern at .*")
OFFSET = re.compile(r"Current offset :? ?\[? ?(\d{1,20}).*", re.ASCII)
AFTER_WRONG = re.compile(r"Current offset .*|ASSERT in expression .*")
MOST_BYTES = 1 << 40
CHATTER = re.compile(
    r"(?:SUM|MIN|MAX|AVG|&&&& PERF) [a-z0-9_]{1,60} \S{1,40}|Built from Git version: .*"
    r"|CUDA (?:Runtime|Driver) Version: .*|Driver Version: .*|Waived:.*"
    r"|NOTE: The reported results may not reflect .*|NOTE: This tool reports current measured bandwidth .*"
    r"|Performance can vary with software drivers.*|Additional system-specific tuning may be required.*"
    r"|NOTE: You have chosen a buffer size .*"
)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """One part for each version line: ``host-to-device``, ``device-to-host``, ``p2p``, ``p2p-both``, ``device-copy``
    and more in GB/s, ``latency-sm`` in ns; ``method`` tells copies by a kernel from those of the copy engine. With
    ``-contended`` it is one direction's rate while the other is loaded, with ``-shared`` a GPU's while all copy."""
    lines = bounded(lines)
    starts = [at for at, line in enumerate(lines) if VERSION.fullmatch(bare(line))]
    parts = [_part(lines, start, end) for start, end in zip([0, *starts], [*starts, len(lines)], strict=True)]
    return tuple(part for part in parts if part.facts)


def _part(lines: tuple[str, ...], start: int, end: int) -> Imported:
    match = VERSION.fullmatch(bare(lines[start])) if start < end else None
    tool = f"nvbandwidth {match[1]}" if match else "nvbandwidth"
    tool_version = version(match[1]) if match else None
    facts: list[tuple[str, Json]] = []
    understood = {start} if match else set[int]()
    name, broke, begun = "", False, False
    for at in range(start, end):
        line = " ".join(bare(lines[at]).split())
        running = case(name, version=tool_version)
        if started := RUNNING.fullmatch(line):
            name, broke, begun = started[1], False, True
        elif waived := WAIVING.fullmatch(line):
            if (skipped := case(waived[1], version=tool_version)) is not None:
                facts += without_result(skipped, "skipped", "not-supported", "waived by nvbandwidth", tool, at)
        elif heading := HEADING.fullmatch(line):
            named = name or _name_in_totals(lines[at : min(at + MOST_GPUS + 4, end)]) or by_heading(heading)
            if (test := case(named, heading["part"] or "", tool_version)) is None:
                continue
            table, whole_lines = _table(lines, at, test)
            facts += cells(test, table, tool)
            understood |= whole_lines
            name = name if heading["part"] else ""
        elif WRONG.fullmatch(line) and running is not None and running.kind:
            facts += wrong(running, _offset(lines, at), tool, at)
            broke = True
        elif (broken := BROKEN.fullmatch(line)) and running is not None:
            facts += without_result(running, "failed", broken[1] or "ERROR", broken[2] or broken[3], tool, at)
        elif device_facts := device(line, tool, at, match is not None and not begun):
            facts += device_facts
            if len(bare(lines[at - 1]).split()) == 1 and at > start:
                understood.add(at - 1)  # the host's name, since 0.6
        elif not (CHATTER.fullmatch(line) or (broke and AFTER_WRONG.fullmatch(line))):
            continue
        understood.add(at)
    return Imported(tool=tool, facts=merge_runs(facts), understood=frozenset(understood))


def _name_in_totals(lines: tuple[str, ...]) -> str:
    """The test's name in the sum below its table, where the line above was cut off."""
    for line in lines[1:]:
        text = " ".join(bare(line).split())
        if match := TOTALS.fullmatch(text):
            return match[1]
        if HEADING.fullmatch(text) or RUNNING.fullmatch(text):
            break
    return ""


def _offset(lines: tuple[str, ...], at: int) -> int | None:
    """Where in the buffer the wrong word was, by the line below."""
    match = OFFSET.fullmatch(" ".join(bare(lines[at + 1]).split())) if at + 1 < len(lines) else None
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
