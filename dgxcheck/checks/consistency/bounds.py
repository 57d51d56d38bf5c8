"""Readings of a GPU that bound each other: a part and its whole, a value and its highest, a sum and its parts."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.consistency.contradiction import Contradiction, Facts, number, reading
from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.finding import Evidence
from dgxcheck.facts.gpu import EccCounts
from dgxcheck.facts.nature import rows_of
from dgxcheck.topology.model import Device

NEVER_ABOVE = (
    ("gpu_pcie.link_gen", "gpu_pcie.max_link_gen", "PCIe generation"),
    ("gpu_pcie.link_width", "gpu_pcie.max_link_width", "PCIe lanes"),
    ("gpu_pcie.max_link_gen", "gpu_pcie.gpu_max_link_gen", "highest PCIe generation"),
    ("pci.link_gen", "pci.max_link_gen", "PCIe generation"),
    ("pci.link_width", "pci.max_link_width", "PCIe lanes"),
    ("gpu_memory.used", "gpu_memory.total", "memory in use"),
    ("gpu_memory.free", "gpu_memory.total", "free memory"),
    ("gpu_memory.reserved", "gpu_memory.total", "reserved memory"),
    ("gpu_pcie.bar1_used", "gpu_pcie.bar1_total", "BAR1 in use"),
    ("gpu_pcie.bar1_free", "gpu_pcie.bar1_total", "free BAR1"),
    *((f"gpu_clocks.{kind}.{clock}", f"gpu_clocks.max.{clock}", f"{words} {clock} clock")
      for kind, words in (("current", "current"), ("application", "application"), ("default_application", "default"))
      for clock in ("graphics", "sm", "memory", "video")),
    ("gpu_power.enforced_limit_mw", "gpu_power.max_limit_mw", "enforced power limit"),
    ("gpu_power.default_limit_mw", "gpu_power.max_limit_mw", "default power limit"),
    ("gpu_power.min_limit_mw", "gpu_power.default_limit_mw", "lowest power limit"),
    ("gpu_thermal.slowdown_c", "gpu_thermal.shutdown_c", "slowdown temperature"),
    ("gpu_thermal.gpu_max_c", "gpu_thermal.shutdown_c", "highest temperature"),
    *((f"gpu_ecc.{period}_{error}.{place}", f"gpu_ecc.{period}_{error}.total", f"{period} {error} {place} errors")
      for period in ("volatile", "aggregate") for error in ("corrected", "uncorrected")
      for place, row in rows_of(EccCounts).items() if row.more.get("most") == "total"),
)  # fmt: skip
"""A reading, the one that it cannot exceed, and what it is."""
RANGES = (
    ("gpu_thermal.gpu_c", 1, 150, "temperature", "°C"),
    ("gpu_thermal.memory_c", 0, 150, "memory temperature", "°C"),
    ("gpu_thermal.slowdown_c", 40, 150, "slowdown temperature", "°C"),
    ("gpu_processes.gpu_percent", 0, 100, "utilisation", "%"),
    ("gpu_processes.memory_percent", 0, 100, "memory utilisation", "%"),
    ("gpu_power.usage_mw", 1, 4_000_000, "power draw", "mW"),
    ("gpu_power.enforced_limit_mw", 1, 4_000_000, "enforced power limit", "mW"),
    ("gpu_memory.total", 1 << 26, 1 << 50, "memory size", "bytes"),
    *((f"gpu_clocks.{kind}{clock}", 1, 10_000, f"{words} {clock} clock", "MHz")
      for kind, words in (("max.", "highest"), ("max_customer_boost.", "highest customer boost"))
      for clock in ("graphics", "memory")),
    ("gpu_clocks.max.sm", 1, 10_000, "highest SM clock", "MHz"),
    *((f"gpu_memory.row_histogram.{level}", 0, 1 << 20, "memory banks in the row remapper", "")
      for level in ("max", "high", "partial", "low", "none")),
    ("gpu_pcie.link_width", 1, 32, "PCIe lanes", ""),
    ("gpu_pcie.link_gen", 1, 8, "PCIe generation", ""),
)
"""What is possible at all in a GPU that answers: power and temperature of silicon that runs are not 0."""
PARTS = (
    (("gpu_memory.used", "gpu_memory.free"), "gpu_memory.total", "used and free memory"),
    (("gpu_pcie.bar1_used", "gpu_pcie.bar1_free"), "gpu_pcie.bar1_total", "used and free BAR1"),
    *(((f"gpu_ecc.{period}_{error}.device_memory", f"gpu_ecc.{period}_{error}.sram"),
       f"gpu_ecc.{period}_{error}.total", f"{period} {error} errors of DRAM and SRAM")
      for period in ("volatile", "aggregate") for error in ("corrected", "uncorrected")),
)  # fmt: skip
WHOLES = tuple(dict.fromkeys(bound for _, bound, _ in NEVER_ABOVE))
_MIB = 1 << 20
_SPARES = tuple(f"gpu_memory.row_histogram.{level}" for level in ("max", "high", "partial", "low", "none"))


def never_above(box: Box, gpu: Device, facts: Facts) -> Iterator[Contradiction]:
    """A value above the highest that it can have. A hypervisor shows its guest PCIe links of its own making."""
    for path, bound, words in NEVER_ABOVE:
        value, most = number(facts, path), number(facts, bound)
        hidden = path.startswith(("pci.", "gpu_pcie.")) and "link" in path and guest(box) is not None
        if value is not None and most is not None and value > most and not hidden:
            text = f"{words} {_plain(path, value)} above {_plain(bound, most)}"
            yield Contradiction(text, _both(facts, gpu, path, bound))


def told_twice(box: Box, gpu: Device, facts: Facts) -> Iterator[Contradiction]:
    """The PCIe link by NVML and by sysfs. Lanes do not come and go between two readings, nor does the generation of a
    GPU at its highest performance state; a hypervisor shows its guest links of its own making."""
    awake = number(facts, "gpu_clocks.performance_state") == 0
    for name in ("link_width", "link_gen") if guest(box) is None else ():
        nvml, sysfs = (number(facts, f"{field}.{name}") for field in ("gpu_pcie", "pci"))
        if nvml is not None and sysfs is not None and nvml != sysfs and (awake or name == "link_width"):
            text = f"PCIe {'lanes' if name == 'link_width' else 'generation'} {nvml:g} by NVML, {sysfs:g} by sysfs"
            yield Contradiction(text, _both(facts, gpu, f"gpu_pcie.{name}", f"pci.{name}"))


def ranges(_: Box, gpu: Device, facts: Facts) -> Iterator[Contradiction]:
    """A value that no GPU has."""
    for path, low, high, words, unit in RANGES:
        value = number(facts, path)
        if value is not None and not low <= value <= high:
            text = f"{words} {value:g} {unit}".rstrip()
            yield Contradiction(f"{text} is impossible", (reading(facts, path, gpu.bdf),))


def parts(_: Box, gpu: Device, facts: Facts) -> Iterator[Contradiction]:
    """Parts that are more than their whole."""
    for paths, whole, words in PARTS:
        values, total = [number(facts, path) for path in paths], number(facts, whole)
        known = [value for value in values if value is not None]
        if total is not None and len(known) == len(paths) and sum(known) > total >= max(known):
            text = f"{words} {_plain(whole, sum(known))} above {_plain(whole, total)}"
            yield Contradiction(text, _both(facts, gpu, *paths, whole))


def spare_rows(_: Box, gpu: Device, facts: Facts) -> Iterator[Contradiction]:
    """A row remapper that answers and counts no memory bank at all."""
    values = [number(facts, path) for path in _SPARES]
    if values and all(value == 0 for value in values):
        yield Contradiction("the row remapper counts no memory bank", (reading(facts, _SPARES[0], gpu.bdf),))


def _plain(path: str, value: float) -> str:
    """Bytes in MiB; all else as it was read."""
    in_bytes = path.startswith("gpu_memory.") or ".bar1_" in path
    return f"{round(value / _MIB)} MiB" if in_bytes else f"{value:g}"


def _both(facts: Facts, gpu: Device, *paths: str) -> tuple[Evidence, ...]:
    return tuple(reading(facts, path, gpu.bdf) for path in paths)
