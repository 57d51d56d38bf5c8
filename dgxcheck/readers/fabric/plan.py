"""How a fabric was meant to be cabled: ibdiagnet's topo file, or ``host,adapter,switch,port`` as csv."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record
from dgxcheck.lazy_pattern import ascii_pattern
from dgxcheck.readers.fabric.lldp import number_of


class PlannedEnd(Record, kw_only=False):
    """A plug: of a system with the name of its adapter, of a switch with the number of its port."""

    node: str
    adapter: str
    """``mlx5_0``; empty for a switch."""
    port: int
    """Of a switch; 0 for an adapter."""


class PlannedCable(Record, kw_only=False):
    """Both ends, and the rate where it is planned."""

    end: PlannedEnd
    peer: PlannedEnd
    lanes: int = 0
    lane_gbit: float = 0.0

    @property
    def ends(self) -> tuple[PlannedEnd, PlannedEnd]:
        """Both of them."""
        return self.end, self.peer


_NODE = ascii_pattern(r"(?P<model>\S{1,60})[ \t]{1,20}(?P<name>\S{1,100})")
_LINE = ascii_pattern(
    r"(?P<port>\S{1,40})[ \t]{1,20}-(?:(?P<lanes>\d{1,2})x)?-?(?:(?P<rate>\d{1,4}(?:\.\d{1,4})?)G)?-?>[ \t]{1,20}"
    r"(?P<model>\S{1,60})[ \t]{1,20}(?P<node>\S{1,100})[ \t]{1,20}(?P<far>\S{1,60})",
    ">",
)
_COLUMNS = ("host", "adapter", "switch", "port")
_ADAPTER = re.compile(r"(?P<adapter>[A-Za-z][\w.-]{0,40}?\d{1,4})(?:/P(?P<port>\d{1,2}))?", flags=re.ASCII)


def planned(text: str, name: str) -> tuple[PlannedCable, ...]:
    """The cables, each once. Raises BadInput with the line that is neither form."""
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip() and line[0] != "#"]
    cables = _topo(lines, name) if any("->" in line for _, line in lines) else _csv(lines, name)
    if not cables:
        raise BadInput(f"{name}: holds no cable; a plan is a topo file of ibdiagnet, or lines {','.join(_COLUMNS)}")
    seen: dict[frozenset[PlannedEnd], PlannedCable] = {}
    for cable in cables:
        seen.setdefault(frozenset((cable.end, cable.peer)), cable)
    _check(seen, name)
    return tuple(seen.values())


def _check(cables: dict[frozenset[PlannedEnd], PlannedCable], name: str) -> None:
    """A port that two cables share is a mistake of the plan, not of the fabric."""
    used: set[PlannedEnd] = set()
    for ends in cables:
        for end in ends:
            if end in used:
                what = end.adapter or f"port {end.port}"
                raise BadInput(f"{name}: two cables are planned for {end.node} {what}")
        used |= ends


def _csv(lines: list[tuple[int, str]], name: str) -> list[PlannedCable]:
    cables: list[PlannedCable] = []
    order: tuple[str, ...] = _COLUMNS
    for number, line in lines:
        values = [value.strip().strip('"') for value in line.split(",")]
        if not cables and set(_COLUMNS) <= {value.lower() for value in values}:
            order = tuple(value.lower() for value in values)
            continue
        columns = dict(zip(order, values, strict=False))
        if not all(columns.get(column) for column in _COLUMNS) or not (port := number_of(columns["port"])):
            raise BadInput(f"{name}: line {number}: not a cable; write {','.join(_COLUMNS)}")
        peer = PlannedEnd(columns["switch"], "", port)
        cables.append(PlannedCable(_end(columns["host"], columns["adapter"]), peer))
    return cables


def _topo(lines: list[tuple[int, str]], name: str) -> list[PlannedCable]:
    cables: list[PlannedCable] = []
    node = ""
    for number, line in lines:
        cable = _LINE.fullmatch(line.strip())
        if cable is not None and node:
            end, peer = _end(node, cable["port"]), _end(cable["node"], cable["far"])
            cables.append(PlannedCable(end, peer, int(cable["lanes"] or 0), float(cable["rate"] or 0)))
        elif "->" not in line and (head := _NODE.fullmatch(line.strip())):
            node = head["name"]
        else:
            raise BadInput(f"{name}: line {number}: neither a node nor a cable of a topo file")
    return cables


def _end(node: str, port: str) -> PlannedEnd:
    """``mlx5_0/P1`` and ``HCA-1`` are of an adapter, ``P41``, ``41`` and ``swp41`` of a switch."""
    found = _ADAPTER.fullmatch(port)
    if found is None or re.fullmatch(r"(?:P|swp?|Ethernet)\d.*", port):
        return PlannedEnd(node, "", number_of(port))
    second = found["port"] if found["port"] not in (None, "1") else ""
    return PlannedEnd(node, f"{found['adapter']} port {second}" if second else found["adapter"], 0)
