"""Probes by the field of the snapshot that they fill: a module each, with one function ``probe(source) -> facts``.

Names, not modules: a command imports only the probes that it needs. Files come before NVML, which is asked meanwhile:
a driver that takes all the time there is keeps no file from being read.
"""

WIRING = ("pci", "numa", "infiniband", "gpu", "nvlink", "gpu_pairs", "stated")
"""What the topology engine is built from."""

COUNTERS = ("aer", "edac", "ib_ports", "nvlink", "gpu_ecc", "gpu_counters", "nvlink_errors")
"""What is worth asking again after a while."""

MODULES = {
    "pci": "pci.functions",
    "numa": "host.numa",
    "infiniband": "fabric.devices",
    "pci_names": "pci.names",
    "numa_memory": "host.numa_memory",
    "slots": "pci.slots",
    "bars": "pci.bars",
    "aer": "pci.aer",
    "config_space": "pci.config_space",
    "iommu": "pci.iommu",
    "ib_ports": "fabric.ports",
    "modules": "host.modules",
    "host": "host.host",
    "edac": "host.edac",
    "network": "host.network",
    "storage": "host.storage",
    "device_nodes": "host.device_nodes",
    "memlock": "host.memlock",
    "units": "host.units",
    "kernel_log": "kernel_log",
    "gpu": "gpu.identity",
    "nvlink": "gpu.nvlink",
    "gpu_pairs": "gpu.pairs",
    "gpu_board": "gpu.board",
    "gpu_pcie": "gpu.pcie",
    "gpu_memory": "gpu.memory",
    "gpu_ecc": "gpu.ecc",
    "gpu_counters": "gpu.counters",
    "gpu_clocks": "gpu.clocks",
    "gpu_power": "gpu.power",
    "gpu_thermal": "gpu.thermal",
    "gpu_modes": "gpu.modes",
    "gpu_processes": "gpu.processes",
    "gpu_affinity": "gpu.affinity",
    "nvlink_capability": "gpu.nvlink_capability",
    "nvlink_rate": "gpu.nvlink_rate",
    "nvlink_errors": "gpu.nvlink_errors",
    "p2p": "gpu.p2p",
    "measurement": "measurement",
    "stated": "nvidia_smi_topo",
    "tool_reports": "tool_reports",
}
"""Module below ``probes`` by field of the snapshot, in the order in which they run."""

ALL = tuple(MODULES)
