"""Cables that are missing, misplaced or exchanged, by what was planned or by what most systems have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dgxcheck.checks.engine.finding import counted, first_of
from dgxcheck.fabric.finding import FEW, FabricFinding, at_one, listed, relinking
from dgxcheck.fabric.intent import LEAST_SYSTEMS, Dispute, Intent, Places
from dgxcheck.fabric.model import ANY, Fabric, Port, unnumbered
from dgxcheck.fabric.moves import Move, exchanges
from dgxcheck.fabric.plan import Planned
from dgxcheck.fabric.rates import ports_of
from dgxcheck.fabric.tiers import Tiers
from dgxcheck.fabric.uplinks import idle_ports, lacking, uneven
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered

_COUNTED = "numbers its adapters otherwise than other systems, as where one is gone (lspci, ibstat),"
_MOST = 8
"""Ends and places of one finding that are named: a system has as many adapters."""
_OF_HOST = "the adapters that it has (lspci) and the state of their ports (ibstat)"
_OF_SWITCH = "the state of these ports and of their transceivers"


class _Lost(Record, kw_only=False):
    """A cable that one end of has no link."""

    node: str
    """System or switch, as it is shown."""
    name: str
    """Of the adapter; ``port 17`` of a switch."""
    home: Port
    seen: bool
    """Is this end in the fabric?"""

    @property
    def shown(self) -> str:
        """``dgx005 mlx5_1``, ``leaf01 port 17``"""
        return f"{self.node} {self.name}"


def as_most_have(fabric: Fabric, tiers: Tiers, places: Places, intent: Intent) -> Iterator[FabricFinding]:
    """Where there is no plan: each adapter and uplink belongs where those of most systems and switches are."""
    uplinks = uneven(fabric, tiers)
    named = {(adapter.host, adapter.name): adapter.guid for adapter in fabric.adapters.values() if adapter.name}
    homes: dict[Port, Port] = {}
    hidden = _hidden(fabric)
    lost: list[_Lost] = []
    usual = {host: scheme.adapters for scheme in intent.schemes for host in scheme.systems}
    belong = Counter((host, home[0]) for (host, name), home in intent.homes.items() if name in usual[host])
    here = Counter((host, place[0]) for host, own in places.items() for name, place in own.items()
                   if intent.homes.get((host, name), place)[0] == place[0])  # fmt: skip
    for plug, home in intent.homes.items():
        place = places.get(plug[0], {}).get(plug[1])
        end = None if place is None else fabric.far(place)
        if end is not None:
            homes[end] = home
        elif home not in hidden and here[plug[0], home[0]] < belong[plug[0], home[0]]:  # else one of another name is
            lost.append(_Lost(*plug, home, plug in named))
    unplaced = [*_unplaced(fabric, intent, places)]
    yield from unplaced
    yield from (_disputed(each) for each in intent.disputes if not (each.absent and fabric.nameless))
    homes |= uplinks.homes
    found = [moves for moves in exchanges(fabric, homes) if len(moves) > 1 or moves[0].source[0] != moves[0].target[0]]
    yield from _elsewhere(found, lost, fabric, tiers, places)
    yield from lacking(uplinks.lacks, fabric, tiers)
    # of a switch that is off, the adapters say more than the ports above it
    yield from (idle_ports(each, fabric) for each in uplinks.short if each.up or not unplaced)


def _hidden(fabric: Fabric) -> set[Port]:
    """Where adapters are whose description names no host or whose GUID two have, also as ``ANY`` of the switch: one of
    these may be the one that is missed."""
    ends = [cable.ends for cable in fabric.cables]
    ports = {far for pair in ends for near, far in (pair, pair[::-1])
             if near[0] in fabric.adapters and not fabric.adapters[near[0]].name}  # fmt: skip
    ports |= {port for port, peers in fabric.claimed.items() for port in (port, *peers)}
    return ports | {(guid, ANY) for guid, _ in ports}


def _unplaced(fabric: Fabric, intent: Intent, places: Places) -> Iterator[FabricFinding]:
    """Adapters that most systems have and these have not, nor those beside them: their switch is gone.

    Not where as many have no name.
    """
    for scheme in intent.schemes:
        block = {name: names for names in scheme.blocks for name in names}
        lacking = gathered(
            ((tuple(host for host in scheme.systems if name not in places[host] and (host, name) not in intent.homes),
              block.get(name, (name,))), name)
            for name in scheme.adapters if len(scheme.adapters) > 1
        )  # fmt: skip
        for (hosts, _), names in lacking.items():
            others = len(scheme.systems) - len(hosts)
            if len(hosts) > len(fabric.nameless) and others >= LEAST_SYSTEMS:
                is_, it_is = ("is", "it is") if len(names) == 1 else ("are", "they are")
                yield FabricFinding(
                    fault=Fault.CABLE_MISSING, status="fail",
                    ends=tuple(f"{host} {name}" for host in hosts for name in names),
                    message=f"{'/'.join(names)} of {first_of(hosts)} {is_} not in the fabric, as {it_is} of"
                    f" {counted(others, 'other system')}",
                    action="look whether the switch of these adapters is powered on, then at their cables",
                )  # fmt: skip


def _disputed(dispute: Dispute) -> FabricFinding:
    """Nothing is moved: each of the ways may be the right one."""
    if dispute.absent:
        ((having,), (lacking,)), names = dispute.ways, "/".join(dispute.adapters)
        return FabricFinding(
            fault=Fault.CABLE_MISSING, status="warn", ends=tuple(f"{lacking} {name}" for name in dispute.adapters),
            message=f"{names} of {lacking} is not in the fabric, as it is of {having}",
            action=f"look up whether {lacking} should have it here, then look at its port and cable",
        )  # fmt: skip
    shown = [*map(listed, dispute.ways)]
    ways = " and ".join(shown) if len(shown) <= FEW else first_of(shown, FEW)
    return FabricFinding(
        fault=Fault.CABLE_SWAPPED, status="warn",
        ends=tuple(f"{host} {name}" for hosts in dispute.ways for host in hosts for name in dispute.adapters),
        message=f"{ways} cable {'/'.join(dispute.adapters)} differently, and no way is that of most systems",
        action="look up which is right, or give the plan of this fabric (--plan), before any plug is moved",
    )  # fmt: skip


def as_planned(fabric: Fabric, tiers: Tiers, places: Places, planned: Planned) -> Iterator[FabricFinding]:
    """Against the plan: devices and plugs."""
    if names := [f"{name} is {other}" for name, other in planned.renamed.items()]:
        yield FabricFinding(
            fault=Fault.PLAN_NAME, status="warn", ends=(*planned.renamed.values(),),
            message=f"{counted(len(names), 'node')} with another name than in the plan, by the cables:"
            f" {first_of(names)}",
            action=Fault.PLAN_NAME.remedy,
        )  # fmt: skip
    alike = gathered(((unnumbered(name), count, tuple(planned.behind.get(name, ()))), name)
                     for name, count in planned.absent.items())  # fmt: skip
    for (_, count, behind), absent in alike.items():
        also = f", nor {'is' if len(behind) == 1 else 'are'} {listed(behind)} behind it" if behind else ""
        name, (is_, has) = listed(absent), ("is", "has") if len(absent) == 1 else ("are", "have")
        yield FabricFinding(
            fault=Fault.CABLE_MISSING, status="fail", ends=(*absent, *behind),
            message=f"{name} {is_} not in the fabric{also}; {counted(count, 'cable')} planned"
            f"{' for each' * (len(absent) > 1)}",
            action=f"look whether {name} {is_} powered on and, if so, {has} this name in the plan",
        )  # fmt: skip
    found = exchanges(fabric, planned.homes)
    moved = {port for moves in found for move in moves for port in (move.of, move.source)}
    hidden = _hidden(fabric)
    lost = [_Lost(node, fabric.shown(end).removeprefix(f"{node} "), home, True) for end, home in planned.homes.items()
            for node in (fabric.node(end),)
            if end not in fabric.at and not {end, home} & (moved | hidden)]  # fmt: skip
    lost += [_Lost(*plug, home, False) for plug, home in planned.unseen.items() if home not in hidden]
    yield from _elsewhere(found, lost, fabric, tiers, places)


def _elsewhere(
    found: Sequence[tuple[Move, ...]], lost: Sequence[_Lost], fabric: Fabric, tiers: Tiers, places: Places
) -> Iterator[FabricFinding]:  # fmt: skip
    """Where most plugs of one system, or of two of a kind, are in each other's places, a name is likelier wrong; so too
    where another adapter of the system is in the place of one that is missed: it is called so now."""
    sizes = Counter(map(fabric.node, fabric.at))
    shifted = {each.node for each in lost if (far := fabric.far(each.home)) and fabric.node(far) == each.node}
    left = dict.fromkeys(found)
    pairs = [(frozenset(map(fabric.node, ports)), moves) for moves in found
             for ports in ([move.of for move in moves], [move.source for move in moves])]  # fmt: skip
    for nodes, groups in sorted(gathered(pairs).items(), key=lambda pair: -sum(map(len, pair[1]))):
        own = [move for moves in groups if moves in left for move in moves]
        total = sum(sizes[each] for each in nodes)
        if (own and nodes <= shifted) or (len(nodes) <= FEW < len(own) and 2 * len(own) > total):
            for moves in groups:
                left.pop(moves, None)
            gone = [each.shown for each in lost if each.node in nodes]
            lost = [each for each in lost if each.node not in nodes]
            names = " and ".join(sorted(nodes))
            here = sorted({fabric.switch(move.source[0]) for move in own})
            there = sorted({fabric.switch(move.target[0]) for move in own})
            if len(nodes) > 1:
                where, why = "in each other's places", "have each other's name or place"
            elif not nodes <= shifted and not {move.source for move in own} & {move.target for move in own}:
                beside = listed(here), listed(there)
                where = f"at other ports of {beside[0]}" if here == there else "on {}, not on {}".format(*beside)
                why = "is where it should be, or has the name of another"
            else:
                where = "in the places of its other cables"
                of_host = fabric.node(own[0].of) in nodes and own[0].of[0] in fabric.adapters
                why = _COUNTED if of_host else "numbers its ports otherwise than other switches,"
            steps = [f"{fabric.shown(move.of)} to {fabric.shown(move.target)}" for move in own]
            yield FabricFinding(
                fault=Fault.CABLE_SWAPPED, status="warn",
                ends=(*sorted(nodes), *(fabric.shown(move.of) for move in own), *gone),
                message=f"{names}: {len(own)} of {total} cables {where}"
                f"{f', and {first_of(gone)} has no link' if gone else ''}",
                action=f"look whether {names} {why} before any plug is moved; if not, move {first_of(steps, _MOST)}",
            )  # fmt: skip
    yield from (_misplaced(moves, fabric, tiers, places) for moves in left)
    yield from _missing(lost, fabric)


def _missing(lost: Sequence[_Lost], fabric: Fabric) -> Iterator[FabricFinding]:
    """Many of one switch or system have a reason there, and are one finding."""
    left = dict.fromkeys(lost)
    for node, many in at_one(left, lambda each: (each.node, fabric.switch(each.home[0]))):
        own = [*many]
        names = gathered((each.name, each.node) for each in own)
        places = gathered((fabric.switch(each.home[0]), each.home) for each in own)
        at = [switch if any(number == ANY for _, number in homes) else f"{switch} {ports_of(homes, fabric)}"
              for switch, homes in places.items()]  # fmt: skip
        of_host = own[0].node == node
        what = first_of([*names] if of_host else [f"{name} of {listed(of)}" for name, of in names.items()], _MOST)
        yield FabricFinding(
            fault=Fault.CABLE_MISSING, status="fail", ends=(node, *(each.shown for each in own)),
            message=f"{node}: {len(own)} cables without a link: {what}; they belong to {first_of(at, _MOST)}",
            action=f"look at {node} for {_OF_HOST if of_host else _OF_SWITCH}, then for what these cables share,"
            " before one is reseated",
        )  # fmt: skip
    shut = gathered((fabric.shown(port), port) for port in fabric.disabled)
    for each in left:
        place, state = fabric.shown(each.home), "has no link" if each.seen else "is not in the fabric"
        ends = each.home, *shut.get(each.shown, ())
        enabled = fabric.disabled.isdisjoint(ends)
        yield FabricFinding(
            fault=Fault.CABLE_MISSING, status="fail", ends=(each.shown, place), plugs=(each.home,) if enabled else (),
            message=f"{each.shown} {state}; it belongs to {place}{_occupied(each.home, fabric)}"
            f"{'' if enabled else '; a port is disabled'}",
            action=relinking(f"the cable from {each.shown} to {place}", ends, fabric),
        )  # fmt: skip


def _occupied(home: Port, fabric: Fabric) -> str:
    far = fabric.far(home)
    return f", where {fabric.shown(far)} is" if far is not None else ""


def _misplaced(moves: tuple[Move, ...], fabric: Fabric, tiers: Tiers, places: Places) -> FabricFinding:
    names = [fabric.shown(move.of) for move in moves]
    near = {move.of[0] for move in moves}
    at_hand = len(moves) > 1 and len(near) == 1 and near <= fabric.switches.keys()
    ports = [fabric.shown(move.of if at_hand else move.source) for move in moves]
    if len(moves) == 1:
        move = moves[0]
        home = fabric.shown(move.target)
        free = f"a free port of {home}" if move.target[1] == ANY else home
        return FabricFinding(
            fault=Fault.CABLE_MISPLACED, status="warn", ends=(names[0], ports[0]), moves=moves,
            message=f"{names[0]} is on {ports[0]}{_role(move, fabric, tiers, places)}; it belongs to"
            f" {home}{_occupied(move.target, fabric) if move.target[1] != ANY else ''}",
            action=f"move its plug from {ports[0]} to {free}",
        )  # fmt: skip
    if len(moves) > 2:
        steps = ", ".join(f"{name} to {fabric.shown(move.target)}" for name, move in zip(names, moves, strict=True))
        message = f"{first_of(names)} have each other's cables in a ring"
        action = f"move the plugs of these cables: {steps}"
    else:
        of_one = len({name.rpartition(" ")[0] for name in names}) == 1
        second = names[1].rpartition(" ")[2] if of_one else names[1]
        (first, _, a), (switch, _, b) = (port.rpartition(" port ") for port in ports)
        where = f"{first} ports {a} and {b}" if first and first == switch else f"{ports[0]} and {ports[1]}"
        on = "" if at_hand else f": {where}"
        message = f"{where if at_hand else f'{names[0]} and {second}'} have each other's cable{on}"
        action = f"exchange the two plugs at {where}"
    crossing = {move.source[0] for move in moves}
    return FabricFinding(
        fault=Fault.CABLE_SWAPPED, status="warn", ends=(*names, *ports), moves=moves,
        message=f"{message}{'' if len(crossing) > 1 else '; on one switch this costs no bandwidth'}", action=action,
    )  # fmt: skip


def _role(move: Move, fabric: Fabric, tiers: Tiers, places: Places) -> str:
    """What the switch is, where an adapter is: a spine, or that of another adapter."""
    switch, adapter = move.source[0], fabric.adapters.get(move.of[0])
    if adapter is None:
        return ""
    if tiers.of.get(switch):
        return ", a spine"
    names = Counter(name for own in places.values() for name, place in own.items() if place[0] == switch)
    if not names:
        return ""  # joined with another adapter, or a switch whose GUID two have
    name, count = names.most_common(1)[0]
    if names[adapter.name] > 1 or name == adapter.name:
        return f", not beside the other adapters of {adapter.host}"
    return f", the switch of {name} ({counted(count, 'system')}): traffic to other {adapter.name} crosses a spine"
