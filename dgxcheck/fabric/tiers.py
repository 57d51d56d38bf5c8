"""Which switches are leaves, which spines, and which belong together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from dgxcheck.fabric.model import Fabric, Port
from dgxcheck.facts.record import Record

_SHARE, _FEW = 0.25, 2
"""A switch of whose links fewer lead to adapters, or no more than two, is no leaf if most beside it have more."""
_ALIKE = 0.5
"""Leaves that share more than half of their spines are of one group."""


class Tiers(Record):
    """Switches by their distance from the adapters, and the islands of a fabric that is in pieces."""

    of: Mapping[str, int]
    """0 for a leaf, 1 for a spine, 2 for a core switch."""
    island: Mapping[str, int]
    """By switch; switches of one number reach each other."""
    uplinks: Mapping[str, Mapping[int, Port]]
    """By switch and its port the port one tier up."""

    def leaves(self) -> list[str]:
        return [guid for guid, tier in self.of.items() if tier == 0]


def tiers_of(fabric: Fabric) -> Tiers:
    """A switch with adapters is a leaf, but for a spine that an adapter has been plugged into."""
    adapters: Counter[str] = Counter()
    far_ends: dict[str, dict[int, Port]] = {guid: {} for guid in fabric.switches}
    for cable in fabric.cables:
        for near, far in (cable.ends, (cable.peer, cable.end)):
            if near[0] in far_ends:
                if far[0] in far_ends:
                    far_ends[near[0]][near[1]] = far
                else:
                    adapters[near[0]] += 1
    share = {guid: adapters[guid] / max(1, adapters[guid] + len(ports)) for guid, ports in far_ends.items()}
    tier = {
        guid: 0 for guid in adapters
        if (share[guid] >= _SHARE and adapters[guid] > _FEW)
        or 2 * sum(adapters[far[0]] > adapters[guid] for far in far_ends[guid].values()) <= len(far_ends[guid])
    }  # fmt: skip
    front = [*tier]
    while front:
        above = [far[0] for guid in front for far in far_ends[guid].values() if far[0] not in tier]
        for guid in above:
            tier[guid] = tier[front[0]] + 1
        front = [*dict.fromkeys(above)]
    uplinks = {
        guid: {port: far for port, far in sorted(ports.items()) if tier.get(far[0], -1) == tier.get(guid, -2) + 1}
        for guid, ports in far_ends.items()
    }
    return Tiers(of=tier, island=_islands(far_ends), uplinks=uplinks)


def _islands(far_ends: Mapping[str, Mapping[int, Port]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for number, start in enumerate(far_ends):
        front = [start] if start not in found else []
        while front:
            guid = front.pop()
            if guid not in found:
                found[guid] = number
                front += [far[0] for far in far_ends[guid].values()]
    return found


def groups(links: Mapping[str, Mapping[int, Port]], switches: Iterable[str]) -> list[list[str]]:
    """Those whose links lead to much the same switches."""
    above = {guid: frozenset(far[0] for far in links[guid].values()) for guid in switches}
    sets = Counter(above.values())
    kept: list[frozenset[str]] = []
    members: dict[frozenset[str], list[str]] = {}
    for each, _ in sets.most_common():
        home = next((other for other in kept if len(each & other) > _ALIKE * len(each | other)), None)
        if home is None:
            kept.append(each)
            home = each
        members.setdefault(home, []).extend(guid for guid, found in above.items() if found == each)
    return list(members.values())
