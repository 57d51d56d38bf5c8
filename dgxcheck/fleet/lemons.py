"""Nodes that fail more often than their sisters.

An incident is a result in which new faults are found: one broken part has many. Of the incidents of a node and of those
like it, the node should have the share that its days with results are; the test is the upper tail of that binomial
distribution. So it is for the incidents at one place (a bus id) of all such nodes: what fails again and again is mostly
one part, and stands out there long before the node does. The less likely of both counts, after Bonferroni. Over all
nodes the method of Benjamini and Hochberg bounds the share of wrongly blamed ones. A node that is blamed is no measure
for others: it is left out and the rest judged again until nothing changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import exp, lgamma, log, log1p

from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered
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


_EVERYWHERE = ""
_Counts = Mapping[str, Counter[str]]
"""Incidents by node, then by place and everywhere."""


def _counts(node: NodeHistory) -> Counter[str]:
    found = {(spell.first_s, place) for spell in node.spells
             for place in (_EVERYWHERE, *BUS_ID.findall(spell.fault.key))}  # fmt: skip
    return Counter(place for _, place in found)


def lemons(history: History) -> tuple[Lemon, ...]:
    """The least likely first."""
    groups = gathered(((node.group.profile, node.group.gpus), name) for name, node in history.nodes.items())
    counts = {name: _counts(node) for name, node in history.nodes.items()}
    blamed: dict[str, Lemon] = {}
    for _ in range(_ROUNDS):
        found = [lemon for names in groups.values() for lemon in _of_group(names, counts, history.nodes, blamed)]
        found.sort(key=lambda lemon: (lemon.chance, lemon.node))
        held = [rank for rank, lemon in enumerate(found, 1) if lemon.chance <= RATE * rank / len(history.nodes)]
        before, blamed = blamed, {lemon.node: lemon for lemon in found[: max(held, default=0)]}
        if before.keys() == blamed.keys():
            break
    return tuple(blamed.values())


def _of_group(
    names: Sequence[str], counts: _Counts, nodes: Mapping[str, NodeHistory], blamed: Collection[str]
) -> Iterator[Lemon]:
    """Nodes with enough incidents."""
    sound = [name for name in names if name not in blamed]
    days, totals = sum(nodes[name].days for name in sound), Counter[str]()
    for name in sound:
        totals.update(counts[name])
    places = len({place for name in names for place in counts[name]} - {_EVERYWHERE})
    for name in names:
        node, own, within = nodes[name], counts[name], name not in blamed
        other_days = days - within * node.days
        if own[_EVERYWHERE] < LEAST or not other_days:
            continue
        share = node.days / (node.days + other_days)
        others = {place: totals[place] - within * count for place, count in own.items()}
        chances = {place: _tail(count, count + others[place], share) for place, count in own.items()}
        tests = [chance * (places if place else 1) for place, chance in chances.items()]
        most = max(own.keys() - {_EVERYWHERE}, key=lambda place: own[place], default="")
        yield Lemon(
            node=name, incidents=incidents(node), expected=others[_EVERYWHERE] / other_days * node.days,
            likes=len(sound) - within, days=node.days, chance=min(1.0, min(tests) * (2 if places else 1)),
            mended=_mended(node), place=most if 2 * own[most] > own[_EVERYWHERE] else "",
        )  # fmt: skip


def _tail(least: int, trials: int, share: float) -> float:
    """The chance of ``least`` or more of ``trials``; ``least`` is 1 or more."""
    ways = lgamma(trials + 1) - lgamma(least + 1) - lgamma(trials - least + 1)
    term = total = exp(ways + least * log(share) + (trials - least) * log1p(-share))
    for number in range(least, trials):
        term *= (trials - number) / (number + 1) * share / (1 - share)
        total += term
        if term < total * 1e-12:
            break
    return min(1.0, total)


def _mended(node: NodeHistory) -> bool:
    times = incidents(node)
    if any(spell.gone_s is None for spell in node.spells):
        return False
    bad, quiet = (times[-1] - node.first_s) / DAY_S + 1, (node.last_s - times[-1]) / DAY_S
    return exp(-len(times) / bad * quiet) < _QUIET
