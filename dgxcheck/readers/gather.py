"""The facts of several outputs as those of one box, and what of them cannot be said of one box at one time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record
from dgxcheck.readers.merge import merge_runs
from dgxcheck.readers.model import Imported

INDEX = "nvml nvmlDeviceGetHandleByIndex"
COUNT = "nvml nvmlDeviceGetCount"
INIT = "nvml nvmlInit"
DRIVER = "nvml nvmlSystemGetDriverVersion"


class Part(Record, kw_only=False):
    """An output, and the name of the file that it stood in."""

    file: str
    found: Imported


class Gathered(Record, kw_only=False):
    """Facts by key, and the parts that contradict an earlier one."""

    facts: dict[str, Json]
    refused: tuple[Part, ...]


def gathered(parts: Sequence[Part]) -> Gathered:
    """One fact per key: measurements of several runs are merged, of all else the first counts.

    A matrix that differs from an earlier one, a second dump of the same GPU by the same tool, or a dump of another
    driver is of another box or another time, and is left out whole.
    """
    measured: list[tuple[str, Json]] = []
    taken: dict[str, Json] = {}
    by_tool: dict[str, dict[str, Json]] = {}
    refused: list[Part] = []
    listed: list[list[str]] = []
    for part in parts:
        others = {key: fact for key, fact in part.found.facts.items() if not key.startswith("measure ")}
        bdfs = [str(fact) for key, fact in others.items() if key.startswith(INDEX)]
        others = {key: fact for key, fact in others.items() if not key.startswith(INDEX)}
        mine = by_tool.setdefault(part.found.tool, {})
        known = taken if all(key.startswith(("stated ", DRIVER)) for key in others) else {**mine, **_driver(taken)}
        if any(known.get(key, fact) != fact for key, fact in others.items()):
            refused.append(part)
            continue
        measured += [
            (key, _from(fact, part.file))
            for key, fact in part.found.facts.items()
            if key not in others and not key.startswith(INDEX)
        ]
        mine |= others
        for key, fact in others.items():
            taken.setdefault(key, fact)
        if bdfs:
            listed.append(bdfs)
    return Gathered({**merge_runs(measured), **taken, **_list(listed)}, tuple(refused))


def _driver(taken: Mapping[str, Json]) -> dict[str, Json]:
    return {DRIVER: taken[DRIVER]} if DRIVER in taken else {}


def _list(listed: Sequence[Sequence[str]]) -> dict[str, Json]:
    """NVML's list of GPUs: in the order of the one dump, or of the bus where several show some each."""
    bdfs = list(dict.fromkeys(bdf for each in listed for bdf in each))
    if any(len(each) != len(bdfs) for each in listed):
        bdfs.sort(key=lambda bdf: (len(bdf), bdf))
    if not bdfs:
        return {}
    return {INIT: True, COUNT: len(bdfs)} | {f"{INDEX} {number}": bdf for number, bdf in enumerate(bdfs)}


def _from(fact: Json, file: str) -> Json:
    """A fact's ``from`` with the file before the line."""
    if not isinstance(fact, dict):
        return fact
    whole = dict(fact)
    if isinstance(said := whole.get("from"), str):
        whole["from"] = f"{file}, {said}"
    if isinstance(runs := whole.get("runs"), list):
        whole["runs"] = [_from(run, file) for run in runs]
    return whole
