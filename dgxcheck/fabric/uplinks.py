"""Links between switches: where each uplink belongs if all leaves of a group were joined with its spines alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, permutations

from dgxcheck.checks.engine.finding import counted, first_of
from dgxcheck.fabric.finding import FEW, FabricFinding, listed, relinking
from dgxcheck.fabric.model import ANY, Fabric, Port, unnumbered
from dgxcheck.fabric.tiers import Tiers, groups
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import cpulist, runs_of
from dgxcheck.facts.typical import gathered, median

_LEAST = 2
"""Switches of a group; one has nothing to be compared with."""
_NEARLY_ALL = 0.75
"""Share of the pairs of a lower and an upper switch that have as many links, where for one upper switch no half has."""

_ENOUGH, _IDLE = 3, 0.25
"""Switches whose ports without a link say something, and how many of those between links that way at most."""
_APART = 4
"""Times as many switches as those that have few of their uplinks."""
Kind = tuple[str, str]
"""Names of a system and its adapter, without their numbers."""


class Lack(Record, kw_only=False):
    """Links that other switches of the group have."""

    lower: str
    upper: str
    has: int
    usual: int
    ports: tuple[Port, ...] = ()
    """At the lower switch and at the upper one, where the others tell."""


class Short(Record, kw_only=False):
    """Switches all of which lack the same links up, or down, so that none has what another lacks."""

    switches: tuple[str, ...]
    has: int
    """Links that way of each."""
    usual: int
    ports: tuple[int, ...] = ()
    """Without a link at all of them, between ports that lead that way."""
    others: tuple[str, ...] = ()
    """Leaves with as many of the same adapters, and more uplinks."""
    up: bool = True


class Uplinks(Record, kw_only=False):
    """What is not as at the other switches of a group."""

    homes: Mapping[Port, Port]
    """By the port of the lower switch: where its cable belongs, of those that are elsewhere."""
    lacks: tuple[Lack, ...]
    short: tuple[Short, ...] = ()


def uneven(fabric: Fabric, tiers: Tiers) -> Uplinks:
    """Of every tier below the last."""
    homes: dict[Port, Port] = {}
    lacks: list[Lack] = []
    below = _kinds_below(fabric)
    by_tier = gathered((tier, guid) for guid, tier in sorted(tiers.of.items()) if tiers.uplinks[guid])
    found = [(tier, group) for tier, guids in sorted(by_tier.items())
             for group in _joined(groups(tiers.uplinks, guids), tiers, below)]  # fmt: skip
    for _, group in found:
        if len(group) >= _LEAST:
            _judge(group, fabric, tiers, homes, lacks)
    judged = {lack.lower for lack in lacks} | {lower for lower, _ in homes}
    of_two = _of_two([group for tier, group in found if not tier and judged.isdisjoint(group)], tiers, below)
    return Uplinks(homes, tuple(lacks), (*_short(found, fabric, tiers, below), *of_two, *_below(fabric, tiers)))


def _of_two(
    groups_of_leaves: Sequence[Sequence[str]], tiers: Tiers, below: Mapping[str, Sequence[Kind]]
) -> Iterator[Short]:
    """Of two leaves neither is most of them: the one with fewer uplinks for as many adapters has too few."""
    for group in groups_of_leaves:
        if len(group) == _LEAST:
            few, many = sorted(group, key=lambda guid: len(tiers.uplinks[guid]))
            has, usual = len(tiers.uplinks[few]), len(tiers.uplinks[many])
            if has < usual and len(below[few]) == len(below[many]):
                yield Short((few,), has, usual, (), (many,))


def _kinds_below(fabric: Fabric) -> dict[str, list[Kind]]:
    """Of the adapters of each switch."""
    return gathered(
        (guid, (unnumbered(fabric.adapters[far].host), unnumbered(fabric.adapters[far].name)))
        for cable in fabric.cables for guid, far in permutations((cable.end[0], cable.peer[0]))
        if far in fabric.adapters
    )  # fmt: skip


def _joined(found: list[list[str]], tiers: Tiers, below: Mapping[str, Sequence[Kind]]) -> list[list[str]]:
    """A switch that leads to a few of those that many with the same kinds below lead to is one of these."""
    uppers = [{far[0] for guid in group for far in tiers.uplinks[guid].values()} for group in found]
    kinds = [{*chain(*(below.get(guid, ()) for guid in group))} for group in found]
    joined = dict(enumerate(map(list, found)))
    for number in sorted(joined, key=lambda at: len(found[at])):  # what joins one goes along where that joins a third
        home = next((at for at, other in enumerate(found)
                     if len(other) >= _APART * len(found[number]) and kinds[number]
                     and uppers[number] <= uppers[at] and kinds[number] == kinds[at]), None)  # fmt: skip
        if home is not None:
            joined[home] += joined.pop(number)
    return [*joined.values()]


def _short(
    found: Sequence[tuple[int, Sequence[str]]], fabric: Fabric, tiers: Tiers, below: Mapping[str, Sequence[Kind]]
) -> Iterator[Short]:  # fmt: skip
    """Of a switch that is off all below it lack the port; where that is none between others, a plane beside the leaves
    has one."""
    alike: dict[tuple[frozenset[Kind], int], list[tuple[int, Sequence[str]]]] = {}
    for tier, group in found:
        usual, idle = _idle(group, tiers.uplinks, fabric)
        if idle:
            yield Short(tuple(group), usual, usual + len(idle), idle)
        if idle or tier:
            continue
        kinds = frozenset(chain(*(below[guid] for guid in group)))
        carried = median(len(below[guid]) for guid in group)
        alike.setdefault((kinds, round(carried)), []).append((usual, group))
    for rows in alike.values():
        most, fullest = max(rows, key=lambda row: row[0])
        for count, leaves in rows:
            if 0 < count < most and len(leaves) == len(fullest):
                yield Short(tuple(leaves), count, most, (), tuple(fullest))


def _below(fabric: Fabric, tiers: Tiers) -> Iterator[Short]:
    """Of a switch that is off with all that only it leads to, the spines' ports are left; of one that is there without
    uplinks too."""
    if not all(tiers.uplinks[guid] for guid in tiers.leaves()):
        return
    down: dict[str, dict[int, Port]] = {}
    for lower, links in tiers.uplinks.items():
        for port, (upper, far) in links.items():
            down.setdefault(upper, {})[far] = lower, port
    for group in groups(down, down):
        usual, idle = _idle(group, down, fabric)
        if idle:
            yield Short(tuple(group), usual, usual + len(idle), idle, up=False)


def _idle(group: Sequence[str], links: Mapping[str, Mapping[int, Port]], fabric: Fabric) -> tuple[int, tuple[int, ...]]:
    """Ports from which most lead to one switch, and those between them without a link at all."""
    usual = sorted({*chain(*_roles(group, links).values())})
    few = bool(usual) and usual[-1] - usual[0] < len(usual) * (1 + _IDLE)  # of ports that are used and idle ones
    between = range(usual[0], usual[-1]) if few and len(group) >= _ENOUGH else ()
    idle = tuple(port for port in between if not any((guid, port) in fabric.at for guid in group))
    return len(usual), idle if len(idle) <= _IDLE * len(usual) else ()


def _judge(group: Sequence[str], fabric: Fabric, tiers: Tiers, homes: dict[Port, Port], lacks: list[Lack]) -> None:
    counts = {guid: Counter(far[0] for far in tiers.uplinks[guid].values()) for guid in group}
    roles = _roles(group, tiers.uplinks)
    uppers = dict.fromkeys(upper for count in counts.values() for upper in count)
    common, pairs = Counter(count[upper] for count in counts.values() for upper in uppers).most_common(1)[0]
    if pairs < _NEARLY_ALL * len(group) * len(uppers):
        common = 0
    for upper in uppers:
        usual, agreeing = Counter(count[upper] for count in counts.values()).most_common(1)[0]
        usual = usual if 2 * agreeing > len(group) else common
        for guid in group:
            lack = most = usual - counts[guid][upper]
            for port in roles.get(upper, ()) if lack > 0 else ():
                far = fabric.far((guid, port))
                if far is not None and far[0] == upper:
                    continue
                home = (upper, _usual_port(guid, upper, tiers, most - lack))
                if far is None:
                    lacks.append(Lack(guid, upper, counts[guid][upper], usual, ((guid, port), home)))
                else:
                    homes[guid, port] = home
                lack -= 1
                if not lack:
                    break
            if lack > 0:
                lacks.append(Lack(guid, upper, counts[guid][upper], usual))


def _roles(group: Sequence[str], links: Mapping[str, Mapping[int, Port]]) -> dict[str, list[int]]:
    """By the far switch, the ports from which most of the group lead there."""
    seen: dict[int, Counter[str]] = {}
    for guid in group:
        for port, far in links[guid].items():
            seen.setdefault(port, Counter())[far[0]] += 1
    usual = {port: uppers.most_common(1)[0] for port, uppers in seen.items()}
    return gathered((upper, port) for port, (upper, count) in usual.items() if 2 * count > len(group))


def _usual_port(guid: str, upper: str, tiers: Tiers, number: int) -> int:
    """At which this switch is joined with most of the others above it; of several that it has not here, counted from
    0."""
    by_upper = gathered((far[0], far[1]) for far in tiers.uplinks[guid].values())
    usual, count = Counter(map(frozenset, by_upper.values())).most_common(1)[0]
    free = sorted(usual.difference(by_upper.get(upper, ())))
    return free[number] if number < len(free) and 2 * count > len(by_upper) else ANY


def lacking(lacks: Sequence[Lack], fabric: Fabric, tiers: Tiers) -> Iterator[FabricFinding]:
    by_lower = gathered((lack.lower, lack) for lack in lacks)
    for lower, found in by_lower.items():
        name = fabric.switch(lower)
        if len(found) > FEW:
            count = len(tiers.uplinks[lower])
            yield FabricFinding(
                fault=Fault.UPLINKS_UNEVEN, status="fail", ends=(name,),
                message=f"{name} has {counted(count, 'uplink')}, {count + len(found)} would be as at the others; it"
                f" lacks those to {first_of([*dict.fromkeys(fabric.switch(lack.upper) for lack in found)])}",
                action=f"look at these cables of {name}, or at the power of the switches above",
            )  # fmt: skip
            continue
        by_upper = {lack.upper: [other for other in found if other.upper == lack.upper] for lack in found}
        for guid, those in by_upper.items():
            upper = fabric.switch(guid)
            cables = {lack: tuple(map(fabric.shown, lack.ports)) or (name, upper) for lack in those}
            links, usual = counted(those[0].has, "link"), those[0].usual
            left = [lack for lack in those if fabric.disabled.isdisjoint(lack.ports)]
            shut = len(left) < len(those)
            where = ", ".join(dict.fromkeys(f"from {near} to {far}" for near, far in (cables[lack] for lack in left)))
            cable = f"{'each' if len(left) > 1 else 'the'} cable {where}"
            step = relinking(cable, [*chain(*(lack.ports for lack in those))], fabric)
            yield FabricFinding(
                fault=Fault.CABLE_MISSING, status="fail", ends=tuple(dict.fromkeys(chain(*cables.values()))),
                plugs=tuple(chain(*(lack.ports for lack in left))),
                message=f"{name} has {links} to {upper}, {usual} at most other switches"
                f"{'; a port is disabled' if shut else ''}",
                action=f"{step}; then look at {cable}" if shut and left else step,
            )  # fmt: skip


def idle_ports(short: Short, fabric: Fabric) -> FabricFinding:
    """What all of them lack may be meant so, and is a warning."""
    names, way, side = sorted(map(fabric.switch, short.switches)), *(("up", "above") if short.up else ("down", "below"))
    others = [fabric.switch(guid) for guid in short.others]
    several = len(names) > 1
    gone = f"a switch {side} these" if several or short.ports else f"one of its cables, or a switch {side} it,"
    if short.ports:
        at = f"port{'s' if len(short.ports) > 1 else ''} {cpulist(runs_of(short.ports))}"
        why = f"{at} has no link at any of them, between ports that lead {way}"
    else:
        why = f"{short.usual} at {listed(others)} with as many adapters"
    return FabricFinding(
        fault=Fault.UPLINKS_UNEVEN, status="warn", ends=(*names,),
        message=f"{listed(names)}: {counted(short.has, 'uplink' if short.up else 'link')}{'' if short.up else ' down'}"
        f"{' each' if several else ''}; {why}",
        action=f"look whether {gone} is off or not in this output; give the plan (--plan) if it is meant so",
    )  # fmt: skip
