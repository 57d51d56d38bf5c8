"""All differences between two snapshots of a machine, the worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from dgxcheck.difference import facts, hardware, links, measured
from dgxcheck.difference.matching import NOT_COMPARABLE, Matched, matched, shows_some
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
    found, notes = worst_first(differences), [*notes, *_uncompared(old, new)]
    return Compared(differences=found, notes=tuple(notes), other_gpus=_other_gpus(old, new))


def _other_gpus(old: Side, new: Side) -> str:
    """``8 x NVIDIA A100-SXM4-80GB``, where each side has several GPUs and no model is on both."""
    names, now = (Counter(name for gpu in side.snapshot.listed_gpus if isinstance(name := gpu.name, str))
                  for side in (old, new))  # fmt: skip
    was, is_now = (side.snapshot.known_host.dmi.product_serial for side in (old, new))
    if (isinstance(was, str) and was == is_now) or min(names.total(), now.total()) < 2 or names.keys() & now.keys():
        return ""
    return ", ".join(f"{count} x {name}" for name, count in names.items())


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
    """GPUs that a text leaves out, and fields that could be read on one side only."""
    some = [name for name, side in (("OLD", old), ("NEW", new)) if shows_some(side)]
    fields_by_gap: dict[str, list[str]] = {}
    for field, words in FIELD_NAMES.items():
        gaps = [getattr(side.snapshot, field) for side in (old, new)]
        missing = [isinstance(gap, Missing) and gap.gap is not Gap.UNASKED for gap in gaps]
        if missing[0] != missing[1]:
            side, gap = ("OLD", gaps[0]) if missing[0] else ("NEW", gaps[1])
            fields_by_gap.setdefault(f"{side}: {gap.where}: {gap}", []).append(words)
    parts = [f"not compared: GPUs that {name} does not show ({name}: its text ends early)" for name in some]
    return parts + [f"not compared: {', '.join(words)} ({why})" for why, words in fields_by_gap.items()]
