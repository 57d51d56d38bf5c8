"""The tests of nvbandwidth, and the facts that a result of one becomes.

What each test of nvbandwidth measures, by its name or, where that was cut off, by the heading of its table.

Between two GPUs the arrows of the headings do not show where the data goes. ``read`` copies from the column's GPU into
the row's and prints ``GPU(row) -> GPU(column)``; ``write`` copies from the row's into the column's and prints ``<-``.
In every version from 0.1 to 0.8, as in
https://github.com/NVIDIA/nvbandwidth/blob/66746a3bef61c8c2e12ab34955310da70b9e38cb/testcases_ce.cpp (``doMemcpy`` takes
the source first). Between host and GPU the arrows are right.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.combine import Figures, kinds
from dgxcheck.readers.values import LINE, MOST_GBS, gpu

HOST = LazyPattern(r"(host_to_device|device_to_host|host_to_all|all_to_host)(_bidirectional)?_memcpy_(ce|sm)")
PAIRS = LazyPattern(r"device_to_device(_bidirectional)?_memcpy_(read|write)_(ce|sm)")
MANY = LazyPattern(r"(all_to_one|one_to_all)_(read|write)_(ce|sm)")
HEADING = LazyPattern(
    r"(?:memcpy (?P<engine>CE|SM)|memory latency SM|Device to Device Latency SM|memcpy local)"
    r"(?: (?P<row>CPU|GPU)\(row\) (?P<arrow>->|<-|<->))? GPU\(column\)"
    r"(?: (?P<part>Read1|Read2|Write1|Write2|Total))?(?: bandwidth)? \((?P<unit>GB/s|ns)\)"
)
HOST_KINDS = kinds("nvbandwidth")


class Case(Record):
    """How the cells of a table become facts."""

    kind: str
    """Of the facts; empty for a table that says nothing that another one does not: one direction of a sum."""
    pairs: bool = False
    """GPUs by GPUs; else a row for the host, a column for each GPU."""
    from_column: bool = False
    """Data goes from the column's GPU to the row's."""
    unit: str = "GB/s"
    factor: float = 1.0
    method: str


def case(name: str, part: str = "", version: tuple[int, int] | None = None) -> Case | None:
    """The case of a test, ``device_to_device_memcpy_read_ce``; ``part`` is what its heading adds, ``Total``."""
    if match := HOST.fullmatch(name):
        way, both, engine = match.groups()
        what = "copies of all GPUs at once, own share" if "all" in way else "copies"
        kind = HOST_KINDS[way] + ("-contended" if both else "") + ("-sm" if engine == "sm" else "")
        against = ", against copies the other way" if both else ""
        return Case(kind=kind, method=f"{_engine(engine)}, {what}{against}, pinned memory")
    if match := PAIRS.fullmatch(name):
        both, way, engine = match.groups()
        kind = ("p2p-both" if part == "Total" else "" if part else "p2p-contended") if both else "p2p"
        method = f"{_engine(engine)}, {'pulled by the receiver' if way == 'read' else 'pushed by the sender'}"
        return Case(kind=kind, method=method, pairs=True, from_column=way == "read")
    if match := MANY.fullmatch(name):
        return Case(kind=f"p2p-{match[1].replace('_', '-')}", method=f"{_engine(match[3])}, {match[2]}")
    if name == "device_local_copy":
        # It reports what was copied; the memory was read and written (https://github.com/NVIDIA/nvbandwidth/issues/48).
        return Case(kind="device-copy", method="copy engine, read and write counted", factor=2.0)
    if name == "host_device_latency_sm":
        return Case(kind="latency-host-sm", unit="ns", method="pointer chase by the SM")
    if name == "device_to_device_latency_sm":
        # Before 0.8 it measured the host's memory in place of the peer's (CHANGELOG.md of 0.8).
        kind = "" if version is not None and version < (0, 8) else "latency-sm"
        return Case(kind=kind, unit="ns", method="pointer chase by the SM", pairs=True)
    return None


def by_heading(heading: re.Match[str]) -> str:
    """The test's name as far as the heading of its table tells; empty where several print the same one."""
    engine, row, arrow = (heading["engine"] or "").lower(), heading["row"], heading["arrow"]
    if heading["unit"] == "ns":
        return "device_to_device_latency_sm" if row == "GPU" else "host_device_latency_sm"
    if row is None:
        return "" if engine else "device_local_copy"
    if row == "CPU":
        return {"->": f"host_to_device_memcpy_{engine}", "<-": f"device_to_host_memcpy_{engine}"}.get(arrow, "")
    if arrow == "<->":
        return f"device_to_device_bidirectional_memcpy_read_{engine}"
    return f"device_to_device_memcpy_{'read' if arrow == '->' else 'write'}_{engine}"


def _engine(engine: str) -> str:
    return "SM kernel" if engine == "sm" else "copy engine"


MOST_NS = 1e9
DEVICE = ascii_pattern(
    r"(?:Process \d{1,6} \(.{1,255}\): device |Device )?(\d{1,3}): (.{1,100})"
    r" \(([0-9a-f]{8}):([0-9a-f]{2}):([0-9a-f]{2})\)(?:: \(.{0,255}\))?"
)
NAME_ALONE = ascii_pattern(r"Device (\d{1,3}): (.{1,100})")
"""Without a bus id, before 0.5."""
VERSION = ascii_pattern(r"v?(\d{1,4})\.(\d{1,4})(?:\.\d{1,4})?")


def most(case: Case) -> float:
    """The largest number that a cell may hold."""
    return MOST_NS if case.unit == "ns" else MOST_GBS


def version(text: str) -> tuple[int, int] | None:
    """``v0.8`` -> (0, 8)."""
    match = VERSION.fullmatch(text)
    return (int(match[1]), int(match[2])) if match else None


def cells(part: Figures, case: Case, values: Iterable[tuple[int, int, float, int]]) -> None:
    """Of row, column, value and line. 0 stands for what was not measured: old versions print it where new ones print
    ``N/A``."""
    for row, column, value, at in values:
        if not value or not case.kind or (case.pairs and row == column):
            continue
        sender, receiver = (column, row) if case.from_column else (row, column)
        if case.kind.startswith("p2p-both"):
            sender, receiver = min(row, column), max(row, column)
        what = f"{case.kind} {f'{sender} {receiver}' if case.pairs else column}"
        part.measure(what, round(value * case.factor, 6), case.unit, at, case.method)


def without_result(part: Figures, case: Case, why: str, reason: str, detail: str, at: int) -> None:
    """A test without figures, of all GPUs: the output does not say where it broke off."""
    if case.kind:
        part.measured.append((f"measure {case.kind} all", {
            why: reason, "detail": detail, "tool": part.tool, "how": "imported", "from": f"{LINE}{at + 1}",
        }))  # fmt: skip


def wrong(part: Figures, case: Case, offset: int | None, at: int) -> None:
    """A test that found wrong data: it has no rate, and between GPUs the data did not arrive.

    nvbandwidth stops at the first wrong word and does not say of which pair.
    """
    detail = "nvbandwidth found wrong data after a copy" + ("" if offset is None else f", at offset {offset}")
    without_result(part, case, "failed", "integrity", detail, at)
    if case.kind.startswith("p2p"):
        method = f"{case.method}; checked on the receiver up to the first wrong word, of an unnamed pair"
        part.measure("p2p-integrity all", 1, "words", at, method, first=offset)


def device(part: Figures, text: str, at: int, alone: bool = False) -> bool:
    """Is it ``Device 0: NAME (00000000:06:00)``, in JSON without ``Device`` and with the host's name?

    ``alone``: also without a bus id, which other tools print too.
    """
    match = DEVICE.fullmatch(text) or (NAME_ALONE.fullmatch(text) if alone else None)
    index = gpu(match[1]) if match else None
    if match is None or index is None:
        return False
    place: dict[str, Json] = {}
    if match.re is DEVICE.compiled:
        place["bdf"] = f"{int(match[3], 16):04x}:{match[4]}:{match[5]}.0"
    part.device(index, at, name=match[2], **place)
    return True
