"""Readings that exclude each other, with where each was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json, question
from dgxcheck.facts.nvml_quantities import GROUPS
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Device

Facts = Mapping[str, object]
"""Of one device by path, as ``engine/device_facts.py`` gives them."""
_GROUP_OF = {
    "gpu": "identity", "gpu_board": "board", "gpu_pcie": "pcie", "gpu_memory": "memory", "gpu_clocks": "clocks",
    "gpu_power": "power", "gpu_thermal": "thermal", "gpu_modes": "modes", "gpu_processes": "activity",
    "gpu_ecc": "ecc", "gpu_counters": "counters",
}  # fmt: skip
"""The group of NVML quantities by the snapshot's field."""
_FILES = {"link_gen": "current_link_speed", "link_width": "current_link_width", "max_link_gen": "max_link_speed"}
_MOST = 3


class Contradiction(Record, kw_only=False):
    """What excludes what, in a few words, and the readings."""

    text: str
    evidence: tuple[Evidence, ...]


ReadingRule = Callable[[Box, Device, Facts], Iterable[Contradiction]]
"""The contradictions of one GPU; what was not read contradicts nothing."""


def number(facts: Facts, path: str) -> float | None:
    """A fact as a number; None for a gap and for all else."""
    value = facts.get(path)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def reading(facts: Facts, path: str, bdf: str | None) -> Evidence:
    """Where a fact was read, and its value."""
    value = facts.get(path)
    plain: Json = value if isinstance(value, int | float | str | bool) else str(value)
    return Evidence(_where(path, bdf or ""), plain)


def _where(path: str, bdf: str) -> str:
    field, _, name = path.partition(".")
    if field == "pci":
        return f"/sys/bus/pci/devices/{bdf}/{_FILES.get(name, name)}"
    for quantity in GROUPS[_GROUP_OF[field]] if field in _GROUP_OF else ():
        if name in quantity.facts:
            return question(quantity.function, bdf, *quantity.args)
    return f"{bdf} {path}"


def judged(found: Sequence[Contradiction], status: Status = Status.UNKNOWN) -> Judgement:
    """One judgement of all that was found; a warning has the fault ``contradiction``."""
    if not found:
        return Judgement(Status.PASS, "the readings agree", 0, 0, "contradictions")
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    message = "; ".join(each.text for each in found[:_MOST]) + more
    evidence = tuple({fact.where: fact for each in found for fact in each.evidence}.values())
    fault = Fault.CONTRADICTION if status is Status.WARN else None
    return Judgement(status, message, len(found), 0, "contradictions", evidence, fault=fault)
