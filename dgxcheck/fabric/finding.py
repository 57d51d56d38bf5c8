"""One thing that is wrong with a fabric, and the links that its remedy interrupts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeVar

from dgxcheck.checks.engine.finding import first_of
from dgxcheck.fabric.model import ANY, Fabric, Port
from dgxcheck.fabric.moves import Move
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.infiniband import CAGE_PORTS
from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.typical import gathered
from dgxcheck.fleet.node_names import folded

_SPLIT, _MOST = 2, 8
"""Lanes of a link of a split cable, by which a cage has more ports; ports of any cage."""
Verdict = Literal["pass", "warn", "unknown", "fail"]
VERDICTS: tuple[Verdict, ...] = ("fail", "unknown", "warn", "pass")
"""The worst first."""


class FabricFinding(Record):
    """A sentence with both ends, and what to do."""

    fault: FaultKind
    status: Verdict
    ends: tuple[str, ...]
    """Adapters and ports, as they are shown."""
    moves: tuple[Move, ...] = ()
    """Plugs to be moved, where that is the remedy."""
    message: str
    action: str
    seats: tuple[str, ...] = ()
    """Where these adapters are in their machines, and whether their name or place is wrong there."""
    plugs: tuple[Port, ...] = ()
    """Ports of one cable that is to be reseated or replaced."""
    disturbs: tuple[str, ...] = ()
    """Links that this interrupts: adapters, or both ports of a link between switches."""


_MANY = 3
"""More links than these of one switch or system have a reason there, and are one finding."""
FEW, _LONG = 2, 60
"""More links than these that one switch lacks are one finding; characters of a list of nodes."""
_T = TypeVar("_T")
_V = TypeVar("_V")


def listed(names: Sequence[str]) -> str:
    """``dgx[001-016]``; where that is long the first."""
    return every if len(every := folded(names)) < _LONG else first_of(names, FEW)


def relinking(cable: str, ports: Sequence[Port], fabric: Fabric) -> str:
    """The step for a cable without a link: a port that was disabled is enabled, ibportstate(8)."""
    if shut := [fabric.shown(port) for port in ports if port in fabric.disabled]:
        return (f"look up who disabled {first_of(shut)} and why (UFM, its isolated ports), then enable it (ibportstate"
                " LID PORT enable)")  # fmt: skip
    return f"look at {cable}: reseat both ends, then replace it"


def at_one(
    found: dict[_T, _V], nodes: Callable[[_T], Iterable[str]], totals: Mapping[str, int] | None = None,
    every: Mapping[str, int] = {},
) -> Iterator[tuple[str, dict[_T, _V]]]:  # fmt: skip
    """Switches and systems that many of these have, which are taken out of ``found``; with ``totals`` if they are most
    of its links; with ``every`` also two or three that are all of its links."""
    by_node = gathered((node, each) for each in found for node in dict.fromkeys(nodes(each)))
    for node, those in sorted(by_node.items(), key=lambda pair: -len(pair[1])):
        own = [each for each in those if each in found]
        many = len(own) > _MANY and (totals is None or 2 * len(own) > totals[node])
        if many or 1 < len(own) == every.get(node):
            yield node, {each: found.pop(each) for each in own}


def by_severity(findings: Iterable[FabricFinding]) -> tuple[FabricFinding, ...]:
    return tuple(sorted(findings, key=lambda finding: VERDICTS.index(finding.status)))


def handled(findings: Iterable[FabricFinding], fabric: Fabric) -> Iterator[FabricFinding]:
    """What is wrong with both ports of one cage is one finding; each with the links that share a plug with it."""
    sizes: dict[str, int] = {}
    for (guid, _), cable in fabric.at.items():
        if guid in fabric.switches and cable.speed in CAGE_PORTS:
            sizes[guid] = 1 if cable.lanes == _SPLIT else min(sizes.get(guid, _MOST), CAGE_PORTS[cable.speed])

    def cage(port: Port) -> tuple[str, int, int]:
        """A switch, and the first and last port of the cage."""
        guid, number = port
        size = sizes.get(guid, 1)
        first = number - (number - 1) % size
        return guid, first, first + size - 1

    left = dict(enumerate(findings))
    in_cage = gathered((cage(port), number) for number, finding in left.items() for port in finding.plugs
                       if port[1] != ANY and sizes.get(port[0], 1) > 1)  # fmt: skip
    for (guid, first, last), numbers in in_cage.items():
        found = {number: left[number] for number in numbers if number in left}
        if len(found) > 1 and len({finding.fault.word for finding in found.values()}) == 1:
            one = _of_cage(f"{fabric.switch(guid)} ports {first} and {last}", [*found.values()])
            for number in found:
                del left[number]
            left[min(found)] = one
    for finding in left.values():
        touched = [*finding.plugs, *(port for move in finding.moves for port in (move.of, move.source, move.target))]
        shared = {(guid, port) for guid, first, last in map(cage, touched) for port in range(first, last + 1)}
        links = {fabric.at[port] for port in {*touched, *shared} if port in fabric.at}
        yield replace(finding, disturbs=tuple(sorted(
            " - ".join([fabric.shown(end) for end in ends if end[0] in fabric.adapters] or map(fabric.shown, ends))
            for ends in (cable.ends for cable in links)
        )))  # fmt: skip


def _of_cage(where: str, found: Sequence[FabricFinding]) -> FabricFinding:
    """Of two links in one cage the plug or transceiver that they share is the first to be looked at."""
    return replace(
        found[0],
        ends=tuple(dict.fromkeys(end for finding in found for end in finding.ends)),
        plugs=tuple(dict.fromkeys(port for finding in found for port in finding.plugs)),
        message=f"{where}, one cage: {'; and '.join(finding.message for finding in found)}",
        action="; ".join(filter(None, (f"look first at what they share, the plug or transceiver at {where}",
                                       found[0].fault.remedy))),
    )  # fmt: skip
