"""Edge-disjoint rings: the counts that NVIDIA names, and that every ring is one."""

from __future__ import annotations

import time
from collections import Counter
from itertools import combinations, pairwise, permutations

import pytest
from clock import SPARE
from hypothesis import given, settings
from hypothesis import strategies as st
from topology_boxes import FACE, P100, V100, dgx1, fabric

from dgxcheck.bandwidth.links import collective_gbs
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.topology.nvlinks import Graph, Rings, find_rings, nvlink_generation, nvlink_graph


def graph(gpus: int, pairs: dict[tuple[int, int], int]) -> Graph:
    return Graph(
        names=tuple(f"GPU{i}" for i in range(gpus)), pairs={(f"GPU{a}", f"GPU{b}"): n for (a, b), n in pairs.items()}
    )


def everyone(gpus: int, links: int) -> dict[tuple[int, int], int]:
    return dict.fromkeys(combinations(range(gpus), 2), links)


def assert_rings(found: Rings, box: Graph) -> None:
    used: Counter[tuple[str, ...]] = Counter()
    for ring in found.orders:
        assert sorted(ring) == sorted(box.names)
        assert ring[0] == box.names[0]
        used.update(tuple(sorted(edge)) for edge in zip(ring, ring[1:] + ring[:1], strict=True))
    there = {tuple(sorted(pair)): links for pair, links in box.pairs.items()}
    assert all(links <= there.get(pair, 0) for pair, links in used.items())
    assert found.count == len(found.orders)


@pytest.mark.parametrize(
    ("gpus", "pairs", "count", "gbs"),
    [
        (8, P100, 2, 100.0),
        (8, V100, 3, 150.0),
        (4, {**everyone(4, 1), (0, 3): 2, (1, 2): 2}, 2, 100.0),
        (4, {**everyone(4, 1), (0, 1): 2, (2, 3): 2}, 2, 100.0),
        (4, {**everyone(4, 1), (0, 2): 2, (1, 3): 2}, 2, 100.0),
        (4, FACE, 2, 100.0),
        (2, {(0, 1): 2}, 1, 50.0),
        (2, {(0, 1): 1}, 0, 0.0),
        (4, {(0, 1): 4, (2, 3): 4}, 0, 0.0),
        (5, everyone(5, 1), 2, 100.0),
        (1, {}, 0, 0.0),
        (0, {}, 0, 0.0),
    ],
)
def test_counts(gpus: int, pairs: dict[tuple[int, int], int], count: int, gbs: float) -> None:
    box = graph(gpus, pairs)
    found = find_rings(box)
    assert (found.count, found.how) == (count, "exhaustive")
    assert_rings(found, box)
    assert collective_gbs(found, 2) == gbs
    assert found == find_rings(box)


def test_bandwidth_of_the_white_papers() -> None:
    """Above 60 GB/s are measured on P100, above 130 on V100; nobody has measured more than the rings allow."""
    assert collective_gbs(find_rings(graph(8, P100)), 1) == 80.0
    assert collective_gbs(find_rings(graph(8, V100)), 2) == 150.0
    assert collective_gbs(find_rings(graph(8, V100)), Missing(Gap.ABSENT, "version")) == Missing(Gap.ABSENT, "version")


def test_v100_is_fast() -> None:
    start = time.perf_counter()
    assert find_rings(graph(8, V100)).count == 3
    assert time.perf_counter() - start < 0.5 + SPARE


def test_a_lost_link_of_a_dgx1_costs_one_ring() -> None:
    for pair in V100:
        assert find_rings(graph(8, {**V100, pair: V100[pair] - 1})).count == 2


def test_why_there_is_no_ring() -> None:
    assert find_rings(graph(3, {(0, 1): 1, (1, 2): 1})).detail == "fewer than two NVLinks up: GPU0, GPU2"
    assert find_rings(graph(4, {(0, 1): 2, (2, 3): 2})).detail == "no ring visits every GPU"


@pytest.mark.parametrize(("switches", "links", "count"), [(6, 2, 6), (6, 1, 3), (2, 9, 9), (3, 1, 1)])
def test_switched_boxes(switches: int, links: int, count: int) -> None:
    """DGX A100: 6 switches with 2 links from each GPU to each: 6 rings in any order."""
    box = nvlink_graph(fabric(8, switches, links).topology())
    assert not isinstance(box, Missing)
    found = find_rings(box)
    assert (found.count, found.how, found.orders) == (count, "switched", ())
    assert collective_gbs(found, 3) == count * 50.0


def test_beyond_ten_gpus_nothing_is_claimed() -> None:
    found = find_rings(graph(11, everyone(11, 1)))
    assert isinstance(found.count, Missing)
    assert found.how == "not searched"
    assert isinstance(collective_gbs(found, 2), Missing)


def test_a_hopeless_search_is_given_up() -> None:
    """Two complete halves joined by one GPU pair: no ring, and many paths to try."""
    halves = {pair: 1 for pair in combinations(range(10), 2) if (pair[0] < 5) == (pair[1] < 5)}
    box = graph(10, {**halves, (0, 5): 1})
    assert find_rings(box).count == 0
    found = find_rings(box, most_steps=20)
    assert isinstance(found.count, Missing)
    assert (found.how, found.detail) == ("not searched", "search aborted: too many candidate rings")


def test_the_graph_of_a_topology() -> None:
    topology = dgx1().topology()
    box = nvlink_graph(topology)
    assert not isinstance(box, Missing)
    assert box.pairs == {(f"GPU{a}", f"GPU{b}"): links for (a, b), links in V100.items()}
    assert not box.switched
    assert nvlink_generation(topology) == 2
    assert all(row[i] == 0 for i, row in enumerate(box.rows()))
    assert [list(column) for column in zip(*box.rows(), strict=True)] == box.rows()


def test_no_graph_where_nvlink_is_unknown() -> None:
    gap = Missing(Gap.ABSENT, "nvmlInit", "no library")
    assert nvlink_graph(dgx1()._replace(nvml=gap, nvlinks=gap).topology()) == gap
    assert nvlink_graph(dgx1()._replace(nvlinks=gap).topology()) == gap
    assert isinstance(nvlink_generation(dgx1({}).topology()), Missing)


def test_boards_without_nvlink_make_an_empty_graph() -> None:
    box = nvlink_graph(dgx1({}).topology())
    assert box == Graph(names=(), pairs={})


def most_rings(gpus: int, links: Counter[tuple[int, ...]]) -> int:
    """By trying every order of the GPUs for every ring."""
    best = 0
    for order in permutations(range(1, gpus)):
        if order[0] > order[-1]:
            continue
        edges = [tuple(sorted(edge)) for edge in pairwise((0, *order, 0))]
        if all(links[edge] for edge in edges):
            best = max(best, 1 + most_rings(gpus, links - Counter(edges)))
    return best


@settings(max_examples=80)
@given(gpus=st.integers(3, 5), links=st.lists(st.integers(0, 2), min_size=10, max_size=10))
def test_no_search_finds_more_rings(gpus: int, links: list[int]) -> None:
    pairs = dict(zip(combinations(range(gpus), 2), links, strict=False))
    box = graph(gpus, {pair: count for pair, count in pairs.items() if count})
    found = find_rings(box)
    assert_rings(found, box)
    assert found.count == most_rings(gpus, Counter(pairs))


@settings(max_examples=40)
@given(order=st.permutations(range(8)), drop=st.sampled_from([*V100]))
def test_renumbering_keeps_the_count(order: list[int], drop: tuple[int, int]) -> None:
    pairs = {**V100, drop: V100[drop] - 1}
    renamed = {(min(order[a], order[b]), max(order[a], order[b])): links for (a, b), links in pairs.items() if links}
    assert find_rings(graph(8, renamed)).count == find_rings(graph(8, {k: v for k, v in pairs.items() if v})).count == 2
