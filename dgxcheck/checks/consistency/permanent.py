"""Counters that never go back: what a board has written down for good."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.consistency.contradiction import Contradiction, Facts
from dgxcheck.checks.engine.box import Box, Growth, row_of
from dgxcheck.checks.engine.finding import Evidence
from dgxcheck.topology.model import Device

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
