"""How much of what is expected of a GPU is there: a function of box and GPU for each expectation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dgxcheck.checks.engine.box import Box, row_of
from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.checks.gpu.clocks import slowdown
from dgxcheck.facts.gpu import GpuEcc
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvlink import NvLink
from dgxcheck.score.absent import hidden_gpus
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import hops_above

MIB = 1 << 20
Measure = Callable[[Box, Device], "int | float | Missing"]


def _row(box: Box, gpu: Device, facts: str) -> Any:
    row = row_of(getattr(box.snapshot, facts), gpu.bdf)
    return Missing(Gap.ABSENT, str(gpu.bdf), row.message) if isinstance(row, Judgement) else row


def fact(facts: str, *names: str, per: float = 1) -> Measure:
    """A field of a GPU's record, in so many of its units."""

    def measured(box: Box, gpu: Device) -> int | float | Missing:
        value = _row(box, gpu, facts)
        for name in names:
            value = value if isinstance(value, Missing) else getattr(value, name)
        return value if isinstance(value, Missing) else value / per

    return measured


def unheld(box: Box, gpu: Device) -> int | Missing:
    """1 while no slowdown holds the clocks down, that of software for heat's sake too."""
    clocks = _row(box, gpu, "gpu_clocks")
    reasons = clocks if isinstance(clocks, Missing) else clocks.reasons
    return reasons if isinstance(reasons, Missing) else int(not slowdown(reasons.mask))


def pages_left(box: Box, gpu: Device) -> int | Missing:
    """1 while the table of retired pages has room."""
    ecc: GpuEcc | Missing = _row(box, gpu, "gpu_ecc")
    if isinstance(ecc, Missing):
        return ecc
    counts = [each if isinstance(each, Missing) else len(each) for each in
              (ecc.retired_single_bit, ecc.retired_double_bit)]  # fmt: skip
    known = sum(count for count in counts if not isinstance(count, Missing))
    if known >= box.settings.limit("ecc.retired-pages-fail"):
        return 0
    return next((count for count in counts if isinstance(count, Missing)), 1)


def rows_left(box: Box, gpu: Device) -> int | Missing:
    ecc = _row(box, gpu, "gpu_ecc")
    failed = ecc if isinstance(ecc, Missing) else ecc.remap_failed
    return failed if isinstance(failed, Missing) else int(not failed)


def sound(box: Box, gpu: Device) -> int | Missing:
    ecc = _row(box, gpu, "gpu_ecc")
    errors = ecc if isinstance(ecc, Missing) else ecc.volatile_uncorrected.total
    return errors if isinstance(errors, Missing) else int(errors == 0)


def narrowest(box: Box, gpu: Device) -> int | Missing:
    """Lanes of the narrowest link up to the root bus."""
    return _least(box, gpu, "width")


def slowest(box: Box, gpu: Device) -> int | Missing:
    """The lowest generation that any link up to the root bus can be trained to."""
    return _least(box, gpu, "max_gen")


def _least(box: Box, gpu: Device, what: str) -> int | Missing:
    if isinstance(gpu.path, Missing):
        return gpu.path
    found = [getattr(hop, what) for hop in hops_above(gpu.path, box.topology.functions) if not hop.unjudged]
    silent = [each for each in found if isinstance(each, Missing)]
    nothing = Missing(Gap.ABSENT, str(gpu.bdf), "no bridge is visible above it")
    return silent[0] if silent else min(found, default=nothing)


def links(box: Box, gpu: Device) -> int | Missing:
    """NVLinks that are up; those to hidden GPUs may be down."""
    rows = _links_of(box, gpu)
    if isinstance(rows, Missing):
        return rows
    silent = [row.up for row in rows if isinstance(row.up, Missing)]
    up = sum(row.up is True for row in rows)
    due = box.choice.number("nvlink.links") if box.choice else None
    unseen = hidden_gpus(box) if due is not None and up < due.value else None
    return silent[0] if silent else up if unseen is None else unseen


def nvlink_generation(box: Box, gpu: Device) -> int | Missing:
    """The lowest generation among the NVLinks that are up; 0 where none is and no GPU is hidden."""
    rows = _links_of(box, gpu)
    if isinstance(rows, Missing):
        return rows
    up = [row.generation for row in rows if row.up is True]
    silent = [each for each in up if isinstance(each, Missing)]
    unseen = hidden_gpus(box) if not up else None
    lowest = min((n for n in up if isinstance(n, int)), default=0)
    return silent[0] if silent else lowest if unseen is None else unseen


def _links_of(box: Box, gpu: Device) -> tuple[NvLink, ...] | Missing:
    rows = box.snapshot.nvlink
    return rows if isinstance(rows, Missing) else tuple(row for row in rows if row.bdf == gpu.bdf)
