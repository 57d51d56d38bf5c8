"""What a cause blames, in terms that do not change with the numbers of the GPUs."""

from __future__ import annotations

from typing import Any, NamedTuple

from judging import judged
from moved_faults import at, overlay
from moving import Move


class Blamed(NamedTuple):
    """One component, and the findings about it."""

    kind: str
    whose: str
    """Its bus id, of a pair that of the first GPU; else its name."""
    part: str | None
    shared_by: frozenset[str]
    """The bus ids of both GPUs of a pair, and of all that is below a PCIe link."""
    explains: frozenset[str]
    action: str
    """The first."""


def blamed(document: dict[str, Any]) -> list[Blamed]:
    """Of each cause."""
    subjects = [finding["subject"] for finding in document["findings"]]
    named = {subject["name"]: subject["bdf"] for subject in subjects if subject["kind"] in ("gpu", "hca")}
    found = []
    for cause in document["causes"]:
        its = cause["component"]
        shared_by, explains = frozenset(named[name] for name in its["shared_by"]), frozenset(cause["explains"])
        whose = its["bdf"] or its["name"]
        found.append(Blamed(its["kind"], whose, its["part"], shared_by, explains, cause["action"]["action"]))
    return found


def due(fault: str, move: Move) -> Blamed:
    """What the one cause of a shipped fault blames, moved along."""
    (here,) = blamed(judged(fault)[1])
    there = sorted(map(move.text, here.shared_by), key=[*move.box.gpus, *move.box.hcas].index)
    whose = there[0] if here.kind in ("nvlink", "path") else move.text(here.whose)
    explains = frozenset(map(move.finding, here.explains))
    return here._replace(whose=whose, shared_by=frozenset(there), explains=explains)


def places(fault: str, move: Move) -> set[str]:
    """The devices that a moved fault is at, or that show it."""
    return {*map(move.text, at(move.box, overlay(fault)))}
