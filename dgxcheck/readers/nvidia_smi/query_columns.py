"""The columns of ``nvidia-smi --query-gpu``, under their names and short names, as fields of ``nvidia-smi -q``.

Source: ``nvidia-smi --help-query-gpu`` of R352 to R590.
"""

from __future__ import annotations

import re

_SAME = {
    "name": "product name", "gpu_name": "product name", "uuid": "gpu uuid", "gpu_uuid": "gpu uuid",
    "serial": "serial number", "gpu_serial": "serial number", "vbios_version": "vbios version",
    "persistence_mode": "persistence mode", "display_mode": "display mode", "display_active": "display active",
    "inforom.img": "inforom version/image version", "inforom.image": "inforom version/image version",
    "inforom.oem": "inforom version/oem object", "inforom.ecc": "inforom version/ecc object",
    "pci.device_id": "pci/device id", "pcie.link.gen.current": "pci/gpu link info/pcie generation/current",
    "pcie.link.gen.max": "pci/gpu link info/pcie generation/max", "compute_mode": "compute mode",
    "pcie.link.width.current": "pci/gpu link info/link width/current",
    "pcie.link.width.max": "pci/gpu link info/link width/max", "fan.speed": "fan speed", "pstate": "performance state",
    "memory.total": "fb memory usage/total", "memory.used": "fb memory usage/used",
    "memory.free": "fb memory usage/free", "memory.reserved": "fb memory usage/reserved",
    "ecc.mode.current": "ecc mode/current", "ecc.mode.pending": "ecc mode/pending",
    "retired_pages.single_bit_ecc.count": "retired pages/single bit ecc",
    "retired_pages.sbe": "retired pages/single bit ecc", "retired_pages.pending": "retired pages/pending",
    "retired_pages.double_bit.count": "retired pages/double bit ecc",
    "retired_pages.dbe": "retired pages/double bit ecc",
    "remapped_rows.correctable": "remapped rows/correctable error", "remapped_rows.pending": "remapped rows/pending",
    "remapped_rows.uncorrectable": "remapped rows/uncorrectable error",
    "remapped_rows.failure": "remapped rows/remapping failure occurred",
    "temperature.gpu": "temperature/gpu current temp",
    "temperature.gpu.tlimit": "temperature/gpu t.limit temp", "temperature.memory": "temperature/memory current temp",
    "power.draw": "power readings/power draw", "power.draw.instant": "power readings/instantaneous power draw",
    "enforced.power.limit": "power readings/enforced power limit", "power.limit": "power readings/power limit",
    "power.default_limit": "power readings/default power limit", "power.min_limit": "power readings/min power limit",
    "power.max_limit": "power readings/max power limit", "mig.mode.current": "mig mode/current",
    "mig.mode.pending": "mig mode/pending", "gpu_recovery_action": "gpu recovery action",
    "gpu_reset_status.reset_required": "gpu reset status/reset required",
    "ecc.errors.uncorrected.aggregate.sram.thresholdexceeded": "ecc errors/aggregate/sram threshold exceeded",
    "clocks_throttle_reasons.active": "clocks event reasons mask",
    "clocks_event_reasons.active": "clocks event reasons mask",
}  # fmt: skip
_ECC = re.compile(r"ecc\.errors\.(un)?corrected\.(volatile|aggregate)\.total")
_CLOCKS = re.compile(r"clocks\.(?:(current|max|applications|default_applications)\.)?(graphics|gr|sm|memory|mem|video)")
_REASONS = re.compile(r"clocks_(?:throttle|event)_reasons\.(\w+)")
_HISTOGRAM = re.compile(r"remapped_rows\.histogram\.(max|high|partial|low|none)")
_FABRIC = re.compile(r"fabric\.((?:health\.)?\w+)")
BUS_ID = ("pci.bus_id", "gpu_bus_id")
UNUSED = re.compile(
    r"timestamp|count|index|driver_version|cuda_version|hostname|compute_cap|minor_number|accounting\.\w+|utilization\.\w+"
    r"|pci\.\w+|pcie\.link\.\w+(?:\.\w+)?|gom\.\w+|driver_model\.\w+|encoder\.\w+\.\w+|inforom\.\w+|addressing_mode"
    r"|display_attached|(?:clocks|power|ecc|memory|temperature|platform|module|edpp|gsp|c2c|vgpu|protected|dram|power_smoothing"
    r"|vgpu_device_capability|vgpu_driver_capability|clocks_event_reasons_counters|clocks_throttle_reasons_counters"
    r"|dramEncryption|protected_memory|edpp_multiplier|board_id|multigpu_board|nvlink|retired_pages|remapped_rows)(?:[._]\w+)*",
    re.IGNORECASE,
)  # fmt: skip
"""Columns that exist and answer nothing that is asked."""


def field(column: str) -> str | None:
    """The path of a field in a dump; None for a column that is not used, or not known."""
    name = column.lower()
    if name in _SAME:
        return _SAME[name]
    if match := _ECC.fullmatch(name):
        return f"ecc errors/{match[2]}/{'double' if match[1] else 'single'} bit/total"
    if match := _CLOCKS.fullmatch(name):
        which = {"gr": "graphics", "mem": "memory"}.get(match[2], match[2])
        group = match[1] or "current"
        return f"{'' if group == 'current' else group.replace('_', ' ') + ' '}clocks/{which}"
    if match := _REASONS.fullmatch(name):
        return f"clocks event reasons/{'idle' if match[1] == 'gpu_idle' else match[1].replace('_', ' ')}"
    if match := _HISTOGRAM.fullmatch(name):
        return f"remapped rows/bank remap availability histogram/{match[1]}"
    if match := _FABRIC.fullmatch(name):
        return f"fabric/{match[1].replace('.', '/').replace('_', ' ')}"
    return None


def is_column(name: str) -> bool:
    """Is this the name of a column, used or not?"""
    return name in BUS_ID or field(name) is not None or UNUSED.fullmatch(name) is not None
