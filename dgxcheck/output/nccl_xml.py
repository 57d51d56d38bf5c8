"""The topology file that NCCL reads from ``NCCL_TOPO_FILE``, as ``NCCL_TOPO_DUMP_FILE`` writes it.

https://github.com/NVIDIA/nccl, src/graph/xml.h and topo.cc. Of a PCIe switch NCCL knows the upstream port alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from dgxcheck.facts.host import Cpu
from dgxcheck.facts.infiniband import IbPort
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.sysfs import ranges
from dgxcheck.launch import Placement
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Device, Topology

_GEN = {1: "2.5 GT/s", 2: "5 GT/s", 3: "8 GT/s", 4: "16 GT/s", 5: "32 GT/s", 6: "64 GT/s"}
_GPU_CLASS, _SWITCH_CLASS = "0x030200", "0x068000"
_NVSWITCHES = "0000:ff:ff.0"
"""A name for NVSwitches that the PCI tree does not show: NCCL takes every target of a switch's class for the same."""
_DMA = "_dma"
"""A Direct NIC is two devices to NCCL, the second at its DMA function (transport/net_ib, ``NCCL_IB_DATA_DIRECT``)."""
Rails = Mapping[str, tuple[int | None, int | None]]
"""Rail and plane by HCA: what the fabric tells and a machine does not know."""


def render(snapshot: Snapshot, topology: Topology, placed: Sequence[Placement], rails: Rails | None = None) -> str:
    """Every GPU and HCA below its switches and CPU, with NVLinks and ports; what is not known is left out."""
    system = Element("system", version="1")
    cpus: dict[int, Element] = {}
    nodes: dict[str, Element] = {}
    placed_devices = [device for device in topology.devices if device.bdf and device.is_vf is not True]
    for device in sorted(placed_devices, key=lambda device: (_node(device), device.bdf)):
        function, node = device.function, _node(device)
        if function is None or isinstance(function.path, Missing):
            continue
        if node not in cpus:
            cpus[node] = SubElement(system, "cpu", _cpu(snapshot, node))
        at = _place(cpus[node], nodes, function.path, topology)
        if device.kind == "gpu":
            _gpu(at, snapshot, topology, device, placed)
            continue
        way = (rails or {}).get(device.name, (None, None))
        _nic(at, snapshot, device.name, way)
        if device.dma is not None and not isinstance(device.dma.path, Missing):
            _nic(_place(cpus[node], nodes, device.dma.path, topology), snapshot, device.name, way, _DMA)
    indent(system)
    return tostring(system, encoding="unicode") + "\n"


def _place(at: Element, nodes: dict[str, Element], path: Sequence[str], topology: Topology) -> Element:
    for bdf in _seen_by_nccl(path, topology):
        if bdf not in nodes:
            nodes[bdf] = SubElement(at, "pci", _pci(topology.functions[bdf]))
        at = nodes[bdf]
    return at


def _node(device: Device) -> int:
    return device.numa_node if isinstance(device.numa_node, int) else 0


def _seen_by_nccl(path: Sequence[str], topology: Topology) -> list[str]:
    """The upstream ports above a device, then itself: NCCL goes up two levels at a time (topo.cc, parent of a node)."""
    hops = [bdf for bdf in path if bdf in topology.functions]
    return [*reversed(hops[-3:0:-2]), hops[-1]] if len(hops) > 2 else hops[-1:]


def _cpu(snapshot: Snapshot, node: int) -> dict[str, str]:
    attributes = {"numaid": str(node)}
    for each in rows(snapshot.numa):
        if each.node == node and isinstance(each.cpulist, str) and (runs := ranges(each.cpulist)):
            attributes["affinity"] = _mask(runs)
    cpu = snapshot.known_host.cpu
    if isinstance(cpu, Cpu) and isinstance(cpu.vendor, str) and not isinstance(cpu.family, Missing):
        attributes |= {"arch": "x86_64", "vendor": cpu.vendor, "familyid": str(cpu.family)}
        attributes |= {} if isinstance(cpu.model_number, Missing) else {"modelid": str(cpu.model_number)}
    return attributes


def _mask(runs: Sequence[range]) -> str:
    """``000000ff,ffff0000``: 32 CPUs a word, the highest first, as the kernel writes ``local_cpus``."""
    bits = sum(1 << cpu for run in runs for cpu in run)
    words = max(1, (bits.bit_length() + 31) // 32)
    return ",".join(f"{bits >> 32 * word & 0xFFFFFFFF:08x}" for word in reversed(range(words)))


def _pci(function: PciFunction) -> dict[str, str]:
    ids = {
        "class": (function.class_code, 6), "vendor": (function.vendor, 4), "device": (function.device, 4),
        "subsystem_vendor": (function.subsystem_vendor, 4), "subsystem_device": (function.subsystem_device, 4),
    }  # fmt: skip
    attributes = {"busid": function.bdf}
    attributes |= {name: f"0x{value:0{width}x}" for name, (value, width) in ids.items() if isinstance(value, int)}
    gen, width = function.max_link_gen, function.max_link_width
    attributes |= {"link_speed": _GEN[gen]} if isinstance(gen, int) and gen in _GEN else {}
    return attributes | ({"link_width": str(width)} if isinstance(width, int) else {})


def _gpu(at: Element, snapshot: Snapshot, topology: Topology, gpu: Device, placed: Sequence[Placement]) -> None:
    """Nothing for a GPU that NVML does not open: NCCL reads an empty number as 0, which is another GPU."""
    rank = next((number for number, each in enumerate(placed) if each.gpu is gpu), None)
    if rank is None:
        return
    attributes = {"dev": str(gpu.index if isinstance(gpu.index, int) else rank), "rank": str(rank)}
    for board in rows(snapshot.gpu_board):
        if board.bdf == gpu.bdf and not isinstance(board.compute_capability, Missing):
            attributes["sm"] = "{}{}".format(*board.compute_capability)
    element = SubElement(at, "gpu", attributes)
    for target, count, kind in _nvlinks(snapshot, topology, gpu):
        SubElement(element, "nvlink", {"target": target, "count": str(count), "tclass": kind})


def _nvlinks(snapshot: Snapshot, topology: Topology, gpu: Device) -> Iterator[tuple[str, int, str]]:
    """Target, number and class of it; links to NVSwitches that the PCI tree does not show have one target."""
    links = [(other, topology.link(gpu, other)) for other in topology.gpus if other is not gpu]
    switched = [link.nvlinks for _, link in links if link.switched and link.nvlinks]
    if not switched:
        for other, link in links:
            if link.nvlinks:
                yield other.bdf or "", link.nvlinks, _class_of(topology, other.bdf) or _GPU_CLASS
        return
    switches = Counter(
        each.remote_bdf for each in rows(snapshot.nvlink)
        if each.bdf == gpu.bdf and each.up is True and isinstance(each.remote_bdf, str)
        and _class_of(topology, each.remote_bdf) == _SWITCH_CLASS
    )  # fmt: skip
    yield from ((bdf, count, _SWITCH_CLASS) for bdf, count in sorted(switches.items()))
    if (hidden := max(switched) - switches.total()) > 0:
        yield _NVSWITCHES, hidden, _SWITCH_CLASS


def _class_of(topology: Topology, bdf: str | None) -> str:
    """``0x030200``; empty where it is not known."""
    function = topology.functions.get(bdf or "")
    return f"0x{function.class_code:06x}" if function is not None and isinstance(function.class_code, int) else ""


def _nic(at: Element, snapshot: Snapshot, hca: str, way: tuple[int | None, int | None], suffix: str = "") -> None:
    element = SubElement(at, "nic")
    attributes = {name: str(number) for name, number in zip(("rail", "plane"), way, strict=True) if number is not None}
    guids = {each.name: each.node_guid for each in rows(snapshot.infiniband) if isinstance(each.node_guid, str)}
    for device in rows(snapshot.ib_ports):
        for port in rows(device.ports) if device.device == hca else ():
            SubElement(element, "net", _net(port, guids) | {"name": f"{hca}{suffix}"} | attributes)


def _net(port: IbPort, guids: Mapping[str, str]) -> dict[str, str]:
    attributes = {"name": port.device, "port": str(port.port)}
    attributes |= {} if isinstance(port.rate, Missing) else {"speed": str(round(port.rate.gbit_per_s * 1000))}
    return attributes | ({"guid": f"0x{guids[port.device].replace(':', '')}"} if port.device in guids else {})
