"""Probes by the field of the snapshot that they fill: a function of that name, ``pci(source) -> facts``.

Names, not modules: a command imports only the probes that it needs. Files come before NVML, which is asked meanwhile:
a driver that takes all the time there is keeps no file from being read.
"""

WIRING = ("pci", "vpd", "numa", "infiniband", "gpu", "nvlink", "gpu_pairs", "stated")
"""What the topology engine is built from."""

COUNTERS = ("aer", "edac", "ib_ports", "nvlink", "gpu_ecc", "gpu_counters", "nvlink_errors", "network")
"""What is worth asking again after a while."""

_FIELDS = {
    "pci.functions": "pci pci_names slots empty_ports vpd bars iommu",
    "host.memory": "numa numa_memory edac dimms",
    "infiniband": "infiniband ib_ports",
    "pci.config_space": "aer config_space",
    "host.software": "modules device_nodes units imex memlock",
    "host.host": "host network storage",
    "kernel_log": "kernel_log",
    "gpu.identity": "gpu gpu_board gpu_modes gpu_processes gpu_affinity",
    "gpu.nvlink": "nvlink gpu_pairs nvlink_capability nvlink_rate nvlink_errors p2p",
    "gpu.readings": "gpu_pcie gpu_memory gpu_ecc gpu_counters gpu_clocks gpu_power gpu_thermal",
    "results": "measurement tool_reports",
    "stated": "stated",
}
"""Fields of the snapshot by module below ``probes``, in the order in which they run."""

MODULES = {field: module for module, fields in _FIELDS.items() for field in fields.split()}

ALL = tuple(MODULES)
