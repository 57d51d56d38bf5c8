"""What each test of nvbandwidth measures, by its name or, where that was cut off, by the heading of its table.

Between two GPUs the arrows of the headings do not show where the data goes. ``read`` copies from the column's GPU into
the row's and prints ``GPU(row) -> GPU(column)``; ``write`` copies from the row's into the column's and prints ``<-``.
In every version from 0.1 to 0.8, as in
https://github.com/NVIDIA/nvbandwidth/blob/66746a3bef61c8c2e12ab34955310da70b9e38cb/testcases_ce.cpp (``doMemcpy`` takes
the source first). Between host and GPU the arrows are right.
"""

from __future__ import annotations

import re

from dgxcheck.facts.record import Record

HOST = re.compile(r"(host_to_device|device_to_host|host_to_all|all_to_host)(_bidirectional)?_memcpy_(ce|sm)")
PAIRS = re.compile(r"device_to_device(_bidirectional)?_memcpy_(read|write)_(ce|sm)")
MANY = re.compile(r"(all_to_one|one_to_all)_(read|write)_(ce|sm)")
HEADING = re.compile(
    r"(?:memcpy (?P<engine>CE|SM)|memory latency SM|Device to Device Latency SM|memcpy local)"
    r"(?: (?P<row>CPU|GPU)\(row\) (?P<arrow>->|<-|<->))? GPU\(column\)"
    r"(?: (?P<part>Read1|Read2|Write1|Write2|Total))?(?: bandwidth)? \((?P<unit>GB/s|ns)\)"
)
HOST_KINDS = {
    "host_to_device": "host-to-device",
    "device_to_host": "device-to-host",
    "host_to_all": "host-to-device-shared",
    "all_to_host": "device-to-host-shared",
}


class Case(Record):
    """How the cells of a table become facts."""

    kind: str
    """Of the facts; empty for a table that says nothing that another one does not: one direction of a sum."""
    pairs: bool
    """GPUs by GPUs; else a row for the host, a column for each GPU."""
    from_column: bool
    """Data goes from the column's GPU to the row's."""
    unit: str
    factor: float
    method: str


def case(name: str, part: str = "", version: tuple[int, int] | None = None) -> Case | None:
    """The case of a test, ``device_to_device_memcpy_read_ce``; ``part`` is what its heading adds, ``Total``."""
    if match := HOST.fullmatch(name):
        way, both, engine = match.groups()
        what = "copies of all GPUs at once, own share" if "all" in way else "copies"
        kind = HOST_KINDS[way] + ("-contended" if both else "")
        against = ", against copies the other way" if both else ""
        return _case(kind, method=f"{_engine(engine)}, {what}{against}, pinned memory")
    if match := PAIRS.fullmatch(name):
        both, way, engine = match.groups()
        kind = ("p2p-both" if part == "Total" else "" if part else "p2p-contended") if both else "p2p"
        method = f"{_engine(engine)}, {'pulled by the receiver' if way == 'read' else 'pushed by the sender'}"
        pulled = way == "read"
        return _case(kind and kind, method=method, pairs=True, from_column=pulled)
    if match := MANY.fullmatch(name):
        return _case(f"p2p-{match[1].replace('_', '-')}", method=f"{_engine(match[3])}, {match[2]}")
    if name == "device_local_copy":
        # It reports what was copied; the memory was read and written (https://github.com/NVIDIA/nvbandwidth/issues/48).
        return _case("device-copy", method="copy engine, read and write counted", factor=2.0)
    if name == "host_device_latency_sm":
        return _case("latency-host-sm", unit="ns", method="pointer chase by the SM")
    if name == "device_to_device_latency_sm":
        # Before 0.8 it measured the host's memory in place of the peer's (CHANGELOG.md of 0.8).
        kind = "" if version is not None and version < (0, 8) else "latency-sm"
        return _case(kind, unit="ns", method="pointer chase by the SM", pairs=True)
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


def _case(
    kind: str,
    *,
    method: str,
    pairs: bool = False,
    from_column: bool = False,
    unit: str = "GB/s",
    factor: float = 1.0,
) -> Case:
    return Case(kind=kind, pairs=pairs, from_column=from_column, unit=unit, factor=factor, method=method)


def _engine(engine: str) -> str:
    return "SM kernel" if engine == "sm" else "copy engine"
