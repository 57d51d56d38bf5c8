"""``ibstatus``: a shell script that prints the files of ``/sys/class/infiniband`` port by port."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.readers.model import Imported
from dgxcheck.readers.network.files import NAME, lid, listed, physical, port_files, state
from dgxcheck.readers.values import bare, bounded

TOOL = "ibstatus"
_HEAD = re.compile(rf"Infiniband device '({NAME})' port (\d{{1,3}}) status:", re.IGNORECASE | re.ASCII)
_RATE = re.compile(r"[0-9.]{1,8} Gb/sec \(\d{1,3}X(?: [A-Z0-9]{1,8})?\)", re.ASCII)
_LABELS = ("default gid", "base lid", "sm lid", "state", "phys state", "rate", "link_layer")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every port that it lists."""
    facts: dict[str, Json] = {}
    ports: dict[str, list[int]] = {}
    understood: set[int] = set()
    device = ""
    port = 0
    for number, raw in enumerate(bounded(lines)):
        line = bare(raw)
        label, _, value = (part.strip() for part in line.partition(":"))
        if match := _HEAD.fullmatch(line):
            device, port = match[1], int(match[2])
            ports.setdefault(device, []).append(port)
        elif device and label in _LABELS:
            facts |= port_files(device, port, _files(label, value))
        else:
            device = device if not line else ""
            continue
        understood.add(number)
    if not ports:
        return ()
    return (Imported(tool=TOOL, facts={**facts, **listed(ports)}, understood=frozenset(understood)),)


def _files(label: str, value: str) -> dict[str, str | None]:
    return {
        "base lid": {"lid": lid(value)}, "sm lid": {"sm_lid": lid(value)}, "state": {"state": state(value)},
        "phys state": {"phys_state": physical(value)}, "link_layer": {"link_layer": value[:40] or None},
        "rate": {"rate": value if _RATE.fullmatch(value) else None},
    }.get(label, {})  # fmt: skip
