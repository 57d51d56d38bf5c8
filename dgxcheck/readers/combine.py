"""Combine the facts of several outputs into those of one box, refusing outputs that contradict each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.readers.listing import INIT, OF_LIST, gpu_list, placed
from dgxcheck.readers.merge import merge_runs
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import REPORT, add_report

NAMES = "names "
"""Begins the key of what a directory holds; a tool may show a part of it."""
_OWN = ("nvml nvmlDeviceGetUUID ", "nvml nvmlDeviceGetSerial ")
_LASTING = (*_OWN, "nvml nvmlDeviceGetName ", "nvml nvmlDeviceGetVbiosVersion ")
_READ_AGAIN = ("nvml nvmlDeviceGet", "nvml nvmlSystemGetCudaDriverVersion")
"""A container may bring a CUDA of its own."""
DRIVER = "nvml nvmlSystemGetDriverVersion"


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


def combine(parts: Sequence[Part], names: Mapping[str, str] | None = None, one_box: bool = False) -> Combined:
    """One fact per key: measurements of several runs are merged, of other facts the first is kept.

    ``names`` are what facts call the files that they are from, whose own names may tell whose machine it is.

    A part is refused if its matrix, its dump of a GPU by the same tool, or its driver version differs from an earlier
    one: it comes from another box or another time. Of a ``one_box`` nothing is refused but what names other GPUs or
    another driver: a program that collects outputs asks for some facts twice.
    """
    measured: list[tuple[str, Json]] = []
    first: dict[str, Json] = {}
    by_tool: dict[str, dict[str, Json]] = {}
    refused: list[Part] = []
    again: list[Part] = []
    lists: dict[str, list[str]] = {}
    gpu_lists: list[dict[str, Json]] = []
    reports: dict[str, Json] = {}
    for part, facts in zip(parts, placed(part.found.facts for part in parts), strict=True):
        answers = {key: fact for key, fact in facts.items() if not key.startswith("measure ")}
        for key, fact in answers.items():
            if key.startswith(NAMES) and isinstance(fact, list):
                lists.setdefault(key, []).extend(map(str, fact))
        answers = {key: fact for key, fact in answers.items() if not key.startswith((*OF_LIST, NAMES, REPORT))}
        of_tool = by_tool.setdefault(part.found.tool, {})
        earlier = (
            first if all(key.startswith(("stated ", DRIVER)) for key in answers) else {**of_tool, **_driver(first)}
        )
        differing = {key for key, fact in answers.items() if earlier.get(key, fact) != fact}
        if differing and not (one_box and _are_readings(differing)):
            (again if _same_gpus(answers, earlier) else refused).append(part)
            continue
        measured += [
            (key, _with_file(fact, (names or {}).get(part.file, part.file)))
            for key, fact in facts.items()
            if key not in answers and not key.startswith((*OF_LIST, NAMES, REPORT))
        ]
        for key, fact in facts.items():
            if key.startswith(REPORT):
                add_report(reports, key, fact)
        of_tool |= answers
        for key, fact in answers.items():
            first.setdefault(key, fact)
        gpu_lists.append({key: fact for key, fact in facts.items() if key.startswith(OF_LIST)})
    named: dict[str, Json] = {key: [*dict.fromkeys(listed)] for key, listed in lists.items()}
    failed = {INIT: first[INIT]} if isinstance(first.get(INIT), dict) else {}
    found = {**merge_runs(measured), **first, **reports, **named, **gpu_list(gpu_lists), **failed}
    return Combined(found, tuple(refused), tuple(again))


def _same_gpus(answers: Mapping[str, Json], earlier: Mapping[str, Json]) -> bool:
    """Do two dumps that differ show the same GPUs? Bus ids and names are alike in all nodes of a cluster."""
    known = any(key.startswith(_OWN) and key in earlier for key in answers)
    return known and _are_readings(key for key, fact in answers.items() if earlier.get(key, fact) != fact)


def _are_readings(keys: Iterable[str]) -> bool:
    """Are these answers that differ from one moment to the next?"""
    return all(key.startswith(_READ_AGAIN) and not key.startswith(_LASTING) for key in keys)


def _driver(facts: Mapping[str, Json]) -> dict[str, Json]:
    return {DRIVER: facts[DRIVER]} if DRIVER in facts else {}


def _with_file(fact: Json, file: str) -> Json:
    """A fact with its file in ``from``: ``FILE, line 12``."""
    if not isinstance(fact, dict):
        return fact
    located = dict(fact)
    if isinstance(line := located.get("from"), str):
        located["from"] = f"{file}, {line}"
    if isinstance(runs := located.get("runs"), list):
        located["runs"] = [_with_file(run, file) for run in runs]
    return located
