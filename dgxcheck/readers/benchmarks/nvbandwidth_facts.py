"""Facts out of nvbandwidth's tables, whether printed as text or as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dgxcheck.facts.missing import Json
from dgxcheck.readers.benchmarks.nvbandwidth_tests import Case
from dgxcheck.readers.values import MOST_GBS, gpu, imported

MOST_NS = 1e9
DEVICE = re.compile(
    r"(?:Device )?(\d{1,3}): (.{1,100}) \(([0-9a-f]{8}):([0-9a-f]{2}):([0-9a-f]{2})\)(?:: \(.{0,255}\))?",
    re.ASCII,
)
NAME_ALONE = re.compile(r"Device (\d{1,3}): (.{1,100})", re.ASCII)
"""Without a bus id, before 0.5."""
VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.\d{1,4})?", re.ASCII)


def most(case: Case) -> float:
    """The largest number that a cell may hold."""
    return MOST_NS if case.unit == "ns" else MOST_GBS


def version(text: str) -> tuple[int, int] | None:
    """``v0.8`` -> (0, 8)."""
    match = VERSION.fullmatch(text)
    return (int(match[1]), int(match[2])) if match else None


def cells(case: Case, values: Iterable[tuple[int, int, float, int]], tool: str) -> list[tuple[str, Json]]:
    """Facts of (row, column, value, line) cells. 0 stands for what was not measured: old versions print it where new
    ones print ``N/A``."""
    facts: list[tuple[str, Json]] = []
    for row, column, value, at in values:
        if not value or not case.kind or (case.pairs and row == column):
            continue
        sender, receiver = (column, row) if case.from_column else (row, column)
        if case.kind.startswith("p2p-both"):
            sender, receiver = min(row, column), max(row, column)
        fact = imported(round(value * case.factor, 6), case.unit, tool=tool, line=at, method=case.method)
        facts.append(
            (f"measure {case.kind} {sender} {receiver}" if case.pairs else f"measure {case.kind} {column}", fact)
        )
    return facts


def without_result(case: Case, why: str, reason: str, detail: str, tool: str, at: int) -> list[tuple[str, Json]]:
    """The fact of a test without figures, of all GPUs: the output does not say where it broke off."""
    if not case.kind:
        return []
    fact: dict[str, Json] = {why: reason, "detail": detail, "tool": tool, "how": "imported", "from": f"line {at + 1}"}
    return [(f"measure {case.kind} all", fact)]


def wrong(case: Case, offset: int | None, tool: str, at: int) -> list[tuple[str, Json]]:
    """The facts of a test that found wrong data: it has no rate, and between GPUs the data did not arrive.

    nvbandwidth stops at the first wrong word and does not say of which pair.
    """
    detail = "nvbandwidth found wrong data after a copy" + ("" if offset is None else f", at offset {offset}")
    facts = without_result(case, "failed", "integrity", detail, tool, at)
    if case.kind.startswith("p2p"):
        method = f"{case.method}; checked on the receiver up to the first wrong word, of an unnamed pair"
        fact = imported(1, "words", tool=tool, line=at, method=method, first=offset)
        facts.append(("measure p2p-integrity all", fact))
    return facts


def device(text: str, tool: str, at: int, alone: bool = False) -> list[tuple[str, Json]]:
    """``Device 0: NAME (00000000:06:00)``, in JSON without ``Device`` and with the host's name.

    ``alone``: also without a bus id, which other tools print too.
    """
    match = DEVICE.fullmatch(text) or (NAME_ALONE.fullmatch(text) if alone else None)
    index = gpu(match[1]) if match else None
    if match is None or index is None:
        return []
    place: dict[str, Json] = {}
    if match.re is DEVICE:
        place["bdf"] = f"{int(match[3], 16):04x}:{match[4]}:{match[5]}.0"
    fact = imported(None, "", tool=tool, line=at, method="CUDA order", name=match[2], **place)
    return [(f"measure device {index}", fact)]
