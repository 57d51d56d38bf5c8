"""``ibdiagnet2.net_dump``: a block per switch, a row per port of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.fabric.rows import End, PortRow, digits, speed_of_lane
from dgxcheck.readers.values import integer

_SWITCH = LazyPattern(
    r"\"(?P<description>.{1,120})\", {0,4}[^,]{0,60}, {0,4}0x(?P<guid>[0-9a-fA-F]{1,16}), {0,4}"
    r"LID (?P<lid>\d{1,5}).{0,80}"
)
_COLUMNS = 13
_MOST_PORTS = 9999
_STATES = {"DOWN": "DOWN", "INI": "INIT", "ARM": "ARMED", "ACT": "ACTIVE"}
_LANES = re.compile(r"(\d{1,2})x", flags=re.ASCII)


def switches(lines: Iterable[str]) -> Iterator[PortRow]:
    """Columns by their place; the other end of a link between two switches is named by the label of its port."""
    rows: list[tuple[re.Match[str], list[str]]] = []
    switch: re.Match[str] | None = None
    for raw in lines:
        line = raw.strip()
        if found := _SWITCH.fullmatch(line):
            switch = found
        elif switch is not None and line.count(":") >= _COLUMNS - 1:
            columns = [column.strip() for column in line.split(":", _COLUMNS - 1)]
            if integer(columns[1], _MOST_PORTS) is not None:
                rows.append((switch, columns))
    labels = {(digits(switch["guid"]), columns[0]): int(columns[1]) for switch, columns in rows}
    guids = {digits(switch["guid"]) for switch, _ in rows}
    for switch, columns in rows:
        label, port, guid, far = columns[0], int(columns[1]), columns[9], columns[10]
        end = End("switch", digits(switch["guid"]), port, switch["description"], int(switch["lid"]),
                  label if label != columns[1] else "")  # fmt: skip
        peer = None
        if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", guid) and int(guid, 16):
            there = digits(guid)
            other = labels.get((there, far), 0 if there in guids else 1)
            number = other if (printed := integer(far, _MOST_PORTS)) is None else printed
            name = columns[12].strip().strip('"').strip()
            peer = End("switch" if there in guids else "adapter", there, number, name, integer(columns[11], 0xFFFF))
        lanes = _LANES.fullmatch(columns[5])
        yield PortRow(end, peer if peer is None or peer.port else None, int(lanes[1]) if lanes else 0,
                      speed_of_lane(columns[6]), _STATES.get(columns[2], ""), "DISABLE" in columns[3])  # fmt: skip
