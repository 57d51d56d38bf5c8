"""PCIe paths: the class of a pair, the physical links above a device and between two; line rates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dgxcheck.facts.ids import NVIDIA
from dgxcheck.facts.memory import NumaNode
from dgxcheck.facts.missing import Gap, Missing, need, or_gap, rows
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import Record, replace
from dgxcheck.topology.model import Device, Link, PciClass, Topology

NEAR: tuple[PciClass, ...] = ("PIX", "PXB")
"""Classes below a shared PCIe switch: those NCCL uses for GPUDirect RDMA by default (``NCCL_NET_GDR_LEVEL``)."""


def numa_node(function: PciFunction, numa: tuple[NumaNode, ...] | Missing) -> int | Missing:
    """The kernel's ``numa_node`` of a function; if missing or negative, the only node of a single-node host."""
    if isinstance(node := function.numa_node, int) and node >= 0:
        return node
    if not isinstance(numa, Missing) and len(numa) == 1:
        return numa[0].node
    where = f"/sys/bus/pci/devices/{function.bdf}/numa_node"
    return node if isinstance(node, Missing) else Missing(Gap.UNSUPPORTED, where, "the firmware reports no NUMA node")


def shared_bridges(a: tuple[str, ...], b: tuple[str, ...]) -> int:
    """How many bridges two paths below one root bus have in common, counted from the top."""
    count = 0
    for left, right in zip(a[1:-1], b[1:-1], strict=False):
        if left != right:
            break
        count += 1
    return count


def pci_class(a: PciFunction, b: PciFunction, numa: tuple[NumaNode, ...] | Missing) -> tuple[PciClass | None, str]:
    """The class that nvidia-smi prints for the pair, or None and the reason.

    A switch (upstream port and downstream ports) counts as one bridge, so one further bridge level on either side of
    the nearest common one is still PIX. Broadcom PEX88xxx show several levels in one chip: PXB, as nvidia-smi says too.
    """
    paths = []
    for function in (a, b):
        if isinstance(function.path, Missing):
            return None, f"PCI path of {function.bdf} unknown ({function.path})"
        if len(function.path) < 2:
            return None, f"PCI path of {function.bdf} has no root bus"
        paths.append(function.path)
    path_a, path_b = paths
    if path_a == path_b:
        return "PIX", ""
    if path_a[0] == path_b[0]:
        if not (shared := shared_bridges(path_a, path_b)):
            return "PHB", ""
        deepest = max(len(path_a), len(path_b)) - 2 - shared
        return ("PIX" if deepest <= 1 else "PXB"), ""
    nodes = []
    for function in (a, b):
        if isinstance(node := numa_node(function, numa), Missing):
            return None, f"NUMA node of {function.bdf} unknown ({node})"
        nodes.append(node)
    return ("NODE" if nodes[0] == nodes[1] else "SOC"), ""


GIGATRANSFERS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}
ENCODING = {1: 8 / 10, 2: 8 / 10, 3: 128 / 130, 4: 128 / 130, 5: 128 / 130, 6: 242 / 256}
"""Share of the transfers that carries data; generation 6 gives 14 of 256 bytes of a flit to error correction."""

NVLINK_GBS = {1: 20.0, 2: 25.0, 3: 25.0, 4: 25.0, 5: 50.0}
"""GB/s (1e9) per link and direction, rounded as in NVIDIA's white papers (NVML: 25.781 on V100, 26.562 on H100)."""


@or_gap
def pcie_gbs(gen: int | Missing, width: int | Missing) -> float | Missing:
    """GB/s (1e9) per direction of a PCIe link before packet overhead: 15.75 for generation 3 x16."""
    gen, width = need(gen), need(width)
    if gen not in GIGATRANSFERS or width <= 0:
        return Missing(Gap.GARBLED, "PCIe link", f"generation {gen} x{width}")
    return GIGATRANSFERS[gen] * ENCODING[gen] * width / 8


def nvlink_gbs(generation: int | None) -> float | Missing:
    """GB/s (1e9) per NVLink and direction."""
    if generation not in NVLINK_GBS:
        why = f"no line rate listed for NVLink generation {generation}" if generation else "NVLink generation unknown"
        return Missing(Gap.UNSUPPORTED, "nvmlDeviceGetNvLinkVersion", why)
    return NVLINK_GBS[generation]


BROADCOM = 0x1000
PEX = range(0xC010, 0xC100)
"""PEX88xxx and PEX89xxx: one chip shows itself as two or three levels of bridges."""
PEX_SLOWEST = 4
"""The first generation of these chips; a port that claims a lower maximum is a synthetic one."""


class Hop(Record):
    """One physical link: the port on the side of the root, and the device at its other end."""

    port: str
    device: str
    gen: int | Missing
    width: int | Missing
    max_gen: int | Missing
    """The lower of both ends' maxima, likewise ``max_width``; below a hypervisor's port the device's own."""
    max_width: int | Missing
    skip_reason: str
    """Why this is not a physical link (ports inside one switch chip); empty for a real link."""

    @property
    def narrow(self) -> bool | Missing:
        """Does it run on fewer lanes than both ends support? Idle GPUs keep their lanes."""
        return self._below(self.width, self.max_width)

    @property
    def slow(self) -> bool | Missing:
        """Does it run at a lower generation than both ends support? Only meaningful under load."""
        return self._below(self.gen, self.max_gen)

    @property
    def gbs(self) -> float | Missing:
        """GB/s per direction as the link is trained now."""
        return pcie_gbs(self.gen, self.width)

    @property
    def max_gbs(self) -> float | Missing:
        """GB/s per direction at the lower of both ends' maxima."""
        return pcie_gbs(self.max_gen, self.max_width)

    def __str__(self) -> str:
        return f"{self.port} - {self.device}"

    @or_gap
    def _below(self, now: int | Missing, most: int | Missing) -> bool | Missing:
        if self.skip_reason:
            return Missing(Gap.UNSUPPORTED, str(self), self.skip_reason)
        return need(now) < need(most)


def hops_above(path: tuple[str, ...], functions: Mapping[str, PciFunction]) -> tuple[Hop, ...]:
    """The links between a device and its root bus, from the top down; empty for a device on the root bus itself.

    A path alternates between both ends of a link: root port and upstream port, downstream port and upstream port or
    device. Below a bridge to conventional PCI the last function has no link.
    """
    chain = path[1:]
    return tuple(_hop(port, device, functions) for port, device in zip(chain[::2], chain[1::2], strict=False))


def hops_of(devices: Iterable[Device | PciFunction], functions: Mapping[str, PciFunction]) -> dict[str, Hop]:
    """The links above all of these, by the device at the lower end; nothing where a path is not known."""
    return {hop.device: hop for device in devices for hop in hops_above(rows(device.path), functions)}


def data_ends(a: Device, b: Device) -> tuple[Device, Device]:
    """Where data between two devices leave and enter: of a Direct NIC at its DMA function beside the other's."""
    return _data_end(a, b), _data_end(b, a)


def _data_end(device: Device, other: Device) -> Device:
    if (dma := device.dma) is None or isinstance(dma.path, Missing) or isinstance(other.path, Missing):
        return device
    beside = dma.path[0] == other.path[0]
    return replace(device, bdf=dma.bdf, path=dma.path, function=dma, dma=None) if beside else device


@or_gap
def data_paths(a: Device, b: Device) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paths of both data ends; Missing where one is not known."""
    up, down = (need(end.path) for end in data_ends(a, b))
    return up, down


@or_gap
def hops_between(a: Device, b: Device, functions: Mapping[str, PciFunction]) -> tuple[Hop, ...]:
    """The links that traffic from ``a`` to ``b`` crosses, in order: up to the nearest common bridge, then down."""
    ours, theirs = paths = need(data_paths(a, b))
    shared = set(ours[1 : 1 + shared_bridges(ours, theirs)]) if ours[:1] == theirs[:1] else ()
    up, down = ([hop for hop in hops_above(path, functions) if hop.device not in shared] for path in paths)
    both = {hop.port for hop in up} & {hop.port for hop in down}  # two functions of one card are on the same link
    return tuple(hop for hop in (*reversed(up), *down) if hop.port not in both)


def sharers(hop: Hop, topology: Topology) -> tuple[str, ...]:
    """Names of the devices whose path to the root bus contains this link."""
    return tuple(device.name for device in topology.below(hop.port))


def meeting_point(a: Device, b: Device, link: Link, functions: Mapping[str, PciFunction]) -> str | Missing:
    """What joins the PCI paths of two devices: ``PCIe switch 0000:04:00.0 (10b5:8796)``; Missing where unknown."""
    if isinstance(paths := data_paths(a, b), Missing):
        return paths
    ours, theirs = paths
    if link.pci in ("PIX", "PXB"):
        if not (shared := shared_bridges(ours, theirs)):
            return f"both are functions of {ours[-1]}"
        bridge = ours[shared]
        kind = "switch" if shared % 2 == 0 else "port"  # root port, upstream port, downstream port, upstream port ...
        return f"PCIe {kind} {bridge}{_ids(functions.get(bridge))}"
    if link.pci == "PHB":
        return f"host bridge {ours[0]}"
    if link.pci == "NODE":
        return f"host bridges {ours[0]} and {theirs[0]} of NUMA node {a.numa_node}"
    if link.pci == "SOC":
        return f"socket interconnect between NUMA nodes {a.numa_node} ({ours[0]}) and {b.numa_node} ({theirs[0]})"
    return Missing(Gap.ABSENT, f"{a.name} {b.name}", link.pci_reason)


def _ids(function: PciFunction | None) -> str:
    return f" ({function.ids})" if function is not None and function.ids else ""


def _hop(port: str, device: str, functions: Mapping[str, PciFunction]) -> Hop:
    upper, lower = functions.get(port), functions.get(device)
    if upper is None or lower is None:
        gone = Missing(Gap.ABSENT, f"/sys/bus/pci/devices/{port if upper is None else device}")
        return Hop(port=port, device=device, gen=gone, width=gone, max_gen=gone, max_width=gone, skip_reason="")
    return Hop(
        port=port,
        device=device,
        gen=upper.link_gen if isinstance(lower.link_gen, Missing) else lower.link_gen,
        width=upper.link_width if isinstance(lower.link_width, Missing) else lower.link_width,
        max_gen=lower.max_link_gen if is_virtual(upper) else _lower(upper.max_link_gen, lower.max_link_gen),
        max_width=lower.max_link_width if is_virtual(upper) else _lower(upper.max_link_width, lower.max_link_width),
        skip_reason=_skip_reason(upper, lower),
    )


VIRTUAL_BRIDGES = {0x1B36, 0x15AD}
"""PCI vendors of QEMU's and VMware's root ports."""


def is_virtual(port: PciFunction | None) -> bool:
    """Is it a hypervisor's own, whose generation and lanes are made up?"""
    return port is not None and port.vendor in VIRTUAL_BRIDGES


@or_gap
def _lower(upper: int | Missing, lower: int | Missing) -> int:
    return min(need(lower), need(upper))


_ON_PACKAGE = 0x2E12
"""PCI device of the GPU of a GB10, a die beside that of the CPU: it claims a link of generation 1 with one lane."""
NO_LINK = "no PCIe link: GPU and CPU are on one package"


def _skip_reason(upper: PciFunction, lower: PciFunction) -> str:
    """A GPU on the package of its CPU has no PCIe link: https://github.com/Syllo/nvtop/issues/426.

    Ports inside one Broadcom chip are no link, and its synthetic ports report nonsense (5 GT/s above 32 GT/s).

    Two such chips in a row look the same in sysfs; only ``/sys/kernel/pci_switch_link`` distinguishes them.
    """
    if (lower.vendor, lower.device) == (NVIDIA, _ON_PACKAGE):
        return NO_LINK
    ends = [end for end in (upper, lower) if end.vendor == BROADCOM and end.device in PEX]
    if len(ends) == 2 and upper.device == lower.device:
        return "ports inside one switch"
    if any(isinstance(end.max_link_gen, int) and end.max_link_gen < PEX_SLOWEST for end in ends):
        return "a synthetic port of the switch"
    return ""
