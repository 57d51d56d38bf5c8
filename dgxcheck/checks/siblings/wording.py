"""Facts and values in messages: ``VBIOS 88.00.4F.00.09``, ``default limit 250 W``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.checks.siblings.leaves import Leaf, Value
from dgxcheck.facts.ids import COMPUTE_MODES

_LABELS: Mapping[str, str] = {
    "Gpu.vbios": "VBIOS", "GpuBoard.inforom_image": "InfoROM image", "GpuBoard.inforom_oem": "InfoROM OEM version",
    "GpuBoard.inforom_ecc": "InfoROM ECC version", "GpuBoard.inforom_power": "InfoROM power version",
    "GpuMemory.total": "memory", "GpuMemory.ecc": "ECC mode", "GpuPower.enforced_limit_mw": "enforced power limit",
    "GpuPower.limit_mw": "power limit", "GpuPower.default_limit_mw": "default power limit",
    "GpuPower.min_limit_mw": "lowest power limit", "GpuPower.max_limit_mw": "highest power limit",
    "ConfigSpace.acs": "ACS capability", "ConfigSpace.acs.control": "ACS control",
    "ConfigSpace.express.max_payload": "MaxPayload", "ConfigSpace.express.max_read_request": "MaxReadReq",
    "ConfigSpace.control.bus_master": "bus mastering", "ConfigSpace.control.memory_space": "memory space",
    "ConfigSpace.control.relaxed_ordering": "relaxed ordering", "ConfigSpace.control.extended_tag": "extended tags",
    "ConfigSpace.control.no_snoop": "no snoop", "ConfigSpace.control.aspm": "ASPM",
    "ConfigSpace.control.link_disabled": "link disable", "ConfigSpace.control.target_gen": "target link generation",
    "ConfigSpace.control.completion_timeout": "completion timeout range",
    "ConfigSpace.control.completion_timeout_disabled": "completion timeout disable",
    "ConfigSpace.control.ari_forwarding": "ARI forwarding", "ConfigSpace.control.atomics": "AtomicOps",
    "ConfigSpace.control.ten_bit_tag": "10-bit tags",
    "IbDevice.fw_ver": "firmware", "IbDevice.board_id": "PSID", "IbPort.rate.gbit_per_s": "rate",
    "GpuClocks.max.sm": "highest SM clock",
    "GpuClocks.max.graphics": "highest graphics clock", "GpuClocks.max.memory": "highest memory clock",
    "NetInterface.mtu": "MTU", "PciBars.bars.size": "BAR size", "PciBars.bar1.size": "BAR1",
    "NumaMemory.memory_kb": "memory", "MemoryController.size_mb": "memory", "NumaMemory.distances": "NUMA distances",
}  # fmt: skip
_UNITS: Mapping[str, tuple[str, float]] = {
    "_mw": ("W", 1e-3), "_c": ("°C", 1), "_kb": ("GiB", 1 / (1 << 20)), "_mb": ("MiB", 1),
    "_bytes": ("GB", 1e-9), "_per_s": ("Gbit/s", 1),
}  # fmt: skip
_CLOCKS = ("max", "application", "default_application", "max_customer_boost")
_LONGEST = 40
"""Characters of a value in a message; longer ones are in the evidence."""


def described(leaf: Leaf) -> str:
    """A fact and its value."""
    return f"{label(leaf.fact)} {text(leaf.fact, leaf.value)}"


def label(fact: str) -> str:
    """What a fact is called."""
    if fact in _LABELS:
        return _LABELS[fact]
    words = fact.partition(".")[2].replace("_", " ").replace(".", " ")
    unit = next((unit for unit in _UNITS if fact.endswith(unit)), "")
    words = words.removesuffix(unit.replace("_", " "))
    return f"{words} clock" if fact.startswith("GpuClocks.") and fact.split(".")[1] in _CLOCKS else words


def text(fact: str, value: Value) -> str:
    """A value with its unit, cut where it is long."""
    if value is None or value in ("", ()):
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int) and 0 <= value < len(_NAMES.get(fact, ())):
        return _NAMES[fact][value]
    if isinstance(value, tuple):
        return _cut(" ".join(map(str, value)))
    if isinstance(value, str):
        return _cut(value)
    if fact in ("GpuMemory.total", "GpuPcie.bar1_total") or fact.endswith(".size"):
        return f"{value / (1 << 20):g} MiB"
    if fact.startswith("GpuClocks.") and fact.split(".")[1] in _CLOCKS:
        return f"{value} MHz"
    if fact.startswith("ConfigSpace.acs.") or fact in _HEXADECIMAL:
        return f"{value:#06x}"
    unit, factor = next((known for suffix, known in _UNITS.items() if fact.endswith(suffix)), ("", 1))
    return f"{value * factor:.6g} {unit}".rstrip()


_NAMES: Mapping[str, Sequence[str]] = {
    "GpuModes.compute_mode": COMPUTE_MODES, "ConfigSpace.control.aspm": ("off", "L0s", "L1", "L0s and L1"),
}  # fmt: skip
_HEXADECIMAL = (
    "PciFunction.class_code", "PciFunction.vendor", "PciFunction.device", "PciFunction.subsystem_vendor",
    "PciFunction.subsystem_device", "GpuBoard.pci_device_id", "GpuBoard.pci_subsystem_id",
)  # fmt: skip


def _cut(words: str) -> str:
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST].rstrip()}..."
