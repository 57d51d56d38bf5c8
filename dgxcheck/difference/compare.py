"""All differences between two looks at a machine, the worst first."""

from __future__ import annotations

from collections.abc import Iterable

from dgxcheck.difference import boards, counters, fabric, hardware, links, machine, measured, nvlinks
from dgxcheck.difference.matching import NOT_COMPARABLE, matched
from dgxcheck.difference.model import Compared, Difference, Kind, Side
from dgxcheck.facts.missing import Gap, Missing

SUBJECTS = (
    hardware.differences, links.differences, nvlinks.differences, fabric.differences, boards.differences,
    counters.differences, measured.differences, machine.differences,
)  # fmt: skip
"""In the order in which differences of one kind are shown."""
_ORDER: tuple[Kind, ...] = ("worse", "better", "neutral")
COMPARED = {
    "pci": "PCI functions", "gpu": "GPUs of NVML", "infiniband": "HCAs", "nvlink": "NVLinks",
    "gpu_ecc": "memory errors", "gpu_board": "InfoROM versions", "nvlink_errors": "NVLink errors",
    "aer": "PCIe errors", "ib_ports": "ports", "network": "interfaces", "storage": "disks", "host": "host",
    "modules": "kernel modules", "edac": "EDAC",
}  # fmt: skip
"""Fields of a snapshot by what people call them."""


def compare(old: Side, new: Side) -> Compared:
    """Facts against facts."""
    devices = matched(old, new)
    found = [each for subject in SUBJECTS for each in subject(old, new, devices)]
    notes = [NOT_COMPARABLE] if devices.comparable is False else []
    return Compared(differences=worst_first(found), notes=(*notes, *_uncompared(old, new)))


def worst_first(found: Iterable[Difference]) -> tuple[Difference, ...]:
    """By kind, else in the order given."""
    return tuple(sorted(found, key=lambda each: _ORDER.index(each.kind)))


def verdict(found: Iterable[Difference]) -> str:
    """``worse`` where anything is, else ``better``, else ``same``; neutral changes make it neither."""
    kinds = {each.kind for each in found}
    return "worse" if "worse" in kinds else "better" if "better" in kinds else "same"


def _uncompared(old: Side, new: Side) -> list[str]:
    """What one side alone can tell."""
    told: dict[str, list[str]] = {}
    for field, words in COMPARED.items():
        gaps = [getattr(side.snapshot, field) for side in (old, new)]
        missing = [isinstance(each, Missing) and each.gap is not Gap.UNASKED for each in gaps]
        if missing[0] != missing[1]:
            side, gap = ("OLD", gaps[0]) if missing[0] else ("NEW", gaps[1])
            told.setdefault(f"{side}: {gap.where}: {gap}", []).append(words)
    return [f"not compared: {', '.join(words)} ({why})" for why, words in told.items()]
