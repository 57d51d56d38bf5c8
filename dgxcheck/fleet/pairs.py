"""Nodes measured in pairs: who meets whom in which round, and who is to blame for the pairs that are slow.

The rounds are those of the circle method: no node twice in a round, no pair twice in all. Each node is judged by its
best round (group testing): one that is slow with a partner that is fast elsewhere is slow itself; one whose partners
are all slow in every round may be innocent, and needs another.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import comb

from dgxcheck.facts.missing import BadInput, is_number
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered, median
from dgxcheck.fleet.reading import Unread
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.limits import PAIR_BYTES, PAIR_FILES
from dgxcheck.readers.benchmarks import nccl_tests, perftest
from dgxcheck.readers.values import MOST_GBS
from dgxcheck.rootfs import decode

ALL = "-"
"""In place of an adapter: a test that uses all of a node."""
LEAST_SHARE = 0.9
"""Of the median of all nodes; less is slow."""
_LEAST_OF_LINK = 0.6
"""Of the nominal rate of the link; coding (8b/10b up to QDR), protocol, PCIe and CPU take the rest."""
_LEAST = 4
"""Nodes; the median of fewer is no measure."""
_JSON = LazyPattern(r'"?BW_average"?\s{0,4}:\s{0,4}([^\s,}\]]{1,400})')
"""perftest's --out_json; releases before 2023 leave out the quotes (linux-rdma/perftest issue 216)."""
_MULTINODE = LazyPattern(r"^SUM multinode_\w{1,80} (\S{1,400})", flags=re.MULTILINE)
_NAME = LazyPattern(
    r"(?P<round>\d{1,6}),(?P<a>[\w.-]{1,255}),(?P<b>[\w.-]{1,255}),(?P<adapter>[\w.-]{1,64})\.(?:txt|json)",
    flags=re.ASCII,
)
Pair = tuple[str, str]
Port = tuple[str, str]
"""Node and adapter."""


def rounds(nodes: Sequence[str], count: int | None = None) -> list[list[Pair]]:
    """Of the circle method, ``count`` that are far from each other; all for None. With an odd number one node rests."""
    ring = [*dict.fromkeys(nodes)]
    if len(ring) < 2:
        raise BadInput("pairs need two nodes at least")
    ring += [""] * (len(ring) % 2)
    turns = len(ring) - 1
    wanted = turns if count is None else min(count, turns)
    return [_round(ring, 1 + number * turns // wanted) for number in range(wanted)]


def _round(ring: Sequence[str], turn: int) -> list[Pair]:
    """One node stays, the others turn around it."""
    turned = [ring[0], *ring[turn:], *ring[1:turn]]
    half = len(ring) // 2
    return [(a, b) for a, b in zip(turned[:half], reversed(turned[half:]), strict=True) if a and b]


class Plan(Record):
    """What is run where."""

    rounds: Sequence[Sequence[Pair]]
    test: str
    """``ib_write_bw``, ``nccl-tests``, ``nvbandwidth``"""
    adapters: tuple[str, ...]
    """Of ib_write_bw: one after the other; of nccl-tests, ``ALL`` or each alone."""
    launcher: str
    """``slurm`` or ``clush``"""
    seconds: int
    """After which a test is ended."""


class Measured(Record):
    """One test of one pair."""

    round: int
    nodes: Pair
    adapter: str
    figure: float
    """0 where the test ended without one."""
    last: str = ""
    """Line of such an output."""


class Blamed(Record):
    """What is slow."""

    what: str
    """``node``, ``adapter``, ``leaf``, ``uplinks``, ``path``; ``suspect``: met slow partners alone; ``rate``: slow at
    most nodes"""
    name: str
    adapters: tuple[str, ...] = ()
    share: float
    """Its best figure, of the median."""
    rounds: int
    partners: tuple[str, ...] = ()
    """That it was slow with and that are fast elsewhere."""
    chance: float = 0.0
    """That an innocent one shows the same."""
    note: str = ""
    """What the fabric says of its cable; of ``rate`` ``12.5 GB/s of its links``."""
    last: str = ""
    """Line of an output without a figure."""


class JudgedPairs(Record):
    blamed: tuple[Blamed, ...]
    nodes: int
    tests: int
    rounds: int
    medians: Mapping[str, float]
    """By adapter, of the best figures of all nodes."""
    unread: tuple[Unread, ...]


def read(folder: str) -> tuple[list[Measured], list[Unread]]:
    """The outputs that the script of a plan leaves: ``ROUND,NODE,NODE,ADAPTER.txt``."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise BadInput(f"{folder}: cannot be read: {error.strerror}") from None
    if len(names) > PAIR_FILES:
        raise BadInput(f"{folder}: more than {PAIR_FILES} files")
    found: list[Measured] = []
    unread: list[Unread] = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match is None:
            unread.append(Unread(name, "no output of a pair: ROUND,NODE,NODE,ADAPTER.txt"))
            continue
        try:
            with open(os.path.join(folder, name), "rb") as file:
                text = decode(file.read(PAIR_BYTES))
            rate = figure(text)
        except OSError as error:
            unread.append(Unread(name, f"cannot be read: {error.strerror}"))
            continue
        except ValueError as error:
            unread.append(Unread(name, str(error)))
            continue
        last = "" if rate or not text.strip() else text.strip().splitlines()[-1][:200]
        found.append(Measured(round=int(match["round"]), nodes=(match["a"], match["b"]), adapter=match["adapter"],
                              figure=rate, last=last))  # fmt: skip
    if not any(test.figure for test in found) and (last := next(filter(None, (test.last for test in found)), "")):
        raise BadInput(f"{folder}: no output has a figure; one ends with: {last}")
    if not found and unread and all(map(_NAME.fullmatch, names)):
        raise BadInput(f"{folder}: no output can be read: {unread[0].where}: {unread[0].why}")
    if not found:
        raise BadInput(f"{folder}: no output of a pair, named ROUND,NODE,NODE,ADAPTER.txt")
    return found, unread


def figure(text: str) -> float:
    """The rate of ib_write_bw, nccl-tests or nvbandwidth in GB/s, the lowest of several; 0 where there is none.

    Raises ValueError for one that no machine has.
    """
    if match := _JSON.search(text):
        return _rate(match[1]) / 8
    if sums := _MULTINODE.findall(text):
        return min(map(_rate, sums))
    lines = tuple(text.splitlines())
    facts = (fact for read_ in (perftest.read_perftest, nccl_tests.read) for part in read_(lines)
             for fact in part.facts.values())  # fmt: skip
    values = [value for fact in facts if isinstance(fact, dict) and isinstance(value := fact.get("value"), int | float)]
    return float(min(values, default=0.0))


def _rate(text: str) -> float:
    """A number as JSON has it. Raises ValueError for a negative or infinite one, and for what is none."""
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if is_number(value) and 0 <= value <= 8 * MOST_GBS:
        return float(value)
    raise ValueError(f"{text[:40]} is no rate")


def judge(
    tests: Sequence[Measured], unread: Sequence[Unread] = (), leaves: Mapping[Port, str] | None = None,
    notes: Mapping[Port, str] | None = None, links: Mapping[Port, float] | None = None,
) -> JudgedPairs:  # fmt: skip
    """``leaves``: the switch of each adapter; ``notes``: what is wrong with its cable; ``links``: its nominal GB/s. All
    of ``dgxcheck fabric``."""
    leaves, notes = leaves or {}, notes or {}
    met = gathered(((node, test.adapter), (test.figure, partner)) for test in tests
                   for node, partner in (test.nodes, test.nodes[::-1]))  # fmt: skip
    best = {port: max(figures)[0] for port, figures in met.items()}
    by_adapter = gathered((adapter, value) for (_, adapter), value in best.items())
    medians = {adapter: median(values) for adapter, values in by_adapter.items() if len(values) >= _LEAST}
    if not any(medians.values()):
        raise BadInput(f"too few pairs with a figure: the median of fewer than {_LEAST} nodes is no measure")
    shares = {(node, adapter): value / medians[adapter] for (node, adapter), value in best.items()
              if medians.get(adapter)}  # fmt: skip
    slow = {port: share for port, share in shares.items() if share < LEAST_SHARE}
    switches = [*_switches(tests, medians, leaves)]
    below = {switch.name for switch in switches}
    rest = {port: share for port, share in slow.items() if leaves.get(port) not in below}
    last = {(node, test.adapter): test.last for test in tests if test.last for node in test.nodes}
    own = [_one(port, met, shares, notes, "" if share else last.get(port, "")) for port, share in rest.items()]
    blamed = [*switches, *_nodes([each for each in own if each.partners], met),
              *(each for each in own if not each.partners), *_paths(tests, shares, medians, leaves, below),
              *_rates(tests, best, links or {})]  # fmt: skip
    return JudgedPairs(
        blamed=tuple(blamed), nodes=len({node for node, _ in met}), tests=len(tests),
        rounds=len({test.round for test in tests}), medians=medians, unread=tuple(unread),
    )  # fmt: skip


def _one(
    port: Port, met: Mapping[Port, Sequence[tuple[float, str]]], shares: Mapping[Port, float],
    notes: Mapping[Port, str], last: str,
) -> Blamed:  # fmt: skip
    """An innocent node is slow throughout if every partner is: as if drawn from all others."""
    partners = [partner for _, partner in met[port]]
    fast = tuple(sorted(partner for partner in partners if shares.get((partner, port[1]), 0.0) >= LEAST_SHARE))
    of_adapter = [other for other in shares if other[1] == port[1] and other != port]
    others = sum(shares[other] < LEAST_SHARE for other in of_adapter)
    chance = comb(others, len(partners)) / max(1, comb(len(of_adapter), len(partners)))
    return Blamed(
        what="adapter" if fast else "suspect", name=port[0], adapters=(port[1],), share=shares[port],
        rounds=len(partners), partners=fast, chance=0.0 if fast else chance, note=notes.get(port, ""), last=last,
    )  # fmt: skip


def _nodes(own: Sequence[Blamed], met: Iterable[Port]) -> Iterator[Blamed]:
    """A node whose adapters are all slow is one finding."""
    has = gathered(met)
    for node, found in gathered((each.name, each) for each in own).items():
        if {each.adapters[0] for each in found} != {*has[node]} or (len(found) == 1 and found[0].adapters[0] != ALL):
            yield from found
            continue
        partners = {partner for each in found for partner in each.partners}
        yield Blamed(
            what="node", name=node, adapters=tuple(each.adapters[0] for each in found),
            share=min(each.share for each in found), rounds=max(each.rounds for each in found),
            partners=tuple(sorted(partners)), note="; ".join(each.note for each in found if each.note),
            last=next(filter(None, (each.last for each in found)), ""),
        )  # fmt: skip


def _switches(tests: Sequence[Measured], medians: Mapping[str, float], leaves: Mapping[Port, str]) -> Iterator[Blamed]:
    """Leaves of which more than half of the adapters are slow with those on other leaves."""
    across: dict[str, dict[Port, float]] = {}
    within: dict[str, dict[Port, float]] = {}
    for test in tests:
        ends = [(node, test.adapter) for node in test.nodes]
        places = [leaves.get(end, "") for end in ends]
        if all(places) and medians.get(test.adapter):
            share = test.figure / medians[test.adapter]
            for end, place, other in zip(ends, places, reversed(places), strict=True):
                seen = (within if place == other else across).setdefault(place, {})
                seen[end] = max(share, seen.get(end, 0.0))
    for leaf, ports in sorted(across.items()):
        bad = [share for share in ports.values() if share < LEAST_SHARE]
        if len(bad) < _LEAST or 2 * len(bad) <= len(ports) or len({node for node, _ in ports}) < 2:
            continue
        inside = [share for share in within.get(leaf, {}).values() if share >= LEAST_SHARE]
        yield Blamed(
            what="uplinks" if inside else "leaf", name=leaf, share=max(bad), rounds=len(bad),
            note=f"{len(bad)} of {len(ports)} adapters",
        )  # fmt: skip


def _paths(
    tests: Sequence[Measured], shares: Mapping[Port, float], medians: Mapping[str, float],
    leaves: Mapping[Port, str], below: set[str],
) -> Iterator[Blamed]:  # fmt: skip
    """Pairs that are slow although both are fast with others."""
    for test in tests:
        ends = [(node, test.adapter) for node in test.nodes]
        usual = medians.get(test.adapter)
        if not usual or test.figure >= LEAST_SHARE * usual or any(shares[end] < LEAST_SHARE for end in ends):
            continue
        places = [leaves.get(end, "") for end in ends]
        if not below.intersection(places):
            yield Blamed(
                what="path", name=" and ".join(test.nodes), adapters=(test.adapter,), share=test.figure / usual,
                rounds=1, note=f"between {' and '.join(places)}" if all(places) else "",
            )  # fmt: skip


def _rates(tests: Sequence[Measured], best: Mapping[Port, float], links: Mapping[Port, float]) -> Iterator[Blamed]:
    """Where most nodes are slow none is below the median: the best of each node against the rate of its own link."""
    turns = {(test.adapter, test.round) for test in tests}
    own = gathered((port[1], (figure / links[port], links[port])) for port, figure in best.items() if links.get(port))
    for adapter, found in own.items():
        share, usual = map(median, zip(*found, strict=True))
        if len(found) >= _LEAST and 0 < share < _LEAST_OF_LINK:
            yield Blamed(
                what="rate", name=adapter, adapters=(adapter,), share=share,
                rounds=sum(name == adapter for name, _ in turns), note=f"{usual:g} GB/s of its links",
            )  # fmt: skip
