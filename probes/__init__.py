"""Probes by the field of the snapshot that they fill: a function of that name, ``pci(source) -> facts``.

Names, not modules: a command imports only the probes that it needs. Files come before NVML, which is asked meanwhile:
a driver that takes all the time there is keeps no file from being read.
"""

WIRING = ("pci", "vpd", "numa", "infiniband", "gpu", "nvlink", "gpu_pairs", "stated")
"""What the topology engine is built from."""

COUNTERS = ("aer", "edac", "ib_ports", "nvlink", "gpu_ecc", "gpu_counters", "nvlink_errors")
"""What is worth asking again after a while."""

MODULES = {
    "pci": "pci.functions",
    "vpd": "pci.vpd",
    "numa": "host.memory",
    "infiniband": "infiniband",
    "pci_names": "pci.functions",
    "numa_memory": "host.memory",
    "slots": "pci.functions",
    "bars": "pci.resources",
    "aer": "pci.aer",
    "config_space": "pci.config_space",
    "iommu": "pci.resources",
    "ib_ports": "infiniband",
    "modules": "host.software",
    "host": "host.host",
    "edac": "host.memory",
    "dimms": "host.memory",
    "network": "host.devices",
    "storage": "host.devices",
    "device_nodes": "host.software",
    "memlock": "host.memlock",
    "units": "host.software",
    "imex": "host.software",
    "kernel_log": "kernel_log",
    "gpu": "gpu.identity",
    "nvlink": "gpu.nvlink",
    "gpu_pairs": "gpu.nvlink",
    "gpu_board": "gpu.identity",
    "gpu_pcie": "gpu.readings",
    "gpu_memory": "gpu.readings",
    "gpu_ecc": "gpu.readings",
    "gpu_counters": "gpu.readings",
    "gpu_clocks": "gpu.readings",
    "gpu_power": "gpu.readings",
    "gpu_thermal": "gpu.readings",
    "gpu_modes": "gpu.identity",
    "gpu_processes": "gpu.identity",
    "gpu_affinity": "gpu.identity",
    "nvlink_capability": "gpu.nvlink",
    "nvlink_rate": "gpu.nvlink",
    "nvlink_errors": "gpu.nvlink",
    "p2p": "gpu.nvlink",
    "measurement": "results",
    "stated": "stated",
    "tool_reports": "results",
}
"""Module below ``probes`` by field of the snapshot, in the order in which they run."""

ALL = tuple(MODULES)
