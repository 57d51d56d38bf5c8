"""Nodes that fail more often than their sisters.

An incident is a result in which new faults are found: one broken part has many. Of the incidents of a node and of those
like it, the node should have the share that its days with results are; the test is the upper tail of that binomial
distribution. Over all nodes the method of Benjamini and Hochberg bounds the share of wrongly blamed ones. A node that
is blamed is no measure for others: it is left out and the rest judged again until nothing changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import exp, lgamma, log, log1p

from dgxcheck.facts.record import Record
from dgxcheck.fleet.history import History, NodeHistory
from dgxcheck.fleet.part_history import BUS_ID, DAY_S

RATE = 0.05
"""Of the nodes that are blamed at most so many are no worse than others, and so many fleets without a lemon get one."""
LEAST = 3
"""Incidents; fewer are no habit."""
_QUIET = 0.01
"""As unlikely as this its silence has to be, if it were as bad as before, for a node to count as mended."""
_ROUNDS = 10


class Lemon(Record):
    node: str
    incidents: Sequence[float]
    """When each began."""
    expected: float
    """Incidents in as many days at the rate of the others."""
    likes: int
    """Nodes with the same GPUs and profile that it is compared with."""
    days: int
    """With results."""
    chance: float
    mended: bool
    """Without an incident for so long that its rate is no longer what it was."""
    place: str
    """Where most of its incidents were; empty where they are here and there."""


def incidents(node: NodeHistory) -> list[float]:
    """When new faults were found."""
    return sorted({spell.first_s for spell in node.spells})


def lemons(history: History) -> tuple[Lemon, ...]:
    """The least likely first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, node in history.nodes.items():
        groups.setdefault((node.group.profile, node.group.gpus), []).append(name)
    times = {name: incidents(node) for name, node in history.nodes.items()}
    blamed: dict[str, Lemon] = {}
    for _ in range(_ROUNDS):
        found = [lemon for names in groups.values() for lemon in _of_group(names, times, history.nodes, blamed)]
        found.sort(key=lambda lemon: (lemon.chance, lemon.node))
        held = [rank for rank, lemon in enumerate(found, 1) if lemon.chance <= RATE * rank / len(found)]
        before, blamed = blamed, {lemon.node: lemon for lemon in found[: max(held, default=0)]}
        if before.keys() == blamed.keys():
            break
    return tuple(blamed.values())


def _of_group(
    names: Sequence[str], times: Mapping[str, Sequence[float]], nodes: Mapping[str, NodeHistory],
    blamed: Collection[str],
) -> list[Lemon]:  # fmt: skip
    sound = [name for name in names if name not in blamed]
    total, days = sum(len(times[name]) for name in sound), sum(nodes[name].days for name in sound)
    found = []
    for name in names:
        node, own = nodes[name], times[name]
        within = name not in blamed
        others, other_days = total - within * len(own), days - within * node.days
        chance = _tail(len(own), len(own) + others, node.days / (node.days + other_days)) if other_days else 1.0
        found.append(Lemon(
            node=name, incidents=own, expected=others / other_days * node.days if other_days else 0.0,
            likes=len(sound) - within, days=node.days, chance=chance if len(own) >= LEAST else 1.0,
            mended=_mended(own, node), place=_mostly(node),
        ))  # fmt: skip
    return found


def _tail(least: int, trials: int, share: float) -> float:
    """The chance of ``least`` or more of ``trials``."""
    if least <= 0:
        return 1.0
    ways = lgamma(trials + 1) - lgamma(least + 1) - lgamma(trials - least + 1)
    term = total = exp(ways + least * log(share) + (trials - least) * log1p(-share))
    for number in range(least, trials):
        term *= (trials - number) / (number + 1) * share / (1 - share)
        total += term
        if term < total * 1e-12 and number > trials * share:
            break
    return min(1.0, total)


def _mended(times: Sequence[float], node: NodeHistory) -> bool:
    if not times or any(spell.gone_s is None for spell in node.spells):
        return False
    bad, quiet = (times[-1] - node.first_s) / DAY_S + 1, (node.last_s - times[-1]) / DAY_S
    return exp(-len(times) / bad * quiet) < _QUIET


def _mostly(node: NodeHistory) -> str:
    """The bus id of more than half of all incidents."""
    found = {(spell.first_s, place) for spell in node.spells for place in BUS_ID.findall(spell.fault.key)}
    places = Counter(place for _, place in found)
    place, count = places.most_common(1)[0] if places else ("", 0)
    return place if 2 * count > len(incidents(node)) else ""
