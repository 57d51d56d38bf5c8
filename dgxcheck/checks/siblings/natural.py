"""Which facts differ between healthy devices of one kind and role, each with the reason; all others are compared.

A name is that of a record's field, ``GpuPower.usage_mw``, and stands for all that the field holds.
"""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind


def _all(reason: str, *facts: str) -> dict[str, str]:
    return dict.fromkeys(facts, reason)


KEYS = ("*.bdf", "*.link")
"""Which device a record is of."""
NATURAL: Mapping[str, str] = {
    **_all("a function may be passed through to a guest; without its driver a GPU or HCA is not listed",
           "PciFunction.driver"),
    **_all("identity", *KEYS, "Gpu.index", "Gpu.uuid", "Gpu.serial", "Gpu.minor", "GpuBoard.board_id",
           "IommuFunction.group.number", "IbDevice.name", "IbDevice.node_guid", "IbDevice.sys_image_guid",
           "IbDevice.node_desc", "IbPort.device", "IbPort.port", "IbPort.lid", "NetInterface.name",
           "NetInterface.mac", "BlockDevice.name", "MemoryController.name", "MemoryController.mc_name",
           "NumaMemory.node", "NumaNode.node"),
    **_all("place in the machine", "Gpu.gpu_numa_id", "PciFunction.path", "PciFunction.numa_node",
           "PciFunction.local_cpulist", "GpuAffinity", "NumaNode.cpulist", "PciBars.bars.start",
           "PciBars.bar1.start", "NvLink.remote_bdf", "NvLink.remote_type"),
    **_all("load at this moment", "GpuClocks.current", "GpuClocks.reasons", "GpuClocks.performance_state",
           "GpuMemory.free", "GpuMemory.used", "GpuMemory.reserved", "GpuPcie.bar1_free", "GpuPcie.bar1_used",
           "GpuPower.usage_mw", "GpuThermal.gpu_c", "GpuThermal.memory_c", "GpuThermal.margin_c",
           "GpuThermal.fan_percent", "GpuActivity"),
    **_all("an idle link or device slows down or sleeps", "GpuPcie.link_gen", "ConfigSpace.power_state"),
    **_all("counter", "AerDevice", "GpuCounters", "GpuEcc", "GpuMemory.row_histogram", "IbPort.counters",
           "IbPort.hw_counters", "MemoryController.corrected", "MemoryController.uncorrected", "NvLinkErrors"),
    **_all("a display is connected to one GPU", "GpuModes.display_mode", "GpuModes.display_active"),
    **_all("chosen for each GPU by who shares it out", "GpuModes.mig", "GpuModes.mig_pending"),
    **_all("asked for by the driver after an error: gpu.reset-required", "GpuModes.recovery_action"),
    **_all("part numbers of one model differ after a replacement", "GpuBoard.part_number"),
    **_all("network.port-state and network.port-rate judge it by link layer, use and configuration", "IbPort.state",
           "IbPort.phys_state", "IbPort.link_layer", "IbPort.sm_lid"),
    **_all("nvlink.state judges it by the wiring", "NvLink.up"),
    **_all("nvlink.generation and nvlink.rate compare it, the rate within a tolerance", "NvLink.generation",
           "NvLinkRate.speed_mbs"),
    **_all("driver.fabric-health judges it; a site partitions its fabric", "GpuModes.fabric.clique_id",
           "GpuModes.fabric.cluster_uuid", "GpuModes.fabric.health_mask", "GpuModes.fabric.health_summary"),
    **_all("host.ethernet judges it; a cable is not needed", "NetInterface.operstate", "NetInterface.carrier",
           "NetInterface.speed_mbit"),
}  # fmt: skip
NATURAL_OF: Mapping[str, Mapping[str, str]] = {
    "gpu": _all("an idle link slows down: pcie.generation", "PciFunction.link_gen"),
    "bridge": {
        **_all("the link to an idle GPU slows down: pcie.generation", "PciFunction.link_gen"),
        **_all("each root port of a host bridge has an id of its own", "PciFunction.device"),
        **_all(
            "switches of several generations serve one kind of GPU; pcie.link-speed judges the links",
            "PciFunction.max_link_gen",
        ),
    },
    "hca": _all("follows the link layer", "PciFunction.class_code"),
    "function": _all("of an HCA that is not known as one it follows the link layer", "PciFunction.class_code"),
}
"""The same, for one kind of device alone."""

BY_PLACE = frozenset({
    "GpuPcie.link_width", "GpuPcie.max_link_gen", "GpuPcie.max_link_width", "PciFunction.link_gen",
    "PciFunction.link_width", "ConfigSpace.express.max_payload", "ConfigSpace.control.aspm",
    "ConfigSpace.control.extended_tag", "ConfigSpace.control.ten_bit_tag", "ConfigSpace.control.target_gen",
})  # fmt: skip
"""What the slot or the path decides too: compared among devices below bridges of equal capabilities."""
BY_BOARD = frozenset({"Gpu.vbios"})
"""Compared among GPUs at the same position of their boards: the halves of a K80 have different VBIOS versions."""
BY_IMAGE = frozenset({"IbDevice.fw_ver"})
"""Compared among HCAs of one ``board_id``, which names the firmware image."""
IN_ANY_ORDER = frozenset({"NumaMemory.distances"})
"""Compared as sets of numbers: the nearest node is another one for each."""
TOLERANCE: Mapping[str, str] = {
    "GpuMemory.total": "gpu.uniform-memory", "NumaMemory.memory_kb": "consistency.memory",
}  # fmt: skip
"""Thresholds, in percent, within which numbers are equal."""
SLACK: Mapping[str, int] = {"NumaMemory.memory_kb": 5 << 19}
"""Differences that are none, in the unit of the fact: what firmware and kernel keep of the first node's memory, 1.5 GiB
on a Supermicro 4029GP with 48 GiB in each node."""
COVERED: Mapping[str, frozenset[FaultKind]] = {
    "GpuMemory.total": frozenset({Fault.ECC_OFF, Fault.MEMORY_SIZE}),
    "GpuPcie.link_width": frozenset({Fault.LINK_NARROW}),
    "GpuPcie.max_link_gen": frozenset({Fault.LINK_SLOW}),
    "GpuPcie.bar1_total": frozenset({Fault.BAR1_SMALL, Fault.BAR1_MISMATCH}),
    "GpuPower.limit_mw": frozenset({Fault.POWER_CAPPED}),
    "PciBars": frozenset({Fault.BAR1_SMALL, Fault.BAR1_MISMATCH}),
    "PciFunction.link_width": frozenset({Fault.LINK_NARROW}),
    "PciFunction.max_link_gen": frozenset({Fault.LINK_SLOW}),
    "ConfigSpace.control.target_gen": frozenset({Fault.LINK_SLOW}),
    "NumaMemory.memory_kb": frozenset({Fault.MEMORY_MISSING}),
}
"""Faults, of the same device or of what a bridge leads to, that a difference follows from. What is evidence of a bad
finding needs no entry."""
BLAMED: Mapping[str, str] = {"ConfigSpace.acs": "ACS setting"}
"""Parts of the device: where a finding blames one, the difference is known."""
