"""Where a fact of a device stands, as evidence: the file or the NVML query."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from dgxcheck.checks.siblings.leaves import Leaf
from dgxcheck.facts.infiniband import IbPort
from dgxcheck.facts.missing import question
from dgxcheck.facts.nvml_quantities import GROUPS
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import PCI_DEVICES

_GROUPS: Mapping[str, str] = {
    "identity": "Gpu", "board": "GpuBoard", "pcie": "GpuPcie", "memory": "GpuMemory", "clocks": "GpuClocks",
    "power": "GpuPower", "thermal": "GpuThermal", "modes": "GpuModes",
}  # fmt: skip
"""Records by group of ``nvml_quantities``."""
_READ_BY_A_PROBE: Mapping[str, str] = {
    "GpuBoard.architecture": "nvmlDeviceGetArchitecture",
    "GpuBoard.compute_capability": "nvmlDeviceGetCudaComputeCapability",
    "GpuClocks.supported": "nvmlDeviceGetSupportedMemoryClocks",
    "GpuModes.fabric": "nvmlDeviceGetGpuFabricInfo",
    "NvLink.generation": "nvmlDeviceGetNvLinkVersion",
}
_FILES: Mapping[str, str] = {
    "PciFunction.class_code": "class", "PciFunction.link_gen": "current_link_speed",
    "PciFunction.link_width": "current_link_width", "PciFunction.max_link_gen": "max_link_speed",
    "BlockDevice.size_bytes": "size", "BlockDevice.rotational": "queue/rotational",
    "BlockDevice.model": "device/model", "BlockDevice.vendor": "device/vendor", "NumaMemory.memory_kb": "meminfo",
    "NumaMemory.distances": "distance",
}  # fmt: skip
"""Files that are not named as the field."""
_FOLDERS: Mapping[str, tuple[str, str]] = {
    "PciFunction": (PCI_DEVICES, "bdf"), "IbDevice": ("/sys/class/infiniband", "name"),
    "NetInterface": ("/sys/class/net", "name"), "BlockDevice": ("/sys/class/block", "name"),
    "MemoryController": ("/sys/devices/system/edac/mc", "name"),
    "NumaMemory": ("/sys/devices/system/node/node", "node"), "NumaNode": ("/sys/devices/system/node/node", "node"),
}  # fmt: skip
_ONE_FILE: Mapping[str, str] = {"PciBars": "resource", "ConfigSpace": "config", "IommuFunction": "iommu_group"}


def where(row: Record, leaf: Leaf) -> str:
    """The file or query that a value of a record was read from."""
    record, _, rest = leaf.fact.partition(".")
    field = rest.partition(".")[0]
    if record in _ONE_FILE:
        return f"{PCI_DEVICES}/{getattr(row, 'bdf', '')}/{_ONE_FILE[record]}"
    if isinstance(row, IbPort):
        return f"/sys/class/infiniband/{row.device}/ports/{row.port}/{field}"
    if record in _FOLDERS:
        folder, name = _FOLDERS[record]
        slash = "" if name == "node" else "/"
        return f"{folder}{slash}{getattr(row, name)}/{_FILES.get(f'{record}.{field}', field)}"
    link = getattr(row, "link", None)
    function, args = _queries().get(leaf.fact) or _queries().get(f"{record}.{field}") or (leaf.fact, ())
    return question(function, str(getattr(row, "bdf", "")), *([link] if isinstance(link, int) else []), *args)


@cache
def _queries() -> Mapping[str, tuple[str, tuple[int, ...]]]:
    """NVML function and arguments by fact."""
    known: dict[str, tuple[str, tuple[int, ...]]] = {fact: (name, ()) for fact, name in _READ_BY_A_PROBE.items()}
    for group, record in _GROUPS.items():
        for quantity in GROUPS[group]:
            known |= {f"{record}.{fact}": (quantity.function, quantity.args) for fact in quantity.facts}
    return known
