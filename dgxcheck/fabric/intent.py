"""How a fabric was meant to be cabled: as its plan says, or as most of its systems are.

Without a plan each adapter has a place by vote. The other adapters of its system vote: where have the systems beside
them, on the same switch, this adapter? And at which port, counted from theirs? So whatever most systems do is the
scheme, be it all adapters on one leaf, a rail each, or planes. Of two systems that differ either can be right: it takes
most of three.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, permutations

from dgxcheck.fabric.model import ANY, Fabric, Plug, Port, unnumbered
from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.typical import gathered, majority
from dgxcheck.fleet.node_names import counted_order

_TOLERATED = 8
"""Of so many systems one may break a rule that the others keep."""
LEAST_SYSTEMS = 3
"""Systems; of fewer none is the majority."""
Places = Mapping[str, Mapping[str, Port]]
"""By host and adapter, the port of the switch."""


class Scheme(Record):
    """What most systems of one kind do."""

    systems: tuple[str, ...]
    adapters: tuple[str, ...]
    """Those that most of the systems have, or would have if no leaf were down."""
    blocks: tuple[tuple[str, ...], ...]
    """Adapters of a system that share a leaf; empty where fewer than half of the systems agree."""
    steps: Mapping[tuple[str, str], int]
    """From the port of the first adapter to that of the second, where nearly all systems agree."""


class Dispute(Record, kw_only=False):
    """Systems that share most leaves and have some adapters on different ones, and none of the ways is that of most."""

    ways: tuple[tuple[str, ...], ...]
    """The systems of each."""
    adapters: tuple[str, ...]
    absent: bool = False
    """Of two systems: the adapters of the first are on no leaf in the second."""


class Intent(Record):
    """Where each plug belongs."""

    planned: bool
    schemes: tuple[Scheme, ...]
    homes: Mapping[Plug, Port]
    """Also of adapters that are in no link."""
    disputes: tuple[Dispute, ...] = ()


def places_of(fabric: Fabric) -> Places:
    """Of the adapters that have a name and are on a switch."""
    found: dict[str, dict[str, Port]] = {}
    for adapter in (each for each in fabric.adapters.values() if each.name):
        of_host = found.setdefault(adapter.host, {})
        for far in (fabric.far((adapter.guid, port)) for port in range(1, 9)):
            if far is not None and far[0] in fabric.switches:
                of_host[adapter.name] = far
    return found


def inferred(places: Places) -> Intent:
    """What most systems do, and where each adapter belongs if all did."""
    homes: dict[Plug, Port] = {}
    schemes = []
    disputes: list[Dispute] = []
    for systems in _kinds(places):
        own = {host: places[host] for host in systems}
        beside = _beside(own)
        scheme = _scheme(own, beside)
        found = {(host, name): home for host in systems for name, home in _homes(host, own, scheme, beside).items()}
        kept = sum(home[0] == own[host][name][0] for (host, name), home in found.items() if name in own[host])
        ruled = 2 * kept > sum(map(len, own.values()))  # else chance agrees here and there, and no rule
        homes |= found if ruled else {}
        differing = [*_disputes(own, scheme, homes, ruled), *_of_one_alone(own)]
        disputes += differing
        agree = {*systems}.difference(*chain(*(each.ways for each in differing)))
        schemes.append(scheme if agree else replace(scheme, blocks=()))
    return Intent(planned=False, schemes=tuple(schemes), homes=homes, disputes=tuple(disputes))


def _kinds(places: Places) -> list[list[str]]:
    """Systems whose names differ in numbers alone, or in their domain, and which call their adapters alike (HCA-1 or
    mlx5_0, as the driver that set their descriptions does); those of a name like no other are one kind.
    """
    usual = {host: Counter(map(unnumbered, adapters)).most_common(1) for host, adapters in places.items()}
    found = gathered(((unnumbered(host), called[0][0] if called else ""), host) for host, called in usual.items())
    single = [hosts[0] for hosts in found.values() if len(hosts) == 1]
    return [sorted(hosts) for hosts in found.values() if len(hosts) > 1] + ([sorted(single)] if single else [])


def _scheme(own: Places, beside: Mapping[str, Mapping[str, Counter[str]]]) -> Scheme:
    held = Counter(name for adapters in own.values() for name in adapters)
    found = [name for name, count in held.items()
             if 2 * count > len(own) or (count >= LEAST_SYSTEMS and _lacks_its_leaf(name, own, beside))]  # fmt: skip
    adapters = tuple(sorted(found, key=counted_order))
    whole = [places for places in own.values() if all(name in places for name in adapters)]
    voters = whole if len(whole) >= LEAST_SYSTEMS else [*own.values()]
    blocks = majority(_partition(places, adapters) for places in voters) or ()
    steps = {(a, b): step for a, b in permutations(adapters, 2) if (step := _step(own, a, b)) is not None}
    return Scheme(systems=tuple(own), adapters=adapters, blocks=blocks, steps=steps)


def _lacks_its_leaf(name: str, own: Places, beside: Mapping[str, Mapping[str, Counter[str]]]) -> bool:
    """Is a leaf down, so that all who share the other leaves lack just the adapters that they would have on it?

    Of less than half of the systems it must be one between two others (mlx5_3), as a few can have one more (mlx5_8).
    """
    having = [places for places in own.values() if name in places]
    without = [places for places in own.values() if name not in places]
    names, left = _of_most(having), _of_most(without)
    on_leaf = Counter(frozenset(other for other, place in places.items() if place[0] == places[name][0])
                      for places in having)  # fmt: skip
    if not left < names or names - left != on_leaf.most_common(1)[0][0]:
        return False
    order = sorted((*left, name), key=counted_order)
    if 2 * len(having) < len(own) and name in (order[0], order[-1]):
        return False
    return all(2 * sum(name in beside[leaf] for leaf, _ in places.values()) < len(places) for places in without)


def _of_most(systems: Sequence[Mapping[str, Port]]) -> set[str]:
    """Adapters that more than half of these have."""
    held = Counter(name for adapters in systems for name in adapters)
    return {name for name, count in held.items() if 2 * count > len(systems)}


def _partition(places: Mapping[str, Port], adapters: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    by_leaf = gathered((places[name][0], name) for name in adapters if name in places)
    return tuple(sorted(map(tuple, by_leaf.values())))


def _step(own: Places, a: str, b: str) -> int | None:
    """From the port of ``a`` to that of ``b``."""
    steps = Counter(places[b][1] - places[a][1] for places in own.values() if a in places and b in places)
    if steps.total() < LEAST_SYSTEMS:
        return None
    step, count = steps.most_common(1)[0]
    return step if steps.total() - count <= max(1, steps.total() // _TOLERATED) else None


def _beside(own: Places) -> dict[str, dict[str, Counter[str]]]:
    """By leaf and adapter: on which leaves the systems on this leaf have that adapter."""
    found: dict[str, dict[str, Counter[str]]] = {}
    for places in own.values():
        for leaf in {place[0] for place in places.values()}:
            of_leaf = found.setdefault(leaf, {})
            for name, place in places.items():
                of_leaf.setdefault(name, Counter())[place[0]] += 1
    return found


def _homes(host: str, own: Places, scheme: Scheme, beside: Mapping[str, Mapping[str, Counter[str]]]) -> dict[str, Port]:
    """The place of each adapter of a system by the votes of its others; none where they do not agree."""
    places = own[host]
    fellows = {name: block for block in scheme.blocks for name in block}
    homes: dict[str, Port] = {}
    for name in dict.fromkeys((*scheme.adapters, *places)):
        leaves: Counter[str] = Counter()
        for other, (leaf, _) in places.items():
            if other == name:
                continue
            seen = beside[leaf].get(name, Counter())
            mine = places[name][0] if name in places else None
            best = majority(seen)
            if best is None or (mine not in (None, best) and seen.total() < LEAST_SYSTEMS):
                best = _of_their_own(seen, name, beside)
            if best is not None:
                leaves[best] += 1
            elif other in fellows.get(name, ()):
                leaves[leaf] += 1
        if (home := majority(leaves)) is not None:
            ports = Counter(
                places[other][1] + scheme.steps[other, name] for other in places
                if other != name and (other, name) in scheme.steps
                and (places[other][0] == home) is (other in fellows.get(name, ()))  # else it is cabled otherwise
            )  # fmt: skip
            homes[name] = home, majority(ports) or ANY
    return homes | _one_of_two(places, homes, beside) | _own_order(places, scheme)


def _disputes(own: Places, scheme: Scheme, homes: dict[Plug, Port], ruled: bool) -> Iterable[Dispute]:
    """Where they have at least half of their adapters on the same leaves, or all in two orders, and most do not say
    where the others belong; of ways of which one alone shares leaves as most systems do, that is the home."""
    for hosts in _mates(own, ruled or len(own) < LEAST_SYSTEMS):
        names = [name for name in scheme.adapters if all(name in own[host] for host in hosts)]
        found = [name for name in names if len({own[host][name][0] for host in hosts}) > 1
                 and len({homes.get((host, name), own[host][name])[0] for host in hosts}) > 1]  # fmt: skip
        ways = gathered((tuple(own[host][name][0] for name in found), host) for host in hosts)
        turned = len(ways) == 2 and len({*map(frozenset, ways)}) == 1 and min(map(len, ways.values())) > 1
        if found and (2 * len(found) <= len(names) or turned):
            right = [way for way, its in ways.items() if any(_partition(own[host], scheme.adapters) == scheme.blocks
                                                             for host in its)]  # fmt: skip
            if len(right) == 1 and len(own) >= LEAST_SYSTEMS:
                leaves = dict(zip(found, right[0], strict=True))
                homes.update({(host, name): (leaf, ANY) for host in hosts for name, leaf in leaves.items()})
            else:
                yield Dispute(tuple(map(tuple, ways.values())), tuple(found))


def _mates(own: Places, ruled: bool) -> list[list[str]]:
    """Systems on the same leaves, together with those that share at least half of these, where there is a rule."""
    alike = gathered((frozenset(leaf for leaf, _ in places.values()), host) for host, places in own.items())
    kept: dict[frozenset[str], list[str]] = {}
    on_leaf: dict[str, list[frozenset[str]]] = {}
    for leaves, hosts in sorted(alike.items(), key=lambda pair: -len(pair[1])):
        shared = Counter(other for leaf in leaves for other in on_leaf.get(leaf, ()))
        near = [other for other, count in shared.most_common(int(ruled)) if 2 * count >= len(leaves | other)]
        kept.setdefault(near[0] if near else leaves, []).extend(hosts)
        for leaf in () if near else leaves:
            on_leaf.setdefault(leaf, []).append(leaves)
    return [sorted(hosts) for hosts in kept.values()]


def _of_one_alone(own: Places) -> Iterable[Dispute]:
    """Adapters that one of two systems has and the other has not, which have most alike."""
    if len(own) == LEAST_SYSTEMS - 1:
        for host, other in permutations(own):
            found = sorted(own[host].keys() - own[other].keys(), key=counted_order)
            if found and len(found) < len(own[host].keys() & own[other].keys()):
                yield Dispute(((host,), (other,)), tuple(found), absent=True)


def _of_their_own(seen: Counter[str], name: str, beside: Mapping[str, Mapping[str, Counter[str]]]) -> str | None:
    """Of two places, where no majority decides, the one that is not that of many systems elsewhere."""
    own = Counter({leaf: count for leaf, count in seen.items() if 2 * count >= beside[leaf][name][leaf]})
    return majority(own) if len(own) < len(seen) else None


def _one_of_two(
    places: Mapping[str, Port], homes: Mapping[str, Port], beside: Mapping[str, Mapping[str, Counter[str]]]
) -> dict[str, Port]:
    """Of two adapters that each call the other misplaced one is: that on a switch where few have it, else the first."""
    if len(places) != 2 or any(name not in homes or homes[name][0] == place[0] for name, place in places.items()):
        return {}
    if {home[0] for home in homes.values()} == {place[0] for place in places.values()}:
        return {}  # each is in the other's place

    here = {name: beside[leaf][name][leaf] for name, (leaf, _) in places.items()}
    right = max(sorted(places, reverse=True), key=lambda name: here[name])
    return {right: places[right]}


def _own_order(places: Mapping[str, Port], scheme: Scheme) -> dict[str, Port]:
    """Of two or three adapters on one leaf no majority votes: the only order of their own ports that fits the rule."""
    names = [name for name in scheme.adapters if name in places]
    if not 2 <= len(names) <= 3 or len({places[name][0] for name in names}) > 1 or _fits(places, names, scheme):
        return {}
    found = [
        order for held in permutations([places[name] for name in names])
        if _fits(order := dict(zip(names, held, strict=True)), names, scheme)
    ]  # fmt: skip
    return found[0] if len(found) == 1 else {}


def _fits(places: Mapping[str, Port], names: Iterable[str], scheme: Scheme) -> bool:
    steps = ((a, b, step) for (a, b), step in scheme.steps.items() if a in names and b in names)
    return all(places[b][1] - places[a][1] == step for a, b, step in steps)
