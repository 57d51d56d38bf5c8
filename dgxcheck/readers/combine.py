"""Combine the facts of several outputs into those of one box, refusing outputs that contradict each other.

Merge the facts of several runs into one per key: the best is the value, and every run is kept.

Runs of one tool with one method go to ``runs``: a difference between them is a finding. Runs of another tool or another
method of copying, which may differ, go to ``also``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from dgxcheck.facts.missing import Json, is_number, items_of, members_of
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered
from dgxcheck.readers.listing import INIT, OF_LIST, gpu_list, placed
from dgxcheck.readers.model import REPORT, Imported, ToolPart, add_report
from dgxcheck.readers.values import LEAST_BYTES, imported, relocated
from dgxcheck.readers.wording import rows

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
    return {key: _merged(all_runs) for key, all_runs in gathered(facts).items()}


def _merged(facts: list[Json]) -> Json:
    objects = [fact for fact in facts if isinstance(fact, dict)]
    if len(facts) == 1 or len(objects) != len(facts):
        return facts[0]
    best = max(objects, key=_rank)
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
    return is_number(fact.get("value"))


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
    before = [members_of(run) for name in ("runs", "also") for run in items_of(fact.get(name))]
    itself = [] if isinstance(fact.get("runs"), list) else [itself_full]
    return [*itself, *({**common, **run} for run in before)]


def _same_setup(run: Mapping[str, Json], best: Mapping[str, Json]) -> bool:
    """Did a run measure the same thing in the same way as the best one?"""
    return _has_number(run) and _has_number(best) and all(run.get(name) == best.get(name) for name in SAME)


def _difference(run: Mapping[str, Json], best: Mapping[str, Json]) -> dict[str, Json]:
    """A run without the members that it shares with the best one."""
    differing = [name for name in (*SAME, "sizes") if name in run and run[name] != best.get(name)]
    return {name: run[name] for name in (*RESULT, *differing) if name in run}


class Figures(ToolPart):
    """What a tool measured, run by run."""

    def __init__(self, tool: str) -> None:
        super().__init__(tool)
        self.measured: list[tuple[str, Json]] = []
        """Of each run key and fact, not merged yet."""

    def measure(
        self, what: str, value: Json, unit: str, line: int, method: str, message: int = LEAST_BYTES, /, **more: Json
    ) -> None:
        """One run of ``p2p 0 1``; its figure only counts for a ``message`` of enough bytes."""
        fact = imported(value, unit, tool=self.tool, line=line, method=method, **more)
        if message < LEAST_BYTES:
            del fact["value"]
            fact |= {"skipped": "no-reference", "detail": f"messages of at most {message} bytes, too small for a rate"}
        self.measured.append((f"measure {what}", fact))

    def device(self, number: int, line: int, **more: Json) -> None:
        """A GPU by CUDA's number, with its ``bdf`` or ``name``."""
        self.measure(f"device {number}", None, "", line, "CUDA order", **more)

    def imported(self, more: Mapping[str, Json] = {}, sound: str = "") -> tuple[Imported, ...]:
        """Nothing where nothing was measured, nor any result found."""
        return super().imported({**merge_runs(self.measured), **more}, sound) if self.measured or self else ()


def kinds(tool: str) -> dict[str, str]:
    """What the names that a tool prints measure."""
    return {row["name"]: row["kind"] for row in rows("benchmarks/kinds", tool)}


def by_size(steps: Iterable[tuple[int, float, int]], most: int = MOST_RUNS) -> dict[str, Json]:
    """Of size, figure and line of each the first two in ``sizes``, where there are several."""
    sizes: list[Json] = [[size, figure] for size, figure, _ in sorted(steps)[-most:]]
    return {"sizes": sizes} if len(sizes) > 1 else {}


NAMES = "names "
"""Begins the key of what a directory holds; a tool may show a part of it."""
_MEASURED = "measure "
_NO_ANSWERS = (_MEASURED, *OF_LIST, NAMES, REPORT)
_OWN = ("nvml nvmlDeviceGetUUID ", "nvml nvmlDeviceGetSerial ")
_LASTING = (*_OWN, "nvml nvmlDeviceGetName ", "nvml nvmlDeviceGetVbiosVersion ")
_READ_AGAIN = ("nvml nvmlDeviceGet", "nvml nvmlSystemGetCudaDriverVersion")
"""A container may bring a CUDA of its own."""
DRIVER = "nvml nvmlSystemGetDriverVersion"
_LOAD, _STATE = "nvml nvmlDeviceGetUtilizationRates ", "nvml nvmlDeviceGetPerformanceState "


class Part(Record, kw_only=False):
    """An imported output, and the name of its file."""

    file: str
    found: Imported
    host: str = ""
    """Whose output it is; empty where the text does not tell."""


class Combined(Record, kw_only=False):
    """Facts by key, and the parts refused because they contradict an earlier one."""

    facts: dict[str, Json]
    refused: tuple[Part, ...]
    again: tuple[Part, ...] = ()
    """Parts that show the same GPUs another time, with other readings; the first one counts."""


def combine(parts: Sequence[Part], names: Mapping[str, str] = {}, one_box: bool = False) -> Combined:
    """One fact per key: measurements of several runs are merged, of other facts the first is kept.

    ``names`` are what facts call the files that they are from, whose own names may tell whose machine it is.

    A part is refused if its matrix, its dump of a GPU by the same tool, or its driver version differs from an earlier
    one: it comes from another box or another time. Of a ``one_box`` nothing is refused but what names other GPUs or
    another driver: a program that collects outputs asks for some facts twice. The utilisation of a GPU counts beside
    the performance state that its own part shows: another part may be of an idle GPU.
    """
    measured: list[tuple[str, Json]] = []
    first: dict[str, Json] = {}
    at_load: dict[str, Json] = {}
    by_tool: dict[str, dict[str, Json]] = {}
    refused: list[Part] = []
    again: list[Part] = []
    gpu_lists: list[dict[str, Json]] = []
    reports: dict[str, Json] = {}
    every = placed(part.found.facts for part in parts)
    listed = gathered((key, fact) for facts in every for key, fact in facts.items()
                      if key.startswith(NAMES) and isinstance(fact, list))  # fmt: skip
    for part, facts in zip(parts, every, strict=True):
        answers = {key: fact for key, fact in facts.items() if not key.startswith(_NO_ANSWERS)}
        of_tool = by_tool.setdefault(part.found.tool, {})
        driver = {DRIVER: first[DRIVER]} if DRIVER in first else {}
        earlier = first if all(key.startswith(("stated ", DRIVER)) for key in answers) else of_tool | driver
        differing = {key for key, fact in answers.items() if earlier.get(key, fact) != fact}
        if differing and not (one_box and _are_readings(differing)):
            (again if _same_gpus(answers, earlier) else refused).append(part)
            continue
        place = partial("{}, {}".format, names.get(part.file, part.file))
        measured += [(key, relocated(fact, place)) for key, fact in facts.items() if key.startswith(_MEASURED)]
        for key, fact in facts.items():
            if key.startswith(REPORT):
                add_report(reports, key, fact)
        of_tool |= answers
        at_load = {key: answers.get(key.replace(_LOAD, _STATE)) for key in answers if key.startswith(_LOAD)} | at_load
        for key, fact in answers.items():
            first.setdefault(key, fact)
        gpu_lists.append({key: fact for key, fact in facts.items() if key.startswith(OF_LIST)})
    for key, state in at_load.items():
        if first.get(key.replace(_LOAD, _STATE)) != state:
            del first[key]
    named: dict[str, Json] = {
        key: [*dict.fromkeys(str(name) for names in lists for name in names)] for key, lists in listed.items()
    }
    failed = {INIT: first[INIT]} if isinstance(first.get(INIT), dict) else {}
    found = {**merge_runs(measured), **first, **reports, **named, **gpu_list(gpu_lists), **failed}
    return Combined(found, tuple(refused), tuple(again))


def _same_gpus(answers: Mapping[str, Json], earlier: Mapping[str, Json]) -> bool:
    """Do two dumps that differ show the same GPUs? Bus ids and names are alike in all nodes of a cluster."""
    answered_before = any(key.startswith(_OWN) and key in earlier for key in answers)
    return answered_before and _are_readings(key for key, fact in answers.items() if earlier.get(key, fact) != fact)


def _are_readings(keys: Iterable[str]) -> bool:
    """Are these answers that differ from one moment to the next?"""
    return all(key.startswith(_READ_AGAIN) and not key.startswith(_LASTING) for key in keys)


