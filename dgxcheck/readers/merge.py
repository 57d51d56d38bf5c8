"""Merge the facts of several runs into one per key: the best is the value, and every run is kept.

Runs of one tool with one method go to ``runs``: a difference between them is a finding. Runs of another tool or another
method of copying, which may differ, go to ``also``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dgxcheck.facts.missing import Json

MOST_RUNS = 64
SAME = ("tool", "method", "name", "devices", "hosts", "bdf")
"""Members that are equal in runs that should give the same result."""
RESULT = ("value", "failed", "skipped", "from")
BY_KERNEL = "SM kernel"
LOWER_IS_BETTER = frozenset(("us", "ns", "ms"))


def merge_runs(facts: Iterable[tuple[str, Json]]) -> dict[str, Json]:
    """Facts by key, in order of first appearance: the best run, or a failed one.

    ``runs`` [{"value", "from"}, ..] are all runs with the same setup, ``also`` [{"value", "from", "method", ..}, ..]
    those with another. A failed run takes precedence over one that passed. Of answers without a number (``access``)
    ``false`` takes precedence and equal ones are merged; of counts of wrong words the highest.
    """
    runs: dict[str, list[Json]] = {}
    for key, fact in facts:
        runs.setdefault(key, []).append(fact)
    return {key: _merged(all_runs) for key, all_runs in runs.items()}


def _merged(facts: list[Json]) -> Json:
    objects = [fact for fact in facts if isinstance(fact, dict)]
    if len(facts) == 1 or len(objects) != len(facts):
        return facts[0]
    best = objects[0]
    for fact in objects[1:]:
        if _rank(fact) > _rank(best):
            best = fact
    if not _has_number(best) and all(_answer(fact) == _answer(best) for fact in objects):
        return objects[0]
    all_runs = [run for fact in objects for run in _runs(fact)]
    same: list[Json] = [_difference(run, best) for run in all_runs if _same_setup(run, best)]
    other: list[Json] = [_difference(run, best) for run in all_runs if not _same_setup(run, best)]
    merged = {name: member for name, member in best.items() if name not in ("runs", "also")}
    if len(same) > 1:
        merged["runs"] = same[:MOST_RUNS]
    if not _has_number(best):
        other = [run for run in other if run != _difference(best, best)]
    return {**merged, "also": other[:MOST_RUNS]} if other else merged


def _has_number(fact: Mapping[str, Json]) -> bool:
    value = fact.get("value")
    return isinstance(value, int | float) and not isinstance(value, bool)


def _answer(fact: Mapping[str, Json]) -> tuple[Json, ...]:
    return tuple(fact.get(name) for name in ("value", "failed", "skipped", "detail", "bdf"))


def _rank(fact: Mapping[str, Json]) -> tuple[int, bool, float]:
    """Sort key of precedence: failures, then results by copy engine (as in the references) before those by kernel."""
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
    """The runs of a fact, each with all its members; several if the fact is a merged one."""
    itself_full = {name: fact[name] for name in (*RESULT, *SAME, "sizes") if name in fact}
    common = {name: member for name, member in itself_full.items() if name not in RESULT and name != "sizes"}
    merged = [fact.get("runs"), fact.get("also")]
    before = [run for runs in merged if isinstance(runs, list) for run in runs if isinstance(run, dict)]
    itself = [] if isinstance(fact.get("runs"), list) else [itself_full]
    return [*itself, *({**common, **run} for run in before)]


def _same_setup(run: Mapping[str, Json], best: Mapping[str, Json]) -> bool:
    """Did a run measure the same thing in the same way as the best one?"""
    return _has_number(run) and _has_number(best) and all(run.get(name) == best.get(name) for name in SAME)


def _difference(run: Mapping[str, Json], best: Mapping[str, Json]) -> dict[str, Json]:
    """A run without the members that it shares with the best one."""
    differing = [name for name in (*SAME, "sizes") if name in run and run[name] != best.get(name)]
    return {name: run[name] for name in (*RESULT, *differing) if name in run}
