"""``ibdev2netdev`` of MLNX_OFED: HCAs, ports and their network interfaces."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.readers.model import Imported
from dgxcheck.readers.network.files import NAME, listed, port_files, state
from dgxcheck.readers.reports import Reports
from dgxcheck.readers.values import bare, bounded

TOOL = "ibdev2netdev"
_ROW = re.compile(
    rf"(?:[0-9a-f:.]{{7,16}} )?(?P<device>{NAME}) (?:\(.{{1,120}}\) )?(?:\S.{{0,120}} fw \S{{1,40}} )?port"
    r" (?P<port>\d{1,3}) (?:\((?P<state>\S{1,10}?) ?\) )?==> (?P<name>[\w.-]{1,32}) \((?P<interface>Up"
    r"|Down)\)(?: #.{0,200})?",
    re.ASCII,
)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The ports, and their states as ``-v`` gives them.

    An interface that is up has a port that is ACTIVE; one that is down may be unconfigured on a port that is.
    """
    facts: dict[str, Json] = {}
    reports = Reports(TOOL)
    ports: dict[str, list[int]] = {}
    understood: set[int] = set()
    for number, line in enumerate(bounded(lines)):
        if match := _ROW.fullmatch(" ".join(bare(line).split())) if "==>" in line else None:
            device, port = match["device"], int(match["port"])
            ports.setdefault(device, []).append(port)
            active = "ACTIVE" if match["interface"] == "Up" else ""
            facts |= port_files(device, port, {"state": state(match["state"] or active)})
            if match["interface"] == "Down" and not match["state"]:
                text = f"its network interface {match['name']} is down, which says nothing of the port itself"
                reports.add(f"{device}/{port}", "interface", "note", None, text)
            understood.add(number)
    facts |= reports.facts() | listed(ports)
    return (Imported(tool=TOOL, facts=facts, understood=frozenset(understood)),) if ports else ()
