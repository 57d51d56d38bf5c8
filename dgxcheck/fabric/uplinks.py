"""Links between switches: where each uplink belongs if all leaves of a group were joined with its spines alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dgxcheck.fabric.model import ANY, Fabric, Port
from dgxcheck.fabric.tiers import Tiers, groups
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered

_LEAST = 2
"""Switches of a group; one has nothing to be compared with."""
_NEARLY_ALL = 0.75
"""Share of the pairs of a lower and an upper switch that have as many links, where for one upper switch no half has."""


class Lack(Record, kw_only=False):
    """Links that other switches of the group have."""

    lower: str
    upper: str
    has: int
    usual: int
    ports: tuple[Port, ...] = ()
    """At the lower switch and at the upper one, where the others tell."""


class Uplinks(Record, kw_only=False):
    """What is not as at the other switches of a group."""

    homes: Mapping[Port, Port]
    """By the port of the lower switch: where its cable belongs, of those that are elsewhere."""
    lacks: tuple[Lack, ...]


def uneven(fabric: Fabric, tiers: Tiers) -> Uplinks:
    """Of every tier below the last."""
    homes: dict[Port, Port] = {}
    lacks: list[Lack] = []
    for tier in sorted({*tiers.of.values()}):
        lower = [guid for guid, found in tiers.of.items() if found == tier and tiers.uplinks[guid]]
        for group in groups(tiers, lower):
            if len(group) >= _LEAST:
                _judge(group, fabric, tiers, homes, lacks)
    return Uplinks(homes, tuple(lacks))


def _judge(
    group: Sequence[str], fabric: Fabric, tiers: Tiers, homes: dict[Port, Port], lacks: list[Lack]
) -> None:
    counts = {guid: Counter(far[0] for far in tiers.uplinks[guid].values()) for guid in group}
    roles = _roles(group, tiers)
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


def _roles(group: Sequence[str], tiers: Tiers) -> dict[str, list[int]]:
    """By upper switch, the ports from which most of the group lead there."""
    seen: dict[int, Counter[str]] = {}
    for guid in group:
        for port, far in tiers.uplinks[guid].items():
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
