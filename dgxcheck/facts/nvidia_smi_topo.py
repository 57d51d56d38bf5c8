"""What another tool says of devices that it knows by name: the matrices of ``nvidia-smi topo``."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.bdf import IdPair
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record

Labels = Mapping[IdPair, "str | Missing"]
"""``NV2``, ``PIX`` .. ``SOC`` (never ``SYS``) by pair; one that no row shows is not there."""


class NvidiaSmiTopo(Record, nature="event"):
    """What ``nvidia-smi topo`` and ``nvlink -s`` printed.

    A device is ``GPUn``, a NIC by its name or as ``NICn``, or, where the box is known, a bdf.
    """

    names: tuple[str, ...]
    """GPUs in the order of their numbers, then NICs."""
    labels: Labels
    """Of ``topo -m``: NVLinks where there are some, else the PCI class."""
    pci_labels: Labels
    """Of ``topo -mp``, or of a matrix that may be one: the PCI class alone."""
    cpu_affinity: Mapping[str, str]
    numa_affinity: Mapping[str, str]
    gpu_numa_id: Mapping[str, str]
    nic_names: Mapping[str, str]
    """``NIC0`` -> ``mlx5_0``"""
    nvlinks: Mapping[str, int]
    """NVLink positions that ``nvlink -s`` lists of a GPU."""
    p2p: Mapping[str, Mapping[IdPair, str]]
    """``read``, ``write``, ``nvlink``, ``atomics`` or ``prop`` -> status words; under ```` where nobody says which."""
