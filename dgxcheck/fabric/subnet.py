"""Links that no subnet manager configured: of a whole subnet, of one switch or system, or each alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dgxcheck.checks.engine.finding import counted, first_of
from dgxcheck.fabric.finding import FabricFinding, at_one
from dgxcheck.fabric.model import Cable, Fabric, Port
from dgxcheck.fabric.tiers import Tiers
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.infiniband import PortState

_WAITING = (PortState.INIT, PortState.ARMED)
_NO_LID = "no LID"
_READ = "then read the log of the subnet manager (opensm, UFM)"


def unmanaged(fabric: Fabric, tiers: Tiers) -> Iterator[FabricFinding]:
    """By the states of the ports; where these are not known, by LIDs: an active port has one."""
    waiting: dict[Cable, tuple[Port, str]] = {}
    subnets: dict[int, list[Cable]] = {}
    for cable in fabric.cables:
        states = {end: fabric.states[end] for end in cable.ends if end in fabric.states}
        lids = {end: fabric.lids[end] for end in cable.ends if end in fabric.lids}
        if not states and not lids:
            continue
        island = next((tiers.island[guid] for guid, _ in cable.ends if guid in tiers.island), -1)
        subnets.setdefault(island, []).append(cable)
        found = [(end, state.name) for end, state in states.items() if state in _WAITING]
        found += [(end, _NO_LID) for end, lid in lids.items() if lid == 0 and not states]
        if found:
            waiting[cable] = found[0]
    most = [cables for cables in subnets.values() if 2 * sum(cable in waiting for cable in cables) > len(cables)]
    if links := [cable for cables in most for cable in cables]:
        own = [cable for cable in links if cable in waiting]
        some = "all" if len(own) == len(links) else f"{len(own)} of"
        where = "this subnet" if len(most) == 1 else "each of these subnets"
        yield _of_subnets(own, f"{some} {counted(len(links), 'link')}", where, waiting[own[0]][1], fabric)
    of_most = {*links}
    yield from _of_ports({cable: how for cable, how in waiting.items() if cable not in of_most}, fabric)


def _of_subnets(cables: Sequence[Cable], links: str, where: str, state: str, fabric: Fabric) -> FabricFinding:
    switches = {fabric.switch(guid) for cable in cables for guid, _ in cable.ends
                if guid in fabric.switches}  # fmt: skip
    ends = sorted(switches) or [fabric.shown(end) for end in (cables[0].end, cables[0].peer)]
    return FabricFinding(
        fault=Fault.NO_SUBNET_MANAGER, status="fail", ends=(*ends,),
        message=f"{first_of(ends)}: {_ports(state)} at {links}: no subnet manager configured them",
        action=f"run sminfo on a node of {where}; where no subnet manager answers, look whether opensm, UFM or that of"
        " a switch runs, and at its log, before any cable is moved",
    )  # fmt: skip


def _ports(state: str) -> str:
    return state if state == _NO_LID else f"ports are {state} (link up)"


def _of_ports(waiting: dict[Cable, tuple[Port, str]], fabric: Fabric) -> Iterator[FabricFinding]:
    every = Counter(node for cable in {*fabric.at.values()} for node in {*map(fabric.node, cable.ends)})
    for name, own in at_one(waiting, lambda cable: filter(None, map(fabric.node, cable.ends)), every=every):
        _, state = next(iter(own.values()))
        yield FabricFinding(
            fault=Fault.NO_SUBNET_MANAGER, status="fail", ends=(name,),
            message=f"{name}: {_ports(state)} at {counted(len(own), 'link')}: no subnet manager configured them",
            action=f"run sminfo on a node of this subnet, {_READ} for {name}",
        )  # fmt: skip
    for cable, (end, state) in waiting.items():
        ends = fabric.shown(end), fabric.shown(cable.peer if end == cable.end else cable.end)
        lacks = "port has no LID" if state == _NO_LID else f"port is {state} (link up)"
        yield FabricFinding(
            fault=Fault.NO_SUBNET_MANAGER, status="fail", ends=ends,
            message=f"{ends[0]} - {ends[1]}: {lacks}: no subnet manager configured it",
            action=f"run sminfo on a node of this subnet, {_READ} for this port",
        )  # fmt: skip
