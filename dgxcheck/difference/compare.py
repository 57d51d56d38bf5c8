"""All differences between two snapshots of a machine, the worst first."""

from __future__ import annotations

from collections.abc import Iterable

from dgxcheck.difference import facts, hardware, links, measured
from dgxcheck.difference.matching import NOT_COMPARABLE, Matched, matched
from dgxcheck.difference.model import Compared, Difference, Side, Trend
from dgxcheck.facts.missing import Gap, Missing

SUBJECTS = (hardware.differences, links.pcie, links.nvlinks, facts.differences, measured.differences)
"""In the order in which differences of one kind are shown."""
_ORDER: tuple[Trend, ...] = ("worse", "better", "neutral")
FIELD_NAMES = {
    "pci": "PCI functions", "gpu": "GPUs in NVML", "infiniband": "HCAs", "nvlink": "NVLinks",
    "gpu_ecc": "memory errors", "gpu_board": "InfoROM versions", "nvlink_errors": "NVLink errors",
    "aer": "PCIe errors", "ib_ports": "InfiniBand ports", "network": "network interfaces", "storage": "disks",
    "host": "host", "modules": "kernel modules", "edac": "EDAC",
}  # fmt: skip
"""Readable names of the fields of a snapshot."""


def compare(old: Side, new: Side) -> Compared:
    """Compare the facts of two snapshots."""
    devices = matched(old, new)
    differences = [difference for subject in SUBJECTS for difference in subject(old, new, devices)]
    notes = [NOT_COMPARABLE] if devices.comparable is False else _of_two_machines(old, new, devices)
    return Compared(differences=worst_first(differences), notes=(*notes, *_uncompared(old, new)))


def _of_two_machines(old: Side, new: Side, devices: Matched) -> list[str]:
    """Is none of several GPUs the same?"""
    first, second = (side.snapshot.known_host.dmi.product_serial for side in (old, new))
    if len(devices.gpus) < 2 or not all(pair.replaced for pair in devices.gpus):
        return []
    if isinstance(first, Missing) or isinstance(second, Missing) or first == second:
        return []
    return [f"two machines, serial numbers {first} and {second}: no GPU is the same"]


def worst_first(differences: Iterable[Difference]) -> tuple[Difference, ...]:
    """Sorted by kind; stable."""
    return tuple(sorted(differences, key=lambda difference: _ORDER.index(difference.kind)))


def verdict(differences: Iterable[Difference]) -> str:
    """``worse`` if any difference is, else ``better``, else ``same``; neutral ones do not count."""
    kinds = {difference.kind for difference in differences}
    return "worse" if "worse" in kinds else "better" if "better" in kinds else "same"


def _uncompared(old: Side, new: Side) -> list[str]:
    """Fields that could be read on one side only."""
    fields_by_gap: dict[str, list[str]] = {}
    for field, words in FIELD_NAMES.items():
        gaps = [getattr(side.snapshot, field) for side in (old, new)]
        missing = [isinstance(gap, Missing) and gap.gap is not Gap.UNASKED for gap in gaps]
        if missing[0] != missing[1]:
            side, gap = ("OLD", gaps[0]) if missing[0] else ("NEW", gaps[1])
            fields_by_gap.setdefault(f"{side}: {gap.where}: {gap}", []).append(words)
    return [f"not compared: {', '.join(words)} ({why})" for why, words in fields_by_gap.items()]
