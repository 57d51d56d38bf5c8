"""From facts to the wiring of a box: which devices there are and what joins each pair of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dgxcheck.facts.bdf import bus_order, gpu_at
from dgxcheck.facts.ids import DATA_DIRECT, DISPLAY, NVIDIA
from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.memory import NumaNode
from dgxcheck.facts.missing import Gap, Missing, rows
from dgxcheck.facts.nvml.gpu import Gpu, Nvml
from dgxcheck.facts.pci import PciFunction, Vpd
from dgxcheck.facts.typical import gathered
from dgxcheck.topology import notes
from dgxcheck.topology.model import Device, Link, Links, PciClass, Topology
from dgxcheck.topology.nvlinks import Count, End, between, end, unknown_end
from dgxcheck.topology.paths import data_ends, numa_node, pci_class

if TYPE_CHECKING:
    from dgxcheck.survey import Snapshot

_Row = tuple[str, str, "Gpu | None"]
NOTHING_STATED = Missing(Gap.UNASKED, "stated")
NO_NVLINKS = Count(0)
NOT_LISTED = Missing(Gap.ABSENT, "nvmlDeviceGetHandleByIndex", "NVML does not list this GPU")


def build(facts: Snapshot) -> Topology:
    """The topology of a box from its facts; a fact that could not be read is Missing in the device or link it is of.

    GPUs come in NVML's order, then NICs in the order of ``infiniband``. ``stated`` is an imported ``nvidia-smi topo``
    matrix, used only for what the box itself does not report.
    """
    functions, ib, nvml, nvlinks, numa = facts.pci, facts.infiniband, facts.gpu, facts.nvlink, facts.numa
    if isinstance(nvml, Nvml) and isinstance(nvml.count, Missing) and not nvml.gpus:
        nvml = nvml.count
    by_bdf = {function.bdf: function for function in rows(functions)}
    absent = functions if isinstance(functions, Missing) else Missing(Gap.ABSENT, "/sys/bus/pci/devices")
    gpus: list[Device] = []
    ends: dict[str, End] = {}
    listed = _gpu_rows(by_bdf, nvml)
    bdfs = {bdf for _, bdf, _ in listed}
    unlisted = nvml if isinstance(nvml, Missing) else NOT_LISTED
    nvlinks_of = gathered((link.bdf, link) for link in rows(nvlinks))
    for name, bdf, gpu in listed:
        if isinstance(nvlinks, Missing):
            ends[name] = unknown_end(nvlinks)
        elif gpu is None:
            ends[name] = unknown_end(unlisted)
        else:
            ends[name] = end(nvlinks_of.get(bdf, ()), bdfs, by_bdf)
        gpus.append(_gpu(name, bdf, gpu or unlisted, ends[name], by_bdf.get(bdf) or absent, numa))
    boards = {row.bdf: row for row in rows(facts.vpd)}
    nics = tuple(_nic(device, by_bdf, numa, absent, boards) for device in rows(ib))
    devices = (*gpus, *nics)

    def link_of(a: int, b: int) -> Link:
        count = NO_NVLINKS if b >= len(listed) else _count(listed[a], listed[b], ends)
        return _link(devices[a], devices[b], count, numa)

    links = Links([device.name for device in devices], link_of)
    unanswered = notes.unanswered(nvml, facts.gpu_pairs)
    sentences = (
        *notes.sources(facts, nvml, gpus),
        *notes.unknown_class(by_bdf.values()),
        *notes.nvlink_ends(gpus, ends, (_count(a, b, ends) for a, b in _joined(listed, ends)), nvlinks, facts.stated),
        *notes.ancestors(gpus, links, facts.gpu_pairs),
        *notes.unanswered_queries(unanswered),
        *notes.printed_otherwise(gpus, nics),
        *notes.virtual(gpus, by_bdf),
        *notes.nvlink_domains(gpus, rows(facts.gpu_modes)),
    )
    topology = Topology(
        devices=devices, links=links, headline=notes.headline(nvlinks, gpus), notes=sentences,
        gaps=(*_gaps(facts, nvml, gpus, ends), *unanswered), functions=by_bdf,
    )  # fmt: skip
    if isinstance(facts.stated, Missing):
        return topology
    from dgxcheck.topology.nvidia_smi_topo import add_imported

    unlisted_kinds = {"nic"} if isinstance(ib, Missing) else set()
    numberless = any(isinstance(gpu.index, Missing) for gpu in gpus)
    if isinstance(nvml, Missing) or any(gap.gap is Gap.UNASKED for gap in nvml.lost) or numberless:
        unlisted_kinds.add("gpu")
    return add_imported(topology, facts.stated, unlisted_kinds)


def _gaps(facts: Snapshot, nvml: Nvml | Missing, gpus: list[Device], ends: Mapping[str, End]) -> Iterator[Missing]:
    """Facts that should be there; no InfiniBand, no NVML, or NVML not recorded, is no gap."""
    sources = ((facts.pci, (Gap.UNASKED,)), (facts.infiniband, (Gap.ABSENT, Gap.UNASKED)),
               (nvml, (Gap.ABSENT, Gap.UNRECORDED, Gap.UNASKED)))
    yield from (gap for gap, normal in sources if isinstance(gap, Missing) and gap.gap not in normal)
    if isinstance(nvml, Nvml):
        yield from nvml.lost
        nvlink_gaps = (ends[gpu.name].gap for gpu in gpus if gpu.index is not None)
        yield from (gap for gap in nvlink_gaps if gap is not None and gap.gap is not Gap.UNASKED)
    yield from (gpu.path for gpu in gpus if isinstance(gpu.path, Missing))
    for function in rows(facts.pci):
        code, vendor = function.class_code, function.vendor
        if isinstance(code, Missing) and vendor == NVIDIA:
            yield code
        elif not isinstance(code, Missing) and code >> 16 == DISPLAY and isinstance(vendor, Missing):
            yield vendor


def gpus_on_bus(functions: Collection[PciFunction]) -> list[str]:
    """Bdfs of NVIDIA display and 3D controllers, and of NVIDIA's ``.0`` functions with an unreadable class; bus order.

    Excludes a GPU's audio and USB functions, and bridges on the path of another function.
    """
    bridges = {bdf for function in functions if isinstance(function.path, tuple) for bdf in function.path[1:-1]}
    bdfs = [function.bdf for function in functions if function.bdf not in bridges and _may_be_gpu(function)]
    return sorted(bdfs, key=bus_order)


def _may_be_gpu(function: PciFunction) -> bool:
    code = function.class_code
    if function.vendor != NVIDIA:
        return False
    return function.bdf.endswith(".0") if isinstance(code, Missing) else code >> 16 == DISPLAY


def _gpu_rows(by_bdf: dict[str, PciFunction], nvml: Nvml | Missing) -> list[_Row]:
    on_bus = gpus_on_bus(by_bdf.values())
    if isinstance(nvml, Missing):
        return [(f"GPU{number}", bdf, None) for number, bdf in enumerate(on_bus)]
    listed = {gpu.bdf for gpu in nvml.gpus}
    return [(_name(gpu), gpu.bdf, gpu) for gpu in nvml.gpus] + [
        (gpu_at(bdf), bdf, None) for bdf in on_bus if bdf not in listed
    ]


def _name(gpu: Gpu) -> str:
    """``GPU3``; ``GPU@0000:0a:00.0`` where an imported text does not prove its number, ``unnamed GPU`` if no bus id."""
    return gpu_at(gpu.bdf) if isinstance(gpu.index, Missing) else f"GPU{gpu.index}"


def _count(a: _Row, b: _Row, ends: Mapping[str, End]) -> Count:
    return between((a[0], a[1], ends[a[0]]), (b[0], b[1], ends[b[0]]))


def _joined(rows: Sequence[_Row], ends: Mapping[str, End]) -> list[tuple[_Row, _Row]]:
    """Pairs of which one GPU reports NVLinks to the other."""
    place = {bdf: number for number, (_, bdf, _) in enumerate(rows)}
    pairs = {tuple(sorted((place[bdf], place[peer]))) for name, bdf, _ in rows for peer in ends[name].gpus
             if peer != bdf}  # fmt: skip
    return [(rows[a], rows[b]) for a, b in sorted(pairs)]


def _of_function(function: PciFunction | Missing, numa: tuple[NumaNode, ...] | Missing) -> dict[str, Any]:
    """What a device has of its PCI function."""
    if isinstance(function, Missing):
        return {"function": None, **dict.fromkeys(("path", "numa_node", "cpu_affinity"), function)}
    return {
        "function": function, "path": function.path, "numa_node": numa_node(function, numa),
        "cpu_affinity": function.local_cpulist,
    }  # fmt: skip


def _gpu(
    name: str, bdf: str, gpu: Gpu | Missing, links: End, function: PciFunction | Missing,
    numa: tuple[NumaNode, ...] | Missing,
) -> Device:  # fmt: skip
    return Device(
        name=name, kind="gpu", bdf=bdf, index=None if isinstance(gpu, Missing) else gpu.index,
        uuid=gpu if isinstance(gpu, Missing) else gpu.uuid,
        gpu_numa_id=gpu if isinstance(gpu, Missing) else gpu.gpu_numa_id, is_vf=None,
        nvlink_positions=links.positions if links.gap is None else links.gap, **_of_function(function, numa),
    )  # fmt: skip


def _nic(
    device: IbDevice, by_bdf: dict[str, PciFunction], numa: tuple[NumaNode, ...] | Missing, absent: Missing,
    boards: Mapping[str, Vpd],
) -> Device:  # fmt: skip
    function = device.bdf if isinstance(device.bdf, Missing) else by_bdf.get(device.bdf) or absent
    board = boards.get(device.bdf) if isinstance(device.bdf, str) else None
    return Device(
        name=device.name, kind="nvswitch-bridge" if board is not None and board.manages_nvswitches is True else "nic",
        bdf=None if isinstance(device.bdf, Missing) else device.bdf, index=None, uuid=None, gpu_numa_id=None,
        is_vf=device.is_vf, nvlink_positions=None, **_of_function(function, numa),
        dma=None if board is None else _dma(board, boards, by_bdf),
    )  # fmt: skip


def _dma(nic: Vpd, boards: Mapping[str, Vpd], by_bdf: Mapping[str, PciFunction]) -> PciFunction | None:
    """The DMA function of the same adapter, by the UUID in the vital product data of both."""
    same = (by_bdf.get(bdf) for bdf, row in boards.items() if isinstance(nic.uuid, str) and row.uuid == nic.uuid)
    return next((function for function in same if function is not None and function.device == DATA_DIRECT), None)


def _link(a: Device, b: Device, count: Count, numa: tuple[NumaNode, ...] | Missing) -> Link:
    own, _ = _pci(a, b, numa)
    pci, reason = _pci(*data_ends(a, b), numa)
    printed = own
    if own == "NODE" and a.kind == "gpu" != b.kind and isinstance(a.gpu_numa_id, int):
        printed = "SOC"  # of GB200 nvidia-smi prints SYS throughout: sgl-project/sglang issue 11208
    return Link(
        a=a.name, b=b.name, pci=pci, pci_reason=reason, nvlinks=count.links, nvlink_reason=count.reason,
        nvlink_generation=count.generation, switched=count.switched, printed=printed if printed != pci else None,
    )  # fmt: skip


def _pci(a: Device, b: Device, numa: tuple[NumaNode, ...] | Missing) -> tuple[PciClass | None, str]:
    if a.function is not None and b.function is not None:
        return pci_class(a.function, b.function, numa)
    without = a if a.function is None else b
    return None, f"{without.name} has no PCI function here ({without.path})"
