"""``ibdiagnet2.db_csv``: sections of rows with commas between, each with the names of its columns above."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache

from dgxcheck.facts.infiniband import LANE_GBIT
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.fabric.rows import End, EndKind, PortRow, digits
from dgxcheck.readers.network.counters import MOST, file_of
from dgxcheck.readers.values import integer

_BEGIN = LazyPattern(r"START_(?P<name>[A-Z0-9_]{2,80})")
_NODES, _PORTS, _LINKS, _COUNTERS = "NODES", "PORTS", "LINKS", "PM_INFO"
_WANTED = frozenset({_NODES, _PORTS, _LINKS, _COUNTERS})
_GUID = LazyPattern(r"0x[0-9a-fA-F]{1,16}")
_SWITCH = "2"
_LANES = {1: 1, 2: 4, 4: 8, 8: 12, 16: 2}
_SPEEDS = {1: "SDR", 2: "DDR", 4: "QDR", 1 << 8: "FDR", 1 << 9: "EDR", 1 << 10: "HDR", 1 << 11: "NDR", 1 << 12: "XDR",
           1 << 16: "FDR10"}  # fmt: skip
"""Bits of ibdiagnet's own: those of LinkSpeed, and those of LinkSpeedExt above them (ibutils2, ibdm: IBLinkSpeed)."""
_STATES = {1: "DOWN", 2: "INIT", 3: "ARMED", 4: "ACTIVE"}
_DISABLED = 3
_MOST_PORTS = 9999
_MTUS = {1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096}
"""NeighborMTU of PortInfo."""
Row = Mapping[str, str]


@lru_cache(maxsize=1)
def sections(lines: tuple[str, ...]) -> dict[str, list[Row]]:
    """The rows of what is read here, by the name of the section; names of columns, which sections spell differently, in
    small letters, except those of counters."""
    found: dict[str, list[Row]] = {}
    columns: Sequence[str] = ()
    rows: list[Row] | None = None
    counters = False
    for raw in lines:
        line = raw.strip()
        if begun := _BEGIN.fullmatch(line):
            name = begun["name"]
            rows, columns, counters = (found.setdefault(name, []) if name in _WANTED else None), (), name == _COUNTERS
        elif line.startswith("END_") or rows is None or not line:
            rows = None if line.startswith("END_") else rows
        else:
            cells = _cells(line)
            if columns:
                rows.append(dict(zip(columns, map(str.strip, cells), strict=False)))
            else:
                columns = [_column(cell.strip(), counters) for cell in cells]
    return found


def _cells(line: str) -> list[str]:
    """None of a line that no such file has: with a field of over 128 KiB or, before Python 3.11, a NUL."""
    try:
        return next(csv.reader([line])) if '"' in line else line.split(",")
    except csv.Error:
        return []


def _column(name: str, counters: bool) -> str:
    return name if counters and not name.lower().startswith(("nodeguid", "portguid", "portnum")) else name.lower()


def _place(row: Row, number: str = "") -> tuple[str, int] | None:
    """Node and port of a row; ``number``: of which of both ends of a link."""
    guid = row.get(f"nodeguid{number}", "")
    port = integer(row.get(f"portnum{number}", row.get("portnumber", "")), _MOST_PORTS)
    return (digits(guid), port) if _GUID.fullmatch(guid) and port is not None else None


def ports(lines: tuple[str, ...]) -> Iterator[PortRow]:
    """Both ends of every link, and the ports of switches without one."""
    found = sections(lines)
    nodes = {digits(row.get("nodeguid", "")): row for row in found.get(_NODES, ())}
    every = {place: row for row in found.get(_PORTS, ()) if (place := _place(row)) is not None}
    linked: dict[tuple[str, int], tuple[str, int]] = {}
    for row in found.get(_LINKS, ()):
        near, far = _place(row, "1"), _place(row, "2")
        if near is not None and far is not None and near[0] in nodes and far[0] in nodes:
            linked |= {near: far, far: near}
    for place in dict.fromkeys((*linked, *every)):
        far, row = linked.get(place), every.get(place, {})
        if far is None and (nodes.get(place[0], {}).get("nodetype") != _SWITCH or not place[1]):
            continue
        lanes = _LANES.get(integer(row.get("linkwidthactv", ""), MOST) or 0, 0)
        speed = _SPEEDS.get(integer(row.get("linkspeedactv", ""), MOST) or 0, "")
        state = _STATES.get(integer(row.get("portstate", ""), MOST) or 0, "")
        disabled = integer(row.get("portphystate", ""), MOST) == _DISABLED
        peer = None if far is None else _end(far, nodes, every)
        could = "" if far is None else _could(lanes, speed, row, every.get(far, {}))
        yield PortRow(_end(place, nodes, every), peer, lanes, speed if peer else "", state, disabled, could)


def _could(lanes: int, speed: str, row: Row, other: Row) -> str:
    """``could be 4X``: what both ends support, where the link runs below that."""
    widths, speeds = (
        (integer(row.get(column, ""), MOST) or 0) & (integer(other.get(column, ""), MOST) or 0)
        for column in ("linkwidthsup", "linkspeedsup")
    )
    most = max((count for bit, count in _LANES.items() if bit & widths), default=0)
    if 0 < lanes < most:
        return f"could be {most}X"
    names = [name for bit, name in sorted(_SPEEDS.items()) if bit & speeds]
    fastest = max(names, key=lambda name: LANE_GBIT[name], default="")
    return f"could be {fastest}" if speed and fastest and LANE_GBIT[speed] < LANE_GBIT[fastest] else ""


def _end(place: tuple[str, int], nodes: Mapping[str, Row], every: Mapping[tuple[str, int], Row]) -> End:
    """A switch has its LID at port 0."""
    node, port = place
    row = nodes[node]
    is_switch = row.get("nodetype") == _SWITCH
    of_port = every.get((node, 0) if is_switch else place, {})
    kind: EndKind = "switch" if is_switch else "adapter"
    guid = node if is_switch else _port_guid(node, of_port)
    lid, mtu = integer(of_port.get("lid", ""), 0xFFFF), integer(of_port.get("nmtu", ""), MOST) or 0
    return End(kind, guid, port, row.get("nodedesc", ""), lid, mtu=0 if is_switch else _MTUS.get(mtu, 0))


def _port_guid(node: str, row: Row) -> str:
    guid = row.get("portguid", "")
    return digits(guid) if _GUID.fullmatch(guid) and int(guid, 16) else node


def errors(lines: tuple[str, ...]) -> Iterator[tuple[str, int, dict[str, int]]]:
    """GUID, port and the counters by their names in sysfs, the larger of those that have an extended one, too."""
    found = sections(lines)
    switches = {digits(row.get("nodeguid", "")) for row in found.get(_NODES, ()) if row.get("nodetype") == _SWITCH}
    every = {place: row for row in found.get(_PORTS, ()) if (place := _place(row)) is not None}
    names = cache(lambda column: file_of(column.removesuffix("Ext").removesuffix("Extended")))
    for row in found.get(_COUNTERS, ()):
        if (place := _place(row)) is None:
            continue
        counts: dict[str, int] = {}
        for column, value in row.items():
            name = names(column)
            if name is not None and (count := integer(value, MOST)) is not None:
                counts[name] = max(count, counts.get(name, 0))
        node, port = place
        yield node if node in switches else _port_guid(node, every.get(place, {})), port, counts
