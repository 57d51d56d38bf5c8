"""One fact per key out of several runs: the best is the value, and every run is kept.

A tool is run twice on purpose (another NUMA node, after a repair), and what differs between the runs is a finding.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dgxcheck.reading import Json

MOST_RUNS = 64
TOLD = ("tool", "method", "name", "sizes", "bdf", "devices", "hosts")
"""What a run says only where the fact that stands in front says something else."""
KEPT = ("value", "failed", "skipped", "from")
LOWER_IS_BETTER = frozenset(("us", "ns", "ms"))


def together(facts: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    """Facts by key, in the order of their first appearance.

    A run that failed stays in front of one that passed: what was seen to be broken is not mended by a second try.
    Of answers without a number (``access``) a ``false`` stays in front, and equal ones are one. Wrong words: the most.
    """
    runs: dict[str, list[Json]] = {}
    for key, fact in facts:
        runs.setdefault(key, []).append(fact)
    return {key: _one(several) for key, several in runs.items()}


def _one(several: list[Json]) -> Json:
    objects = [fact for fact in several if isinstance(fact, dict)]
    if len(several) == 1 or len(objects) != len(several):
        return several[0]
    best = objects[0]
    for fact in objects[1:]:
        if _rank(fact) > _rank(best):
            best = fact
    if not _figure(best) and all(_answer(fact) == _answer(best) for fact in objects):
        return objects[0]
    kept = [run for fact in objects for run in _runs(fact, best)][:MOST_RUNS]
    return {**best, "runs": kept}


def _figure(fact: Mapping[str, Json]) -> bool:
    value = fact.get("value")
    return isinstance(value, int | float) and not isinstance(value, bool)


def _answer(fact: Mapping[str, Json]) -> tuple[Json, ...]:
    return tuple(fact.get(name) for name in ("value", "failed", "skipped", "detail", "bdf"))


def _rank(fact: Mapping[str, Json]) -> tuple[int, float]:
    value = fact.get("value")
    if "failed" in fact:
        return 3, 0.0
    if isinstance(value, bool):
        return 2, float(not value)
    if isinstance(value, int | float):
        return 2, -float(value) if fact.get("unit") in LOWER_IS_BETTER else float(value)
    return 0, 0.0


def _runs(fact: Mapping[str, Json], best: Mapping[str, Json]) -> list[Json]:
    """The runs that a fact stands for: its own list where it was merged before. What is said once is not said again."""
    before = fact.get("runs")
    runs = before if isinstance(before, list) else [{name: fact[name] for name in KEPT if name in fact}]
    told: list[Json] = []
    for run in runs:
        if isinstance(run, dict):
            whole = {**{name: fact[name] for name in TOLD if name in fact}, **run}
            told.append({name: one for name, one in whole.items() if name in KEPT or one != best.get(name)})
    return told
