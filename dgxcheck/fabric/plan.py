"""A plan's names, found again in the fabric: where each plug belongs, and what is not there at all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import permutations

from dgxcheck.fabric.model import ANY, Cable, Fabric, Plug, Port
from dgxcheck.fabric.tiers import Tiers
from dgxcheck.facts.infiniband import CAGE_PORTS, LANE_GBIT
from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered
from dgxcheck.readers.fabric.lldp import number_of
from dgxcheck.readers.fabric.plan import PlannedCable, PlannedEnd
from dgxcheck.readers.fabric.rows import digits

_GUID = re.compile(r"(?:0x)?[0-9a-f]{16}", flags=re.ASCII)
_COUNTED = re.compile(r"HCA-(\d{1,3})", flags=re.ASCII)

_FEW, _SEVERAL, _NEARLY_ALL = 2, 8, 0.9
"""Cables; by the place of one alone nothing is recognised, and more at another port of which as large a share of all is
as far from the planned one are no exchanged plugs."""
_SCALES = ((1, 1), (2, 1), (1, 2))
"""Ports to a cage of the plan, and of the fabric, where one of them counts cages."""
_CAGED = 64
"""Ports of a switch with two to a cage; of one with more a number above 100 is no cage."""


class Planned(Record):
    """What a plan says of the fabric that was discovered."""

    homes: Mapping[Port, Port]
    """By one end of a cable that both know, the port that the other end belongs to."""
    of_adapters: Mapping[Plug, Port]
    absent: Mapping[str, int]
    """Switches and systems that are not in the fabric, and how many cables they should have."""
    behind: Mapping[str, Sequence[str]]
    """Systems that cannot be, by one of the absent switches that all their cables end at: not among the absent."""
    unseen: Mapping[Plug, Port]
    """Adapters that are not, of systems that are."""
    slower: Mapping[Cable, float]
    """Cables below the Gbit/s that are planned."""
    renamed: Mapping[str, str]
    """What has the cables of a switch or system, by the name that this has in the plan."""


def compared(fabric: Fabric, tiers: Tiers, plan: Sequence[PlannedCable]) -> Planned:
    """Raises BadInput for a plan that is of another fabric."""
    names = _names(fabric)
    renamed = _renamed(fabric, plan, names)
    for name, now in renamed.items():
        if now.lower() in names.switches:
            names.switches[name.lower()] = names.switches[now.lower()]
        names.hosts[_short(name)] = names.hosts.get(_short(now), {})
    homes: dict[Port, Port] = {}
    of_adapters: dict[Plug, Port] = {}
    unseen: dict[Plug, Port] = {}
    slower: dict[Cable, float] = {}
    absent: Counter[str] = Counter()
    lost: dict[str, list[str]] = {}  # by system the switch of each cable of which neither end is there
    for cable in plan:
        found = [names.found(end) for end in cable.ends]
        if gone := [end for end, at in zip(cable.ends, found, strict=True) if at is None]:
            absent.update(end.node for end in gone)
            for end, other in permutations(gone, 2):
                if end.adapter and not other.adapter:
                    lost.setdefault(end.node, []).append(other.node)
            continue
        there = [at for at in found if at is not None]
        if lacks := [(end, other) for end, at, other in zip(cable.ends, there, there[::-1], strict=True)
                     if at[1] == ANY and end.adapter]:  # fmt: skip
            unseen |= {(end.node, end.adapter): other for end, other in lacks}
            continue
        near, far = sorted(there, key=lambda at: tiers.of.get(at[0], -1))
        if (own := fabric.adapters.get(near[0])) is not None:
            near = near if near in fabric.at else next((port for port in fabric.at if port[0] == near[0]), near)
            of_adapters[own.host, own.name] = far
        homes[near] = far
        here, gbit = fabric.at.get(near), cable.lanes * cable.lane_gbit
        if here is not None and 0 < here.gbit < gbit * 0.9:
            slower[here] = gbit
    if not homes:
        raise BadInput("the plan names no switch and system of this fabric")
    _check(fabric, homes)
    hidden = {system: min(switches) for system, switches in lost.items() if len(switches) == absent[system]}
    behind = gathered((switch, system) for system, switch in sorted(hidden.items()))
    return Planned(
        homes=homes, of_adapters=of_adapters, unseen=unseen, slower=slower, behind=behind, renamed=renamed,
        absent={name: count for name, count in sorted(absent.items()) if name not in hidden},
    )  # fmt: skip


def _check(fabric: Fabric, homes: Mapping[Port, Port]) -> None:
    """Where nearly all are as far from the planned port, the plan counts ports otherwise."""
    places = [(fabric.far(end), home) for end, home in homes.items() if end[0] in fabric.adapters]
    wrong = [(at[1], home[1]) for at, home in places if at is not None and at[0] == home[0] and at[1] != home[1]]
    apart = Counter((of_plan, own, planned * of_plan - at * own) for at, planned in wrong for of_plan, own in _SCALES)
    if len(wrong) > _SEVERAL and max(apart.values()) > _NEARLY_ALL * len(places):
        raise BadInput(f"the plan counts ports otherwise: {len(wrong)} of {len(places)} adapters are at another port"
                       " of the planned switch; write the numbers that ibnetdiscover prints")  # fmt: skip


def _renamed(fabric: Fabric, plan: Sequence[PlannedCable], names: _Names) -> dict[str, str]:
    """Of most cables of a node that is not there one and the same is at the other end, which the plan does not name."""
    known = {end.node.lower() for cable in plan for end in cable.ends}
    known |= {*map(_short, known)}
    cables = Counter(end.node for cable in plan for end in cable.ends)
    votes: dict[str, Counter[str]] = {}
    for near, far in (pair for cable in plan for pair in permutations(cable.ends)):
        at = names.found(far) if names.found(near) is None else None
        peer = None if at is None else fabric.far(at)
        if peer is not None and (peer[0] in fabric.adapters) is bool(near.adapter):
            name = fabric.adapters[peer[0]].host if near.adapter else fabric.switch(peer[0])
            votes.setdefault(near.node, Counter())[name] += 1
    found = {node: each.most_common(1)[0] for node, each in votes.items()}
    return {node: name for node, (name, count) in found.items()
            if 2 * count > max(_FEW, cables[node]) and name and _short(name) not in known}


def as_it_was(fabric: Fabric) -> tuple[PlannedCable, ...]:
    """The cables of an earlier output, with their rates; without those of adapters whose description names no host."""
    found = [(_end(cable.end, fabric), _end(cable.peer, fabric), cable) for cable in fabric.cables]
    return tuple(PlannedCable(end, peer, cable.lanes, LANE_GBIT.get(cable.speed, 0.0))
                 for end, peer, cable in found if end is not None and peer is not None)  # fmt: skip


def _end(port: Port, fabric: Fabric) -> PlannedEnd | None:
    adapter = fabric.adapters.get(port[0])
    if adapter is None:
        return PlannedEnd(fabric.switch(port[0]), "", port[1])
    return PlannedEnd(adapter.host, adapter.name, 0) if adapter.name else None


class _Names(Record, kw_only=False):
    """What a plan's names are in the fabric."""

    switches: dict[str, str]
    """GUIDs by every name that people use."""
    guids: Collection[str]
    hosts: dict[str, dict[str, str]]
    """GUIDs by adapter, by host."""
    labels: Mapping[Port, int]
    """Numbers of ports, by the number that is read out of their label."""
    cages: Mapping[str, int]
    """Ports of a cage, of switches that have several."""

    def found(self, end: PlannedEnd) -> Port | None:
        """The port; for an adapter that is not in the fabric while its system is, ``ANY`` of its name."""
        node = end.node.lower()
        if end.adapter:
            own = self.hosts.get(_short(node))
            guid = "" if own is None else own.get(_adapter(end.adapter), "")
            return None if own is None else (guid, 1) if guid else (f"{end.node} {end.adapter}", ANY)
        guid = self.switches.get(node) or (digits(node) if _GUID.fullmatch(node) else "")
        return (guid, self._number(guid, end.port)) if guid in self.guids else None

    def _number(self, guid: str, printed: int) -> int:
        """``1/10/2``, read as 11002, and ``10/2`` are port 20 where a cage has two: MLNX-OS, QM9700."""
        cage, port = divmod(printed % 10000, 100)
        size = self.cages.get(guid, 0)
        return self.labels.get((guid, printed)) or ((cage - 1) * size + port if cage and 0 < port <= size else printed)


def _names(fabric: Fabric) -> _Names:
    switches = {switch.description.lower(): guid for guid, switch in fabric.switches.items()}
    switches |= {switch.name.lower(): guid for guid, switch in fabric.switches.items()}
    hosts: dict[str, dict[str, str]] = {}
    for adapter in fabric.adapters.values():
        if adapter.name:
            hosts.setdefault(_short(adapter.host), {})[_adapter(adapter.name)] = adapter.guid
    labels = {(guid, number_of(label)): number for (guid, number), label in fabric.labels.items()}
    large = {guid for guid, number in fabric.at if number > _CAGED}
    cages = {guid: CAGE_PORTS[cable.speed] for (guid, _), cable in fabric.at.items()
             if cable.speed in CAGE_PORTS and guid not in large}  # fmt: skip
    return _Names(switches, fabric.switches.keys(), hosts, labels, cages)


def _short(host: str) -> str:
    return host.partition(".")[0].lower()


def _adapter(name: str) -> str:
    """``HCA-1`` is what the driver's scripts call mlx5_0."""
    counted = _COUNTED.fullmatch(name)
    return f"mlx5_{int(counted[1]) - 1}" if counted is not None and int(counted[1]) else name.lower()
