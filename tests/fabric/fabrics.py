"""Fabrics as they are built, with faults planted in them, in the forms of the tools that would print them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from dgxcheck.fabric.judge import Judged, judge
from dgxcheck.fabric.model import fabric_of
from dgxcheck.readers.fabric.any_fabric import read
from dgxcheck.readers.fabric.plan import PlannedCable

End = tuple[str, int]
"""A switch, or ``dgx005 mlx5_1``, and the port."""
Kind = Literal["fat", "rails", "planes"]
ADAPTERS: Mapping[Kind, int] = {"fat": 4, "rails": 8, "planes": 4}
KINDS = [*ADAPTERS]


class Cable(NamedTuple):
    rate: str
    ends: tuple[End, End]


class Fabric:
    """Cables by their ends; the lower end first."""

    def __init__(self, kind: Kind, systems: int, rate: str = "4xEDR") -> None:
        self.kind = kind
        self.adapters = ADAPTERS[kind]
        self.hosts = [f"dgx{number:03}" for number in range(systems)]
        self.up: dict[End, End] = {}
        """By the lower end the place of its other plug."""
        self.rates: dict[End, str] = {}
        self.usual = rate
        {"fat": self._fat, "rails": self._rails, "planes": self._planes}[kind]()
        self.planned = dict(self.up)

    def _fat(self, plane: str = "", names: tuple[int, ...] = (0, 1, 2, 3), per_leaf: int = 4) -> None:
        leaves = -(-len(self.hosts) // per_leaf)
        down = per_leaf * len(names)
        for number, host in enumerate(self.hosts):
            for at, name in enumerate(names):
                port = number % per_leaf * len(names) + at + 1
                self.up[f"{host} mlx5_{name}", 1] = f"{plane}leaf{number // per_leaf:03}", port
        for leaf in range(leaves):
            for spine in range(per_leaf * len(names)):
                self.up[f"{plane}leaf{leaf:03}", down + 1 + spine] = f"{plane}spine{spine:02}", leaf + 1

    def _rails(self) -> None:
        """Units of 16 systems, a leaf for each rail of a unit, all leaves below the same spines."""
        for number, host in enumerate(self.hosts):
            for rail in range(self.adapters):
                self.up[f"{host} mlx5_{rail}", 1] = f"leaf{number // 16:03}r{rail}", number % 16 + 1
        for leaf, name in enumerate(sorted({end[0] for end in self.up.values()})):
            for spine in range(16):
                self.up[name, 17 + spine] = f"spine{spine:02}", leaf + 1

    def _planes(self) -> None:
        self._fat("a-", (0, 1), 8)
        self._fat("b-", (2, 3), 8)

    def of_adapters(self) -> list[End]:
        """Those that are where they belong."""
        return [end for end, far in self.up.items() if " " in end[0] and self.planned[end] == far]

    def of_switches(self) -> list[End]:
        return [end for end, far in self.up.items() if " " not in end[0] and self.planned[end] == far]

    def swap(self, a: End, b: End) -> None:
        self.up[a], self.up[b] = self.up[b], self.up[a]

    def cables(self) -> list[Cable]:
        return [Cable(self.rates.get(end, self.usual), (end, far)) for end, far in self.up.items()]

    def guids(self) -> dict[str, int]:
        """Of switches, and of the ports of adapters; the same for the same fabric, whatever is wrong with it."""
        nodes = dict.fromkeys(end[0] for ends in self.planned.items() for end in ends)
        return {node: (0x100000 if " " in node else 0x200000) + 2 * number for number, node in enumerate(nodes)}

    def discovered(self) -> str:
        """As ``ibnetdiscover -p`` prints it."""
        lines, guids = [], self.guids()
        for rate, (a, b) in self.cables():
            for end, far in ((a, b), (b, a)):
                lines.append(f"{_of(end)} {guids[end[0]]:#018x} {rate.replace('x', 'x ')} -"
                             f" {_of(far)} {guids[far[0]]:#018x} ( '{end[0]}' - '{far[0]}' )")  # fmt: skip
        return "\n".join(lines) + "\n"

    def net(self) -> str:
        """What ibsim reads."""
        ports: dict[str, list[str]] = {}
        for rate, (a, b) in self.cables():
            for end, far in ((a, b), (b, a)):
                own = "lid 0 lmc 0 " if " " in end[0] else ""
                ports.setdefault(end[0], []).append(
                    f'[{end[1]}] "{far[0]}"[{far[1]}]\t# {own}"{far[0]}" lid 0 {rate}')
        size = max(64, *(end[1] for ends in self.up.items() for end in ends))
        heads = {node: f'Hca 1 "{node}"' if " " in node else f'Switch {size} "{node}"' for node in ports}
        return "\n\n".join("\n".join([heads[node], *lines]) for node, lines in ports.items()) + "\n"

    def plan(self) -> str:
        """As csv; switches stand in the place of systems."""
        rows = [f"{a[0].replace(' ', ',') if ' ' in a[0] else f'{a[0]},P{a[1]}'},{b[0]},{b[1]}"
                for a, b in self.planned.items()]  # fmt: skip
        return "host,adapter,switch,port\n" + "\n".join(rows) + "\n"


def _of(end: End) -> str:
    return f"{'SW' if ' ' not in end[0] else 'CA'} {7:5} {end[1]:2}"


Planted = tuple[str, frozenset[str]]
"""The fault, and the ends that a finding has to name."""


def shown(end: End) -> str:
    return end[0] if " " in end[0] else f"{end[0]} port {end[1]}"


def within(fabric: Fabric, chance: random.Random) -> Planted:
    """Two cables of one system."""
    host = chance.choice(fabric.of_adapters())[0].partition(" ")[0]
    a, b = chance.sample([end for end in fabric.of_adapters() if end[0].startswith(f"{host} ")], 2)
    fabric.swap(a, b)
    return "cable-swapped", frozenset({a[0], b[0]})


def between(fabric: Fabric, chance: random.Random) -> Planted:
    """Cables of two systems on different leaves."""
    a = chance.choice(fabric.of_adapters())
    others = [end for end in fabric.of_adapters() if fabric.up[end][0] != fabric.up[a][0] and end[0][:6] != a[0][:6]]
    b = chance.choice(others)
    fabric.swap(a, b)
    return "cable-swapped", frozenset({a[0], b[0]})


def missing(fabric: Fabric, chance: random.Random) -> Planted:
    end = chance.choice(fabric.of_adapters())
    del fabric.up[end]
    return "cable-missing", frozenset({end[0]})


def uplink_missing(fabric: Fabric, chance: random.Random) -> Planted:
    end = chance.choice(fabric.of_switches())
    far = fabric.up.pop(end)
    return "cable-missing", frozenset({shown(end), shown(far)})


def slow(fabric: Fabric, chance: random.Random) -> Planted:
    end = chance.choice([*fabric.up])
    fabric.rates[end] = "4xQDR"
    return "port-slow", frozenset({shown(end), shown(fabric.up[end])})


def narrow(fabric: Fabric, chance: random.Random) -> Planted:
    end = chance.choice([*fabric.up])
    fabric.rates[end] = "1xEDR"
    return "port-slow", frozenset({shown(end), shown(fabric.up[end])})


def uplinks_swapped(fabric: Fabric, chance: random.Random) -> Planted:
    """Of two leaves to two spines."""
    a = chance.choice(fabric.of_switches())
    group = fabric.up[a][0].partition("spine")[0]
    others = [end for end in fabric.of_switches() if end[0] != a[0] and fabric.up[end][0] != fabric.up[a][0]
              and fabric.up[end][0].startswith(group)]  # fmt: skip
    b = chance.choice(others)
    fabric.swap(a, b)
    return "cable-swapped", frozenset({shown(a), shown(b)})


def on_spine(fabric: Fabric, chance: random.Random) -> Planted:
    """An adapter's plug at a spine, and the leaf's at the adapter's place."""
    a = chance.choice(fabric.of_adapters())
    b = chance.choice([end for end in fabric.of_switches() if end[0] != fabric.up[a][0]
                       and end[0][:2] == fabric.up[a][0][:2]])  # fmt: skip
    fabric.swap(a, b)
    return "cable-swapped", frozenset({a[0], shown(b)})


def another_leaf(fabric: Fabric, chance: random.Random) -> Planted:
    """An adapter at a free port of another leaf."""
    a = chance.choice(fabric.of_adapters())
    b = chance.choice([far[0] for end, far in fabric.up.items() if " " in end[0] and far[0] != fabric.up[a][0]])
    free = next(port for port in range(40, 64) if (b, port) not in fabric.up.values() and (b, port) not in fabric.up)
    fabric.up[a] = b, free
    return "cable-misplaced", frozenset({a[0], f"{b} port {free}"})


FAULTS: tuple[Callable[[Fabric, random.Random], Planted], ...] = (
    within, between, missing, uplink_missing, slow, narrow, uplinks_swapped, on_spine, another_leaf,
)  # fmt: skip


def judged(fabric: Fabric, plan: Sequence[PlannedCable] | None = None, more: str = "") -> Judged:
    return judge(fabric_of([read(fabric.discovered()), read(more)]), plan)
