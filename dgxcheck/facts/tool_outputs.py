"""What other tools say: results of tests and errors in logs, and the matrices of ``nvidia-smi topo``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dgxcheck.facts.bdf import IdPair
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgxcheck.facts.faults.kind import FaultKind

Outcome = Literal["pass", "warn", "fail", "unknown", "note"]
"""``unknown``: not as it should be, but by that output alone it may be meant so. A note says what is neither good nor
bad by itself: counts of errors without the time that they are from."""
DISK = "/dev/"
"""Begins the subject of what a tool says of a disk or an array."""
OF_VGPU_SERVICES = frozenset(("vGPU-Manager-start", "vGPU-Manager-configuration"))
"""Topics of what nvidia-vgpu-mgr and nvidia-vgpud log, not the kernel."""
ON_WINDOWS = "nvidia-smi-on-windows"
"""Topic of a note: the machine has no commands of Linux."""
NOT_STARTED = "fabric-manager-not-started"
"""Topic: Fabric Manager did not start, on a machine that may have no NVSwitch."""
OF_SERVICE = (NOT_STARTED, "fabric-manager-service")
"""Topics: what systemd says of Fabric Manager's service."""
LISTED_NVSWITCHES = "dcgmi-discovery-nvswitches"
"""Topic of a note: its count is the number of NVSwitches that DCGM has on its list."""
OVER_TCP = "NCCL-over-tcp"
"""Topic of a note: NCCL's channels between hosts use TCP, by a log that shows no HCA."""
OF_INTERFACES = ("network-log-carrier", "ibdev2netdev-interface")
"""Topics: an interface lost its carrier, by a log that may have been written long ago, or is down."""
CONFIGURED = "fabric-manager-configured"
"""Topic: Fabric Manager found NVSwitches and set them up."""


class ToolReport(Record, nature="event"):
    """One result of one tool about one device or the host."""

    subject: str
    """``GPU3`` as the tool numbers it, a bdf, of an NVSwitch with its port (``0000:86:00.0/35``), the name of an HCA, a
    disk (``/dev/md0``), or ``host``."""
    tool: str
    topic: str
    """The tool's own test, or the kind of its error: ``memory``, ``ib-completion``."""
    outcome: Outcome
    fault: FaultKind | None
    """None where nothing is wrong, and of an outcome that names none."""
    text: str
    """What is wrong, for people, in one line."""
    count: int = 1
    """How often it is reported."""


MATRIX = "nvidia-smi topo -m"
"""Where the labels of an imported matrix were read."""

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
