"""Probes by name, in the order they run: a module each, with one function ``probe(source) -> facts``.

Names, not modules: a command imports only the probes that it needs. Files come before NVML, which is asked meanwhile:
a driver that takes all the time there is keeps no file from being read.
"""

WIRING = ("pci", "numa", "infiniband", "gpu", "nvlink", "gpu_pairs", "stated")
"""What the topology engine is built from."""

COUNTERS = ("aer", "edac", "ib_ports", "gpu_ecc", "gpu_counters", "nvlink_errors")
"""What is worth asking again after a while."""

ALL = (
    "pci",
    "numa",
    "infiniband",
    "pci_names",
    "numa_memory",
    "slots",
    "bars",
    "aer",
    "config_space",
    "iommu",
    "ib_ports",
    "modules",
    "host",
    "edac",
    "network",
    "storage",
    "device_nodes",
    "memlock",
    "kernel_log",
    "gpu",
    "nvlink",
    "gpu_pairs",
    "gpu_board",
    "gpu_pcie",
    "gpu_memory",
    "gpu_ecc",
    "gpu_counters",
    "gpu_clocks",
    "gpu_power",
    "gpu_thermal",
    "gpu_modes",
    "gpu_processes",
    "gpu_affinity",
    "nvlink_capability",
    "nvlink_errors",
    "p2p",
    "measurement",
    "stated",
)
