"""What of a GPU an Xid is about: NVIDIA's Xid catalogue, https://docs.nvidia.com/deploy/xid-errors/."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.facts.missing import Missing

NVLINK_XIDS = (74, 136, *range(144, 151), 155)
_PARTS: dict[str, tuple[int, ...]] = {
    "memory": (48, 63, 64, 92, 94, 95, 140, 171, 172),
    "NVLink": NVLINK_XIDS,
    "": (79,),
}
"""63 and 64 are page retirement up to Volta and row remapping from Ampere on: memory in both. 136 is a failed training
of NVLinks (``ALI_TRAINING_FAIL``)."""


def part_of(box: Box, bdf: str | None) -> str:
    """The part that the GPU's Xids since the last reset name first, in this order; empty for the GPU as a whole."""
    log = box.snapshot.kernel_log
    xids = () if isinstance(log, Missing) else log.xids
    logged = {xid.number for xid in xids if xid.bdf == bdf and not xid.past}
    return next((part for part, numbers in _PARTS.items() if logged & {*numbers}), "")
