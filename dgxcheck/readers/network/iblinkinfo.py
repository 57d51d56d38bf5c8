"""``iblinkinfo``, also with ``-l``: the links of an InfiniBand fabric, from both ends."""

from __future__ import annotations

import re

from dgxcheck.facts.faults import Fault
from dgxcheck.readers.model import Imported
from dgxcheck.readers.network.files import state
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bounded

TOOL = "iblinkinfo"
_LINK = re.compile(
    r"(?P<before>.{0,200}?)(?<![\w.])(?P<lid>\d{1,5}) {1,12}(?P<port>\d{1,3})\[.{0,8}\] {0,4}==\( {0,16}"
    r"(?:(?P<lanes>\d{1,2})X {1,16}(?P<speed>[\d.]{1,12} Gbps(?: or FDR10)?) {1,8})?"
    r"(?P<state>[A-Za-z]{2,12}) {0,8}/ {0,8}(?P<physical>[A-Za-z ]{4,20}?) {0,4}\)==> {0,20}"
    r"(?P<far>[^\"]{0,60})\"(?P<peer>[^\"]{0,100})\" {0,4}\( {0,4}(?P<could>[^()]{0,80}?) {0,4}\)",
    re.ASCII,
)
_HEAD = re.compile(r"(?:CA|Switch|Router):? (?:0x[0-9a-f]{16} )?(?P<node>.{1,120}):", re.ASCII)
_NODE = re.compile(r'"\s{0,40}(?P<node>[^"]{1,100}?)\s{0,40}"')
_OTHER = re.compile(r"[^\w.-]+")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Links below the speed or width that both ends support, and those that wait for a subnet manager.

    A port that is down is one that nothing is plugged into; how many were meant to be up nobody can tell.
    """
    reports = Reports(TOOL)
    understood: set[int] = set()
    heads: set[int] = set()
    node = ""
    for number, line in enumerate(bounded(lines)):
        link = _LINK.fullmatch(line.strip()) if "==(" in line else None
        if link is not None:
            own = _NODE.search(link["before"])
            _take(reports, link, own["node"] if own else node)
            understood.add(number)
        elif head := _HEAD.fullmatch(line.strip()):
            node = head["node"]
            heads.add(number)
    if not understood:
        return ()
    near = {head for head in heads if head + 1 in understood or head + 1 in heads}
    return (Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(understood | near)),)


def _take(reports: Reports, link: re.Match[str], node: str) -> None:
    """``node``: the description of the HCA or switch whose port it is, ``gpu01 mlx5_0``; the lid where that is cut."""
    of_link = state(link["state"])
    words = " ".join(link["physical"].split())
    name = _OTHER.sub(".", node).strip(".") or f"lid{link['lid']}"
    where, peer = f"{name}/{link['port']}", f"to {link['peer'] or 'a port without a name'}"
    could = " ".join(link["could"].split())
    runs = f"{link['lanes']}X {link['speed']}" if link["lanes"] else ""
    if of_link in ("2: INIT", "3: ARMED") and words == "LinkUp":
        text = f"the link {peer} is {of_link[3:]}: no subnet manager configured it"
        reports.add(where, "state", "warn", Fault.NO_SUBNET_MANAGER, text)
    elif "ould be" in could:
        text = f"the link {peer} runs at {runs}: {could[0].lower()}{could[1:]}"
        reports.add(where, "rate", "warn", Fault.PORT_SLOW, text)
    elif words in ("LinkErrorRecovery", "Link Error Recovery"):
        reports.add(where, "state", "warn", Fault.PORT_ERRORS, f"the link {peer} is recovering from errors")
    elif of_link == "4: ACTIVE":
        reports.add(HOST, "links", "pass")
