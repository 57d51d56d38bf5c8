"""What is wrong with the cabling of a fabric, each with both ends and what to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from dgxcheck.checks.engine.wording import counted, first_of
from dgxcheck.fabric.finding import FabricFinding, Verdict
from dgxcheck.fabric.intent import ANY, LEAST_SYSTEMS, Intent, Places, inferred, places_of
from dgxcheck.fabric.model import Cable, Fabric, Port
from dgxcheck.fabric.moves import Move, exchanges
from dgxcheck.fabric.plan import Planned, compared
from dgxcheck.fabric.tiers import Tiers, tiers_of
from dgxcheck.fabric.uplinks import Lack, uneven
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.infiniband import OF_THE_LINK
from dgxcheck.facts.record import Record
from dgxcheck.readers.fabric.plan import PlannedCable
from dgxcheck.settings import Settings

_SHARE = 0.5
"""More than this share of the links of one kind run at the usual rate."""
_FEW = 2
"""More links than these that one switch lacks are one finding."""
_VERDICTS: tuple[Verdict, ...] = ("fail", "unknown", "warn", "pass")


class Judged(Record):
    """A fabric, what it was meant to be, and what is not so."""

    fabric: Fabric
    tiers: Tiers
    places: Places
    intent: Intent
    findings: tuple[FabricFinding, ...]
    unread: tuple[str, ...]
    """Files that hold nothing of a fabric."""

    @property
    def verdict(self) -> Verdict:
        """The worst; unknown where nothing was to judge, or something could not be read."""
        words = {finding.status for finding in self.findings}
        words |= {"unknown"} if self.unread or not self.fabric.cables else set()
        return next((word for word in _VERDICTS if word in words), "pass")


def judge(fabric: Fabric, plan: Sequence[PlannedCable] | None = None, unread: Sequence[str] = ()) -> Judged:
    """By the plan, where there is one; else by what most systems do."""
    tiers = tiers_of(fabric)
    places = places_of(fabric)
    intent = inferred(places)
    found = [*_guids(fabric)]
    if plan is None:
        found += _cabling(fabric, tiers, places, intent)
    else:
        planned = compared(fabric, tiers, plan)
        intent = Intent(planned=True, schemes=intent.schemes, homes=planned.of_adapters)
        found += _as_planned(fabric, tiers, places, planned)
    found += [*_islands(fabric, tiers, intent, places), *_rates(fabric, tiers), *_errors(fabric)]
    found.sort(key=lambda finding: _VERDICTS.index(finding.status))
    return Judged(fabric=fabric, tiers=tiers, places=places, intent=intent, findings=tuple(found),
                  unread=tuple(unread))  # fmt: skip


def _guids(fabric: Fabric) -> Iterator[FabricFinding]:
    """One that two devices have: both answer as the same end of two cables, or under two descriptions."""
    guids: dict[str, list[Port]] = {}
    for port, peers in fabric.claimed.items():
        guids.setdefault(port[0], []).extend(peers)
    doubled = {guid for guid in guids if not all(peer[0] in guids and len(guids[peer[0]]) > 1 for peer in guids[guid])}
    for guid in doubled | {guid for guid, names in fabric.described.items() if _several(names)}:
        names = fabric.described.get(guid, ())
        at = [fabric.shown(port) for port in guids.get(guid, ())]
        what = fabric.adapters[guid].shown if guid in fabric.adapters else fabric.switch(guid)
        seen = f"at {first_of(at)}" if at else f"as {first_of(names)}"
        yield FabricFinding(
            fault=Fault.GUID_DUPLICATE, status="fail", ends=(what, *at), moves=(),
            message=f"{what}: GUID 0x{guid} is seen {seen}: two devices have it, or these outputs are of"
            " different times",
            action="read all outputs again at one time; if it stays, ask the vendor for a GUID of its own",
        )  # fmt: skip


def _several(names: Sequence[str]) -> bool:
    """Descriptions of one device that differ in more than a host name that is not set yet."""
    return len({name.split()[0] for name in names if "localhost" not in name and "Mellanox" not in name}) > 1


def _islands(fabric: Fabric, tiers: Tiers, intent: Intent, places: Places) -> Iterator[FabricFinding]:
    """Adapters of one name that do not reach each other, each at its own place; rails and planes are no fault.

    Hosts alone tell no link between switches (lldpctl).
    """
    if not any(tiers.uplinks.values()):
        return
    systems: dict[tuple[str, str], dict[int, list[str]]] = {}
    for host, adapters in places.items():
        for name, place in adapters.items():
            switch = intent.homes.get((host, name), place)[0]
            systems.setdefault(_kind(host, name), {}).setdefault(tiers.island[switch], []).append(host)
    reported: set[frozenset[str]] = set()
    for (_, name), islands in systems.items():
        largest = max(islands.values(), key=len)
        for island, hosts in islands.items():
            switches = sorted(fabric.switch(guid) for guid, number in tiers.island.items() if number == island)
            if hosts is largest or frozenset(switches) in reported:
                continue
            reported.add(frozenset(switches))
            yield FabricFinding(
                fault=Fault.SUBNET_SPLIT, status="fail", ends=(*switches,), moves=(),
                message=f"{first_of(switches)} with {name} of {first_of(sorted(hosts))}: no link to the switches of"
                f" {name} of the other {counted(len(largest), 'system')}",
                action=f"look at the uplinks of {first_of(switches)}: cables, ports and power of the switches above",
            )  # fmt: skip


def _cabling(fabric: Fabric, tiers: Tiers, places: Places, intent: Intent) -> Iterator[FabricFinding]:
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
    yield from _unplaced(fabric, intent, places)
    homes |= uplinks.homes
    current = {end: place for end in homes if (place := fabric.far(end)) is not None}
    for moves in exchanges(current, {end: home for end, home in homes.items() if end in current}):
        if len(moves) > 1 or moves[0].source[0] != moves[0].target[0]:
            yield _misplaced(moves, fabric, tiers, places)
    yield from _lacking(uplinks.lacks, fabric, tiers)


def _hidden(fabric: Fabric) -> set[Port]:
    """Where adapters are whose description names no host, also as ``ANY`` of the switch: one of these may be the one
    that is missed."""
    ends = [(cable.end, cable.peer) for cable in fabric.cables]
    ports = {far for pair in ends for near, far in (pair, pair[::-1])
             if near[0] in fabric.adapters and not fabric.adapters[near[0]].name}  # fmt: skip
    return ports | {(guid, ANY) for guid, _ in ports}


def _unplaced(fabric: Fabric, intent: Intent, places: Places) -> Iterator[FabricFinding]:
    """Adapters that most systems have and these have not, nor those beside them: their switch is gone.

    Not where as many have no name.
    """
    for scheme in intent.schemes:
        for name in scheme.adapters if len(scheme.adapters) > 1 else ():
            hosts = [host for host in scheme.systems if name not in places[host] and (host, name) not in intent.homes]
            others = len(scheme.systems) - len(hosts)
            if len(hosts) > len(fabric.nameless) and others >= LEAST_SYSTEMS:
                yield FabricFinding(
                    fault=Fault.CABLE_MISSING, status="fail", ends=tuple(f"{host} {name}" for host in hosts), moves=(),
                    message=f"{name} of {first_of(hosts)} is not in the fabric, as it is of"
                    f" {counted(others, 'other system')}",
                    action="look whether the switch of these adapters is powered on, then at their cables",
                )  # fmt: skip


def _as_planned(fabric: Fabric, tiers: Tiers, places: Places, planned: Planned) -> Iterator[FabricFinding]:
    for name, count in planned.absent:
        yield FabricFinding(
            fault=Fault.CABLE_MISSING, status="fail", ends=(name,), moves=(),
            message=f"{name} is not in the fabric; {counted(count, 'cable')} planned",
            action=f"look whether {name} is powered on and, if it is, has this name in the plan",
        )  # fmt: skip
    current = {end: place for end in planned.homes if (place := fabric.far(end)) is not None}
    moved: set[Port] = set()
    for moves in exchanges(current, {end: home for end, home in planned.homes.items() if end in current}):
        moved |= {move.of for move in moves} | {move.source for move in moves}
        yield _misplaced(moves, fabric, tiers, places)
    for end, home in planned.homes.items():
        if end not in current and home not in moved and end not in moved:
            yield _missing(fabric.shown(end), home, fabric, True)
    for name, home in planned.unseen.items():
        yield _missing(name, home, fabric, False)
    for cable, rate in planned.slower:
        yield _slow(fabric, cable, f"{rate:g} Gbit/s planned")


def _missing(what: str, home: Port, fabric: Fabric, seen: bool) -> FabricFinding:
    place = fabric.shown(home) if home[1] != ANY else fabric.switch(home[0])
    state = "has no link" if seen else "is not in the fabric"
    return FabricFinding(
        fault=Fault.CABLE_MISSING, status="fail", ends=(what, place), moves=(),
        message=f"{what} {state}; it belongs to {place}{_occupied(home, fabric)}",
        action=f"look at the cable from {what} to {place}: reseat both ends, then replace it",
    )  # fmt: skip


def _occupied(home: Port, fabric: Fabric) -> str:
    far = fabric.far(home)
    return f", where {fabric.shown(far)} is" if far is not None else ""


def _misplaced(moves: tuple[Move, ...], fabric: Fabric, tiers: Tiers, places: Places) -> FabricFinding:
    names = [fabric.shown(move.of) for move in moves]
    near = {move.of[0] for move in moves}
    at_hand = len(near) == 1 and near <= fabric.switches.keys()
    ports = [fabric.shown(move.of if at_hand else move.source) for move in moves]
    if len(moves) == 1:
        move = moves[0]
        home = fabric.shown(move.target) if move.target[1] != ANY else fabric.switch(move.target[0])
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
    by_lower: dict[str, list[Lack]] = {}
    for lack in lacks:
        by_lower.setdefault(lack.lower, []).append(lack)
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
            cables = [tuple(fabric.shown(port) if port[1] != ANY else upper for port in lack.ports) or (name, upper)
                      for lack in those]  # fmt: skip
            links, usual = counted(those[0].has, "link"), those[0].usual
            where = ", ".join(dict.fromkeys(f"from {near} to {far}" for near, far in cables))
            yield FabricFinding(
                fault=Fault.CABLE_MISSING, status="fail", ends=tuple(dict.fromkeys(chain(*cables))), moves=(),
                message=f"{name} has {links} to {upper}, {usual} at most other switches",
                action=f"look at the {'cables' if len(those) > 1 else 'cable'} {where}: reseat both ends, then replace"
                f" {'them' if len(those) > 1 else 'it'}",
            )  # fmt: skip


def _rates(fabric: Fabric, tiers: Tiers) -> Iterator[FabricFinding]:
    """Links below the rate of most of their kind: one adapter of alike systems, the links of both switches."""
    kinds: dict[Cable, list[tuple[str, ...]]] = {}
    for cable in fabric.cables:
        if cable.gbit:
            adapter = fabric.adapters.get(cable.end[0]) or fabric.adapters.get(cable.peer[0])
            kinds[cable] = (
                [("adapter", *_kind(adapter.host, adapter.name))] if adapter is not None
                else [("switch", cable.end[0]), ("switch", cable.peer[0])]
            )  # fmt: skip
    seen: dict[tuple[str, ...], Counter[tuple[int, str]]] = {}
    for cable, groups in kinds.items():
        for group in groups:
            seen.setdefault(group, Counter())[cable.lanes, cable.speed] += 1
    usual = {group: rates.most_common(1)[0] for group, rates in seen.items()}
    for cable, groups in kinds.items():
        common = [rate for group in groups for rate, count in [usual[group]] if count > _SHARE * seen[group].total()]
        if common and all(_gbit(rate) > cable.gbit for rate in common):
            lanes, speed = common[0]
            yield _slow(fabric, cable, f"{lanes}x {speed} at most others")


def _kind(host: str, name: str) -> tuple[str, str]:
    return "".join(character for character in host if not character.isdecimal()), name


def _gbit(rate: tuple[int, str]) -> float:
    return Cable(("", 0), ("", 0), *rate).gbit


def _slow(fabric: Fabric, cable: Cable, usual: str) -> FabricFinding:
    ends = fabric.shown(cable.end), fabric.shown(cable.peer)
    return FabricFinding(
        fault=Fault.PORT_SLOW, status="warn", ends=ends, moves=(),
        message=f"{ends[0]} - {ends[1]}: {cable.rate}, {usual}",
        action="reseat and clean both ends of this cable, then replace it; ibportstate tells what each end enables",
    )  # fmt: skip


def _errors(fabric: Fabric) -> Iterator[FabricFinding]:
    """Counters of the link itself: those of congestion are no fault of a cable. A cable is named once."""
    limit = Settings().limit("network.errors")
    reported: set[frozenset[Port]] = set()
    for port, counts in fabric.errors.items():
        bad = {name: count for name, count in counts.items() if name in OF_THE_LINK and count > limit}
        far = fabric.far(port)
        if not bad or far is None or frozenset((port, far)) in reported:
            continue
        reported.add(frozenset((port, far)))
        ends = fabric.shown(port), fabric.shown(far)
        there = fabric.errors.get(far, {})
        beyond = {name: count for name, count in there.items() if name in OF_THE_LINK and count > limit}
        text = ", ".join(f"{name} {count}" for name, count in bad.items())
        more = f"; at the other end {', '.join(f'{name} {count}' for name, count in beyond.items())}" if beyond else ""
        yield FabricFinding(
            fault=Fault.PORT_ERRORS, status="warn", ends=ends, moves=(),
            message=f"{ends[0]} - {ends[1]}: {text}{more} since the counters were cleared",
            action="clear the counters and read them again under load; if they grow, reseat, then replace this cable",
        )  # fmt: skip
