"""Rings: the most edge-disjoint Hamiltonian cycles that the NVLinks of a box allow.

A ring of full-duplex links carries data both ways round, so a collective's bus bandwidth is at most
rings x 2 directions x rate of one link: 2 x 2 x 20 = 80 GB/s on a DGX-1 with P100 (its white paper measures above 60),
3 x 2 x 25 = 150 GB/s on one with V100 (above 130), 6 x 2 x 25 = 300 GB/s on a DGX A100 (about 235 measured).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Literal

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record
from dgxcheck.topology.graph import Graph

MOST_GPUS = 10
MOST_STEPS = 200_000
"""Extensions of a path before the search gives up: about a second. Boxes that exist need a few thousand at most."""


class Rings(Record):
    """Edge-disjoint rings over all GPUs of a graph."""

    count: int | Missing
    orders: tuple[tuple[str, ...], ...]
    """GPUs of each ring in order, starting at the first GPU; empty through switches, where any order will do."""
    how: Literal["exhaustive", "switched", "not searched"]
    detail: str


def search(graph: Graph, most_steps: int = MOST_STEPS) -> Rings:
    """The largest set of rings; among equals the first in GPU order, so the result is deterministic."""
    gpus = len(graph.names)
    if graph.switched:
        links = min((graph.pairs.get(pair, 0) for pair in combinations(graph.names, 2)), default=0)
        return Rings(count=links // 2, orders=(), how="switched", detail="through NVSwitches, any order of the GPUs")
    if gpus < 2:
        return Rings(count=0, orders=(), how="exhaustive", detail="fewer than two GPUs with NVLink")
    if gpus > MOST_GPUS:
        return _not_searched(f"not searched beyond {MOST_GPUS} GPUs")
    rows = graph.rows()
    most = min(sum(row) for row in rows) // 2
    budget = [most_steps]
    for wanted in range(most, 0, -1):
        rings = _pack(rows, wanted, (), budget)
        if rings is not None:
            orders = tuple(tuple(graph.names[i] for i in ring) for ring in rings)
            return Rings(count=wanted, orders=orders, how="exhaustive", detail="")
        if budget[0] <= 0:
            return _not_searched("search aborted: too many candidate rings")
    return Rings(count=0, orders=(), how="exhaustive", detail=_reason(graph, rows))


def _not_searched(why: str) -> Rings:
    return Rings(count=Missing(Gap.UNSUPPORTED, "NVLink rings", why), orders=(), how="not searched", detail=why)


def _reason(graph: Graph, rows: list[list[int]]) -> str:
    underlinked = [name for name, row in zip(graph.names, rows, strict=True) if sum(row) < 2]
    return f"fewer than two NVLinks up: {', '.join(underlinked)}" if underlinked else "no ring visits every GPU"


def _pack(
    rows: list[list[int]], wanted: int, least: tuple[int, ...], budget: list[int]
) -> tuple[tuple[int, ...], ...] | None:
    """``wanted`` disjoint rings in ascending order, the first not before ``least``; None if there are none."""
    if not wanted:
        return ()
    if any(sum(row) < 2 * wanted for row in rows):
        return None
    for ring in _rings(rows, least, budget):
        _take(rows, ring, -1)
        rest = _pack(rows, wanted - 1, ring, budget)
        _take(rows, ring, 1)
        if rest is not None:
            return (ring, *rest)
    return None


def _take(rows: list[list[int]], ring: tuple[int, ...], links: int) -> None:
    for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
        rows[a][b] += links
        rows[b][a] += links


def _rings(rows: list[list[int]], least: tuple[int, ...], budget: list[int]) -> Iterator[tuple[int, ...]]:
    """Hamiltonian cycles from GPU 0 in lexicographic order, each in one of its two directions, from ``least`` on."""
    gpus = len(rows)
    if gpus == 2:
        if rows[0][1] >= 2:
            yield (0, 1)
        return
    path = [0]

    def extend(bounded: bool) -> Iterator[tuple[int, ...]]:
        budget[0] -= 1
        if budget[0] <= 0:
            return
        if len(path) == gpus:
            if rows[path[-1]][0] and path[1] < path[-1]:
                yield tuple(path)
            return
        floor = least[len(path)] if bounded else 1
        for gpu in range(max(floor, 1), gpus):
            if gpu not in path and rows[path[-1]][gpu]:
                path.append(gpu)
                yield from extend(bounded and gpu == floor)
                path.pop()

    yield from extend(bool(least))
