"""Cables that are missing, misplaced or exchanged, by what was planned or by what most systems have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from dgxcheck.checks.engine.wording import counted, first_of
from dgxcheck.fabric.finding import FabricFinding
from dgxcheck.fabric.intent import LEAST_SYSTEMS, Dispute, Intent, Places
from dgxcheck.fabric.model import ANY, Fabric, Port
from dgxcheck.fabric.moves import Move, exchanges
from dgxcheck.fabric.plan import Planned
from dgxcheck.fabric.tiers import Tiers
from dgxcheck.fabric.uplinks import Lack, Short, uneven
from dgxcheck.facts.cpulist import cpulist, runs_of
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.typical import gathered
from dgxcheck.fleet.node_names import folded

_FEW = 2
"""More links than these that one switch lacks are one finding."""
_LONG = 60
"""Characters of a list of systems."""


def as_most_have(fabric: Fabric, tiers: Tiers, places: Places, intent: Intent) -> Iterator[FabricFinding]:
    """Where there is no plan: each adapter and uplink belongs where those of most systems and switches are."""
    uplinks = uneven(fabric, tiers)
    named = {(adapter.host, adapter.name): adapter.guid for adapter in fabric.adapters.values() if adapter.name}
    homes: dict[Port, Port] = {}
    hidden = _hidden(fabric)
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
            yield _missing(f"{plug[0]} {plug[1]}", home, fabric, plug in named)
    unplaced = [*_unplaced(fabric, intent, places)]
    yield from unplaced
    yield from (_disputed(each) for each in intent.disputes if not (each.absent and fabric.nameless))
    homes |= uplinks.homes
    current = {end: place for end in homes if (place := fabric.far(end)) is not None}
    for moves in exchanges(current, {end: home for end, home in homes.items() if end in current}):
        if len(moves) > 1 or moves[0].source[0] != moves[0].target[0]:
            yield _misplaced(moves, fabric, tiers, places)
    yield from _lacking(uplinks.lacks, fabric, tiers)
    # of a switch that is off, the adapters say more than the ports above it
    yield from (_short(each, fabric) for each in uplinks.short if each.up or not unplaced)


def _hidden(fabric: Fabric) -> set[Port]:
    """Where adapters are whose description names no host or whose GUID two have, also as ``ANY`` of the switch: one of
    these may be the one that is missed."""
    ends = [(cable.end, cable.peer) for cable in fabric.cables]
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
                    fault=Fault.CABLE_MISSING, status="fail", moves=(),
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
            moves=(), message=f"{names} of {lacking} is not in the fabric, as it is of {having}",
            action=f"look up whether {lacking} should have it here, then look at its port and cable",
        )  # fmt: skip
    shown = [*map(_listed, dispute.ways)]
    ways = " and ".join(shown) if len(shown) <= _FEW else first_of(shown, _FEW)
    return FabricFinding(
        fault=Fault.CABLE_SWAPPED, status="warn", moves=(),
        ends=tuple(f"{host} {name}" for hosts in dispute.ways for host in hosts for name in dispute.adapters),
        message=f"{ways} cable {'/'.join(dispute.adapters)} differently, and no way is that of most systems",
        action="look up which is right, or give the plan of this fabric (--plan), before any plug is moved",
    )  # fmt: skip


def _listed(names: Sequence[str]) -> str:
    return every if len(every := folded(names)) < _LONG else first_of(names, _FEW)


def as_planned(fabric: Fabric, tiers: Tiers, places: Places, planned: Planned) -> Iterator[FabricFinding]:
    """Against the plan: devices and plugs."""
    for name, count in planned.absent.items():
        behind = planned.behind.get(name, ())
        also = f", nor {'is' if len(behind) == 1 else 'are'} {_listed(behind)} behind it" if behind else ""
        yield FabricFinding(
            fault=Fault.CABLE_MISSING, status="fail", ends=(name, *behind), moves=(),
            message=f"{name} is not in the fabric{also}; {counted(count, 'cable')} planned",
            action=f"look whether {name} is powered on and, if it is, has this name in the plan",
        )  # fmt: skip
    current = {end: place for end in planned.homes if (place := fabric.far(end)) is not None}
    moved: set[Port] = set()
    for moves in exchanges(current, {end: home for end, home in planned.homes.items() if end in current}):
        moved |= {move.of for move in moves} | {move.source for move in moves}
        yield _misplaced(moves, fabric, tiers, places)
    hidden = _hidden(fabric)
    for end, home in planned.homes.items():
        if end not in current and not {end, home} & (moved | hidden):
            yield _missing(fabric.shown(end), home, fabric, True)
    for name, home in planned.unseen.items():
        if home not in hidden:
            yield _missing(name, home, fabric, False)


def _missing(what: str, home: Port, fabric: Fabric, seen: bool) -> FabricFinding:
    place, state = fabric.shown(home), "has no link" if seen else "is not in the fabric"
    return FabricFinding(
        fault=Fault.CABLE_MISSING, status="fail", ends=(what, place), moves=(), plugs=(home,),
        message=f"{what} {state}; it belongs to {place}{_occupied(home, fabric)}",
        action=f"look at the cable from {what} to {place}: reseat both ends, then replace it",
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
    name, count = names.most_common(1)[0]
    if names[adapter.name] > 1 or name == adapter.name:
        return f", not beside the other adapters of {adapter.host}"
    return f", the switch of {name} ({counted(count, 'system')}): traffic to other {adapter.name} crosses a spine"


def _lacking(lacks: Sequence[Lack], fabric: Fabric, tiers: Tiers) -> Iterator[FabricFinding]:
    by_lower = gathered((lack.lower, lack) for lack in lacks)
    for lower, found in by_lower.items():
        name = fabric.switch(lower)
        if len(found) > _FEW:
            count = len(tiers.uplinks[lower])
            yield FabricFinding(
                fault=Fault.UPLINKS_UNEVEN, status="fail", ends=(name,), moves=(),
                message=f"{name} has {counted(count, 'uplink')}, {count + len(found)} would be as at the others; it"
                f" lacks those to {first_of([*dict.fromkeys(fabric.switch(lack.upper) for lack in found)])}",
                action=f"look at these cables of {name}, or at the power of the switches above",
            )  # fmt: skip
            continue
        by_upper = {lack.upper: [other for other in found if other.upper == lack.upper] for lack in found}
        for guid, those in by_upper.items():
            upper = fabric.switch(guid)
            cables = [tuple(map(fabric.shown, lack.ports)) or (name, upper) for lack in those]
            links, usual = counted(those[0].has, "link"), those[0].usual
            where = ", ".join(dict.fromkeys(f"from {near} to {far}" for near, far in cables))
            yield FabricFinding(
                fault=Fault.CABLE_MISSING, status="fail", ends=tuple(dict.fromkeys(chain(*cables))), moves=(),
                plugs=tuple(chain(*(lack.ports for lack in those))),
                message=f"{name} has {links} to {upper}, {usual} at most other switches",
                action=f"look at the {'cables' if len(those) > 1 else 'cable'} {where}: reseat both ends, then replace"
                f" {'them' if len(those) > 1 else 'it'}",
            )  # fmt: skip


def _short(short: Short, fabric: Fabric) -> FabricFinding:
    """What all of them lack may be meant so, and is a warning."""
    names, way, side = sorted(map(fabric.switch, short.switches)), *(("up", "above") if short.up else ("down", "below"))
    others = [fabric.switch(guid) for guid in short.others]
    if short.ports:
        at = f"port{'s' if len(short.ports) > 1 else ''} {cpulist(runs_of(short.ports))}"
        why = f"{at} has no link at any of them, between ports that lead {way}"
    else:
        why = f"{short.usual} at {_listed(others)} with as many adapters"
    return FabricFinding(
        fault=Fault.UPLINKS_UNEVEN, status="warn", ends=(*names,), moves=(),
        message=f"{_listed(names)}: {counted(short.has, 'uplink' if short.up else 'link')}{'' if short.up else ' down'}"
        f" each; {why}",
        action=f"look whether a switch {side} these is off or not in this output; give the plan (--plan) if it is meant"
        " so",
    )  # fmt: skip
