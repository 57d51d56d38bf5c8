"""nvbandwidth's JSON output (``-j``), versions 0.5 to 0.8; DCGM keeps the same. Numbers in it are strings."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.missing import Json
from dgxcheck.readers.benchmarks.nvbandwidth_facts import cells, device, most, version, without_result
from dgxcheck.readers.benchmarks.nvbandwidth_tests import HEADING, Case, case
from dgxcheck.readers.json_text import documents
from dgxcheck.readers.merge import merge_runs
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import MOST_GPUS, bounded, number

MOST_CASES = 256


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """One part for each JSON document, or for each test of one that was cut; kinds as the text's reader has them."""
    lines = bounded(lines)
    parts: list[Imported] = []
    for found, where in documents(lines, lambda each: bool(_body(each))):
        part = _output(_body(found), lines, where.start, where.stop)
        if part.facts:
            parts.append(part)
    return tuple(parts)


def _body(found: Mapping[str, Json]) -> Mapping[str, Json]:
    """The output that a document holds, also of a single test; empty for another document."""
    body = found.get("nvbandwidth")
    if isinstance(body, dict):
        return body
    return {"testcases": [dict(found)]} if "bandwidth_matrix" in found else {}


def _output(body: Mapping[str, Json], lines: tuple[str, ...], start: int, end: int) -> Imported:
    version_text = body.get("version")
    tool_version = version(version_text) if isinstance(version_text, str) else None
    tool = f"nvbandwidth {version_text}" if tool_version else "nvbandwidth"
    facts: list[tuple[str, Json]] = []
    listed = body.get("GPU Device list", body.get("GPU Device info"))
    for text in listed[:MOST_GPUS] if isinstance(listed, list) else []:
        if isinstance(text, str):
            facts += device(text, tool, _line(lines, start, end, text))
    tests = body.get("testcases")
    for test in tests[:MOST_CASES] if isinstance(tests, list) else []:
        if isinstance(test, dict):
            facts += _test(test, tool, tool_version, lines, start, end)
    last = tests[-1] if isinstance(tests, list) and tests else None
    last_case = case(_text(last, "name"), version=tool_version) if isinstance(last, dict) else None
    if last_case and (broken := _broken(body)):
        facts += without_result(last_case, "failed", "ERROR", broken, tool, start)
    understood = frozenset(at for at in range(start, end) if lines[at].strip())
    return Imported(tool=tool, facts=merge_runs(facts), understood=understood)


def _test(
    test: Mapping[str, Json],
    tool: str,
    tool_version: tuple[int, int] | None,
    lines: tuple[str, ...],
    start: int,
    end: int,
) -> list[tuple[str, Json]]:
    name, status = _text(test, "name"), _text(test, "status")
    heading = HEADING.fullmatch(_text(test, "bandwidth_description"))
    case_of_test = case(name, (heading["part"] or "") if heading else "", tool_version)
    if case_of_test is None:
        return []
    at = _line(lines, start, end, name)
    if status == "Waived":
        return without_result(case_of_test, "skipped", "not-supported", "waived by nvbandwidth", tool, at)
    if broken := _broken(test):
        return without_result(case_of_test, "failed", "ERROR", broken, tool, at)
    return cells(case_of_test, _cells(test.get("bandwidth_matrix"), case_of_test, at), tool)


def _cells(matrix: Json, test_case: Case, at: int) -> list[tuple[int, int, float, int]]:
    """Row, column, number. The three tables of a bidirectional test are one below the other: the last is the sum."""
    table = [row for row in matrix if isinstance(row, list)] if isinstance(matrix, list) else []
    width = max(map(len, table), default=0)
    if test_case.kind.startswith("p2p-both"):
        table = table[-width:]
    if width > MOST_GPUS or len(table) > MOST_GPUS:
        return []
    cells = [
        (row, column, number(word, most(test_case)), at)
        for row, words in enumerate(table)
        for column, word in enumerate(words)
        if isinstance(word, str)
    ]
    return [(row, column, value, line) for row, column, value, line in cells if value is not None]


def _broken(body: Mapping[str, Json]) -> str:
    error = _text(body, "error")
    return error[:500] if error else "nvbandwidth's test failed" if _text(body, "status") in ("Error", "ERROR") else ""


def _text(body: Mapping[str, Json], name: str) -> str:
    value = body.get(name)
    return value if isinstance(value, str) else ""


def _line(lines: tuple[str, ...], start: int, end: int, text: str) -> int:
    """Where a text stands, as nearly as can be told: the first line that holds it."""
    return next((at for at in range(start, end) if text and text in lines[at]), start)
