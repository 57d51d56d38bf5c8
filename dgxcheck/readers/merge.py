"""One fact per key out of several runs: the best is the value, and every run is kept.

A tool is run twice on purpose (another NUMA node, after a repair), and what differs between such runs is a finding. Two
tools, or two ways of copying, may differ without one: those are kept beside, in ``also``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dgxcheck.facts.missing import Json

MOST_RUNS = 64
SAME = ("tool", "method", "name", "devices", "hosts", "bdf")
"""What two runs share that are to give the same figure."""
SAID = ("value", "failed", "skipped", "from")
BY_KERNEL = "SM kernel"
LOWER_IS_BETTER = frozenset(("us", "ns", "ms"))


def merge_runs(facts: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    """Facts by key, in the order of their first appearance; ``runs`` [{"value", "from"}, ..] where the one in front was
    measured several times, ``also`` [{"value", "from", "method", ..}, ..] where it was measured otherwise too.

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
    every = [run for fact in objects for run in _runs(fact)]
    same: list[Json] = [_short(run, best) for run in every if _again(run, best)]
    other: list[Json] = [_short(run, best) for run in every if not _again(run, best)]
    alone = {name: one for name, one in best.items() if name not in ("runs", "also")}
    if len(same) > 1:
        alone["runs"] = same[:MOST_RUNS]
    if not _figure(best):
        other = [run for run in other if run != _short(best, best)]
    return {**alone, "also": other[:MOST_RUNS]} if other else alone


def _figure(fact: Mapping[str, Json]) -> bool:
    value = fact.get("value")
    return isinstance(value, int | float) and not isinstance(value, bool)


def _answer(fact: Mapping[str, Json]) -> tuple[Json, ...]:
    return tuple(fact.get(name) for name in ("value", "failed", "skipped", "detail", "bdf"))


def _rank(fact: Mapping[str, Json]) -> tuple[int, bool, float]:
    """What stands in front. Copies by the copy engine come before those by a kernel: the references are of these."""
    value = fact.get("value")
    engine = not str(fact.get("method")).startswith(BY_KERNEL)
    if "failed" in fact:
        return 3, engine, 0.0
    if isinstance(value, bool):
        return 2, engine, float(not value)
    if isinstance(value, int | float):
        return 2, engine, -float(value) if fact.get("unit") in LOWER_IS_BETTER else float(value)
    return 0, engine, 0.0


def _runs(fact: Mapping[str, Json]) -> list[dict[str, Json]]:
    """The runs that a fact stands for, each in full: its own lists where it was merged before."""
    whole = {name: fact[name] for name in (*SAID, *SAME, "sizes") if name in fact}
    common = {name: one for name, one in whole.items() if name not in SAID and name != "sizes"}
    merged = [fact.get("runs"), fact.get("also")]
    before = [run for runs in merged if isinstance(runs, list) for run in runs if isinstance(run, dict)]
    itself = [] if isinstance(fact.get("runs"), list) else [whole]
    return [*itself, *({**common, **run} for run in before)]


def _again(run: Mapping[str, Json], best: Mapping[str, Json]) -> bool:
    """Whether a run measured the same thing in the same way as the one in front."""
    return _figure(run) and _figure(best) and all(run.get(name) == best.get(name) for name in SAME)


def _short(run: Mapping[str, Json], best: Mapping[str, Json]) -> dict[str, Json]:
    """A run without what the fact in front says of all."""
    told = [name for name in (*SAME, "sizes") if name in run and run[name] != best.get(name)]
    return {name: run[name] for name in (*SAID, *told) if name in run}
