"""Readings of a GPU that exclude each other: with its load, and with what it wrote down for good; where it was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from dgxcheck.checks.engine.box import Box, Growth, row_of
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


_BUSY = "gpu_processes.gpu_percent"
_FULL = 99
_STATE, _CLOCK, _HIGHEST = "gpu_clocks.performance_state", "gpu_clocks.current.sm", "gpu_clocks.max.sm"
_REASONS, _POWER, _LIMIT = "gpu_counters.reasons_mask", "gpu_power.usage_mw", "gpu_power.enforced_limit_mw"
GPU_IDLE = 0x1
"""``nvmlClocksEventReasonGpuIdle``"""
_LOW_STATE = 8
_IDLE_SHARE = 0.03
"""Of the power limit: no board draws so little, not even idle (V100: 25 of 300 W)."""


def at_load(_: Box, gpu: Device, facts: Facts) -> Iterator[Contradiction]:
    """Fully utilised, and idle by its performance state, clocks or power."""
    busy = number(facts, _BUSY)
    if busy is None or busy < _FULL:
        return
    state, clock, highest = number(facts, _STATE), number(facts, _CLOCK), number(facts, _HIGHEST)
    power, limit, reasons = number(facts, _POWER), number(facts, _LIMIT), number(facts, _REASONS)
    if state is not None and state >= _LOW_STATE:
        yield _while_busy(f"performance state P{state:g}", facts, gpu, _STATE)
    if reasons is not None and int(reasons) & GPU_IDLE:
        yield _while_busy("clocks down because the GPU is idle", facts, gpu, _REASONS)
    if clock is not None and highest is not None and reasons == 0 and clock < highest / 3 and (state or 0) < _LOW_STATE:
        yield _while_busy(f"SM clock {clock:g} of {highest:g} MHz without a reason", facts, gpu, _CLOCK)
    if power is not None and limit is not None and 0 < power < limit * _IDLE_SHARE:
        yield _while_busy(f"power draw {power / 1000:g} W", facts, gpu, _POWER)


def _while_busy(text: str, facts: Facts, gpu: Device, path: str) -> Contradiction:
    evidence = (reading(facts, path, gpu.bdf), reading(facts, _BUSY, gpu.bdf))
    return Contradiction(f"{text} at {number(facts, _BUSY):g} % utilisation", evidence)


PERMANENT = ("retired_single_bit", "retired_double_bit", "remapped_corrected", "remapped_uncorrected", "remap_failed")
"""Pages and rows are given up for the life of the board; nvidia-smi resets error counters alone."""


def fallen(box: Box, gpu: Device, _: Facts) -> Iterator[Contradiction]:
    """Fewer at the second reading than at the first."""
    if not isinstance(box.growth, Growth):
        return
    old, new = (row_of(facts.gpu_ecc, gpu.bdf) for facts in (box.growth.old, box.growth.new))
    for name in PERMANENT:
        before, after = _count(getattr(old, name, None)), _count(getattr(new, name, None))
        if before is not None and after is not None and after < before:
            words = name.replace("_", " ")
            text = f"{words}: {after} {box.growth.how}, {before} before"
            yield Contradiction(text, (Evidence(f"{gpu.bdf} {words}", [before, after]),))


def _count(fact: object) -> int | None:
    if isinstance(fact, tuple):
        return len(fact)
    return fact if isinstance(fact, int) else None
