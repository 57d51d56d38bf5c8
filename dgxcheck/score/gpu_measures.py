"""The measure of each expectation of a GPU: a function of box and GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.gpu.clocks import slowdown
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvlink import NvLink
from dgxcheck.score.absent import hidden_gpus
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import hops_above

MIB = 1 << 20
Measure = Callable[[Box, Device], "int | float | Missing"]


def fact(*names: str, per: float = 1) -> Measure:
    """A measure: a field of the GPU's records (``power``, ``enforced_limit_mw``) divided by ``per``."""

    def measured(box: Box, gpu: Device) -> int | float | Missing:
        value: Any = box.gpu(gpu)
        for name in names:
            value = value if isinstance(value, Missing) else getattr(value, name)
        return value if isinstance(value, Missing) else value / per

    return measured


def not_throttled(box: Box, gpu: Device) -> int | Missing:
    """1 if no hardware or thermal slowdown holds the clocks down, else 0."""
    clocks = box.gpu(gpu).clocks
    reasons = clocks if isinstance(clocks, Missing) else clocks.reasons
    return reasons if isinstance(reasons, Missing) else int(not slowdown(reasons.mask))


def pages_left(box: Box, gpu: Device) -> int | Missing:
    """1 if the table of retired pages has room, else 0."""
    ecc = box.gpu(gpu).ecc
    if isinstance(ecc, Missing):
        return ecc
    pages = (ecc.retired_single_bit, ecc.retired_double_bit)
    retired = sum(len(addresses) for addresses in pages if not isinstance(addresses, Missing))
    if retired >= box.settings.limit("ecc.retired-pages-fail"):
        return 0
    return next((addresses for addresses in pages if isinstance(addresses, Missing)), 1)


def rows_left(box: Box, gpu: Device) -> int | Missing:
    """1 if no row remapping has failed, else 0."""
    ecc = box.gpu(gpu).ecc
    failed = ecc if isinstance(ecc, Missing) else ecc.remap_failed
    return failed if isinstance(failed, Missing) else int(not failed)


def no_uncorrected_errors(box: Box, gpu: Device) -> int | Missing:
    """1 if the volatile counter of uncorrected memory errors is 0, else 0."""
    ecc = box.gpu(gpu).ecc
    errors = ecc if isinstance(ecc, Missing) else ecc.volatile_uncorrected.total
    return errors if isinstance(errors, Missing) else int(errors == 0)


def narrowest(box: Box, gpu: Device) -> int | Missing:
    """Lanes of the narrowest link up to the root bus."""
    return _least(box, gpu, "width")


def slowest(box: Box, gpu: Device) -> int | Missing:
    """The lowest PCIe generation supported by the links up to the root bus."""
    return _least(box, gpu, "max_gen")


def _least(box: Box, gpu: Device, member: str) -> int | Missing:
    if isinstance(gpu.path, Missing):
        return gpu.path
    values = [getattr(hop, member) for hop in hops_above(gpu.path, box.topology.functions) if not hop.skip_reason]
    gap = next((value for value in values if isinstance(value, Missing)), None)
    nothing = Missing(Gap.ABSENT, str(gpu.bdf), "no bridge visible above the GPU")
    return gap if gap is not None else min(values, default=nothing)


def links(box: Box, gpu: Device) -> int | Missing:
    """NVLinks that are up; Missing if fewer than expected and some GPUs are hidden."""
    rows = _links_of(box, gpu)
    if isinstance(rows, Missing):
        return rows
    gap = next((row.up for row in rows if isinstance(row.up, Missing)), None)
    up = sum(row.up is True for row in rows)
    expected = box.choice.number("nvlink.links") if box.choice else None
    hidden = hidden_gpus(box) if expected is not None and up < expected.value else None
    return gap if gap is not None else up if hidden is None else hidden


def nvlink_generation(box: Box, gpu: Device) -> int | Missing:
    """The lowest generation among the NVLinks that are up; 0 if none is up and no GPU is hidden."""
    rows = _links_of(box, gpu)
    if isinstance(rows, Missing):
        return rows
    generations = [row.generation for row in rows if row.up is True]
    unknown = [] if generations else [row.up for row in rows]
    gap = next((each for each in (*generations, *unknown) if isinstance(each, Missing)), None)
    hidden = hidden_gpus(box) if not generations else None
    lowest = min((number for number in generations if isinstance(number, int)), default=0)
    return gap if gap is not None else lowest if hidden is None else hidden


def _links_of(box: Box, gpu: Device) -> tuple[NvLink, ...] | Missing:
    rows = box.snapshot.nvlink
    return rows if isinstance(rows, Missing) else tuple(row for row in rows if row.bdf == gpu.bdf)
