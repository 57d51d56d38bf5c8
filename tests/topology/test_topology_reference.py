"""Reference graphs: which one a box has, up to the numbers of its GPUs, and what it lacks."""

from __future__ import annotations

import time
from itertools import combinations

import pytest
from clock import SPARE
from hypothesis import given, settings
from hypothesis import strategies as st
from topology_boxes import FACE, P100, V100

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.topology.nvlinks import Graph
from dgxcheck.topology.reference import ALL, Nearest, PairDifference, Reference, matches, nearest

UNKNOWN = Missing(Gap.UNSUPPORTED, "nvmlDeviceGetNvLinkVersion")
Pairs = dict[tuple[int, int], int]


def graph(gpus: int, pairs: Pairs, order: list[int] | None = None) -> Graph:
    """The graph with GPU ``i`` numbered ``order[i]``."""
    number = order or list(range(gpus))
    named = {tuple(sorted((number[a], number[b]))): links for (a, b), links in pairs.items() if links}
    return Graph(
        names=tuple(f"GPU{i}" for i in range(gpus)), pairs={(f"GPU{a}", f"GPU{b}"): n for (a, b), n in named.items()}
    )


def names(found: tuple[Reference, ...]) -> list[str]:
    return [reference.name for reference in found]


def near(box: Graph, generation: int | Missing) -> Nearest:
    found = nearest(box, generation)
    assert found is not None
    return found


def everyone(gpus: int, links: int) -> Pairs:
    return dict.fromkeys(combinations(range(gpus), 2), links)


STATION = {**everyone(4, 1), (0, 3): 2, (1, 2): 2}


def test_links_per_gpu_and_totals() -> None:
    """16, 24 and 8 links in all, and as many per GPU as the white papers say."""
    due = {
        "dgx-1-p100": (4, 16),
        "dgx-1-v100": (6, 24),
        "dgx-station-v100": (4, 8),
        "dgx-station-a100": (12, 24),
        "dgx-2": (90, 720),
        "dgx-a100": (84, 336),
        "dgx-h100": (126, 504),
        "dgx-b200": (126, 504),
        "gb200-nvl72": (54, 108),
    }
    for reference in ALL:
        per_gpu, total = due[reference.name]
        rows = reference.rows()
        assert {sum(row) for row in rows} == {per_gpu}
        assert sum(reference.pairs.values()) == total
        assert [list(column) for column in zip(*rows, strict=True)] == rows
        assert reference.source


@pytest.mark.parametrize("reference", ALL, ids=lambda reference: reference.name)
def test_each_reference_matches_itself_alone(reference: Reference) -> None:
    box = graph(reference.gpus, reference.pairs)
    assert names(matches(box, reference.generation)) == [reference.name]
    same = [other.name for other in ALL if (other.gpus, other.pairs) == (reference.gpus, reference.pairs)]
    assert names(matches(box, UNKNOWN)) == same  # without the generation, a graph of two is both
    assert matches(box, 7) == ()
    found = near(box, reference.generation)
    assert (found.reference, found.differences, found.missing_gpus) == (reference, (), 0)
    assert found.labels == tuple(range(reference.gpus))


@settings(max_examples=30)
@given(st.permutations(range(8)), st.sampled_from([("dgx-1-v100", 2, V100), ("dgx-1-p100", 1, P100)]))
def test_numbering_does_not_matter(order: list[int], case: tuple[str, int, Pairs]) -> None:
    name, generation, pairs = case
    assert names(matches(graph(8, pairs, order), generation)) == [name]


@pytest.mark.parametrize("doubled", [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))])
def test_any_perfect_matching_is_a_station(doubled: tuple[tuple[int, int], ...]) -> None:
    assert names(matches(graph(4, {**everyone(4, 1), **dict.fromkeys(doubled, 2)}), 2)) == ["dgx-station-v100"]


@pytest.mark.parametrize("lost", V100)
@settings(max_examples=4)
@given(order=st.permutations(range(8)))
def test_each_lost_link_of_a_dgx1_is_named(lost: tuple[int, int], order: list[int]) -> None:
    """Whatever the numbers: the pair that lost a link, in the box's own names, and no other."""
    box = graph(8, {**V100, lost: V100[lost] - 1}, order)
    a, b = sorted((order[lost[0]], order[lost[1]]))
    found = near(box, 2)
    assert found.reference.name == "dgx-1-v100"
    assert found.differences == (PairDifference(f"GPU{a}", f"GPU{b}", V100[lost] - 1, V100[lost]),)
    assert matches(box, 2) == ()


@pytest.mark.parametrize("lost", P100)
def test_each_lost_link_of_a_p100_box_is_named(lost: tuple[int, int]) -> None:
    found = near(graph(8, {**P100, lost: 0}), 1)
    assert found.differences == (PairDifference(f"GPU{lost[0]}", f"GPU{lost[1]}", 0, 1),)


@pytest.mark.parametrize("pairs", list(combinations(V100, 2))[::7])
def test_two_lost_links_keep_the_numbers_of_the_box(pairs: tuple[tuple[int, int], ...]) -> None:
    box = graph(8, {pair: links - (pair in pairs) for pair, links in V100.items()})
    found = near(box, 2)
    assert [(it.a, it.b) for it in found.differences] == [(f"GPU{a}", f"GPU{b}") for a, b in sorted(pairs)]
    assert found.labels == tuple(range(8))


@pytest.mark.parametrize("gpu", range(8))
def test_a_gpu_without_any_link(gpu: int) -> None:
    found = near(graph(8, {pair: 0 if gpu in pair else links for pair, links in V100.items()}), 2)
    assert len(found.differences) == 4
    assert all(f"GPU{gpu}" in (it.a, it.b) for it in found.differences)


@pytest.mark.parametrize("gone", range(8))
def test_a_missing_gpu_is_no_difference(gone: int) -> None:
    left = [i for i in range(8) if i != gone]
    pairs = {(left.index(a), left.index(b)): links for (a, b), links in V100.items() if gone not in (a, b)}
    found = near(graph(7, pairs), 2)
    assert (found.reference.name, found.missing_gpus, found.differences) == ("dgx-1-v100", 1, ())
    assert matches(graph(7, pairs), 2) == ()


def test_a_missing_gpu_and_a_lost_link() -> None:
    pairs = {pair: links for pair, links in V100.items() if 7 not in pair}
    found = near(graph(7, {**pairs, (0, 3): 1}), 2)
    assert (found.missing_gpus, found.differences) == (1, (PairDifference("GPU0", "GPU3", 1, 2),))


def test_half_a_dgx1_is_no_station() -> None:
    """p3.8xlarge: it has a link more than a Station, and no hardware grows one."""
    found = near(graph(4, FACE), 2)
    assert (found.reference.name, found.missing_gpus, found.differences) == ("dgx-1-v100", 4, ())
    assert matches(graph(4, FACE), 2) == ()


def test_a_station_with_a_lost_link_is_a_station() -> None:
    for lost in STATION:
        found = near(graph(4, {**STATION, lost: STATION[lost] - 1}), 2)
        assert (found.reference.name, found.missing_gpus) == ("dgx-station-v100", 0)
        assert [it.expected - it.has for it in found.differences] == [1]


def test_a_wrong_count_is_named_too() -> None:
    found = near(graph(8, {**V100, (0, 1): 3}), 2)
    assert found.differences == (PairDifference("GPU0", "GPU1", 3, 1),)


def test_one_dead_link_of_a_switched_gpu() -> None:
    pairs = {pair: 11 if 3 in pair else 12 for pair in combinations(range(8), 2)}
    found = near(graph(8, pairs), 3)
    assert found.reference.name == "dgx-a100"
    assert len(found.differences) == 7
    assert all("GPU3" in (it.a, it.b) and (it.has, it.expected) == (11, 12) for it in found.differences)
    seven = near(graph(7, everyone(7, 12)), 3)
    assert (seven.differences, seven.missing_gpus) == ((), 1)


@pytest.mark.parametrize(
    ("gpus", "pairs", "generation"),
    [
        (0, {}, 2),
        (2, {(0, 1): 2}, 2),
        (4, {}, 2),
        (4, {(0, 1): 2, (2, 3): 2}, 2),
        (4, everyone(4, 8), 3),
        (8, {(0, 1): 4, (2, 3): 4, (4, 5): 4, (6, 7): 4}, 3),
        (8, {}, 2),
        (8, P100, 2),
        (9, everyone(9, 12), 3),
    ],
)
def test_far_from_every_reference(gpus: int, pairs: Pairs, generation: int) -> None:
    assert nearest(graph(gpus, pairs), generation) is None
    assert matches(graph(gpus, pairs), generation) == ()


def test_the_worst_search_is_short() -> None:
    start = time.perf_counter()
    for order in ([3, 1, 4, 0, 5, 2, 6, 7], [7, 6, 5, 4, 3, 2, 1, 0], [0, 2, 4, 6, 1, 3, 5, 7]):
        nearest(graph(8, {pair: 1 + (sum(pair) % 2) for pair in V100}, order), 2)
        nearest(graph(8, {pair: links for pair, links in V100.items() if 5 not in pair}, order), 2)
    assert time.perf_counter() - start < 3 + SPARE


@settings(max_examples=40)
@given(order=st.permutations(range(8)), losses=st.lists(st.sampled_from([*V100]), max_size=3, unique=True))
def test_renumbering_keeps_the_number_of_differences(order: list[int], losses: list[tuple[int, int]]) -> None:
    pairs = {pair: links - (pair in losses) for pair, links in V100.items()}
    one, other = near(graph(8, pairs), 2), near(graph(8, pairs, order), 2)
    assert one.reference == other.reference
    assert len(one.differences) == len(other.differences) <= len(losses)
