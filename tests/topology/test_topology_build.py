"""Devices, links and notes of a box, from whole and from broken facts."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from topology_boxes import (
    DGX1_GPUS,
    NO_FILE,
    V100,
    Box,
    dgx1,
    dgx1_pci,
    direct,
    down,
    function,
    gpu_at,
    ib,
    nic_at,
    nodes,
    nvml,
    tree,
)

from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvml.gpu import Nvml
from dgxcheck.facts.nvml.nvlink import GpuPair, NvLink
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import replace
from dgxcheck.topology.model import Topology
from dgxcheck.topology.paths import numa_node, pci_class


def labels(topology: Topology) -> dict[tuple[str, str], str]:
    return {(link.a, link.b): link.label for link in topology.links}


def test_dgx1_is_labelled_as_recorded() -> None:
    topology = dgx1().topology()
    assert [device.name for device in topology.devices] == [f"GPU{i}" for i in range(8)] + [
        f"mlx5_{i}" for i in range(4)
    ]
    matrix = topology.links
    for a, b in combinations(range(8), 2):
        link = matrix[f"GPU{a}", f"GPU{b}"]
        assert (link.pci, link.nvlinks) == (dgx1_pci(a, b), V100.get((a, b), 0))
        assert link.label == (f"NV{link.nvlinks}" if link.nvlinks else link.pci)
        assert link.nvlink_generation == (2 if link.nvlinks else None)
    for gpu in range(8):
        for nic in range(4):
            due = "PIX" if gpu // 2 == nic else "PHB" if gpu // 4 == nic // 2 else "SOC"
            link = matrix[f"mlx5_{nic}", f"GPU{gpu}"]
            assert (link.label, link.nvlinks) == (due, 0)
    assert topology.notes == ()
    assert topology.device("GPU4") == topology.device("0000:85:00.0")
    assert topology.device("GPU9") is None
    fifth = topology.gpus[5]
    assert (fifth.index, fifth.uuid, fifth.numa_node, fifth.cpu_affinity) == (5, "GPU-5", 1, "cpus of node 1")
    assert fifth.nvlink_positions == 6


def test_without_nvml_gpus_are_in_bus_order_and_nvlink_is_unknown() -> None:
    whole = dgx1()
    gap = Missing(Gap.ABSENT, "nvmlInit", "library not found")
    topology = whole._replace(nvml=gap, nvlinks=gap, pairs=gap).topology()
    assert [(gpu.name, gpu.bdf) for gpu in topology.gpus] == [(f"GPU{i}", bdf) for i, bdf in enumerate(DGX1_GPUS)]
    assert all(gpu.index is None and gpu.uuid == gap and gpu.nvlink_positions == gap for gpu in topology.gpus)
    between_gpus = [link for link in topology.links if link.b.startswith("GPU")]
    assert all(link.nvlinks is None and "library not found" in link.nvlink_reason for link in between_gpus)
    assert labels(topology)["GPU0", "GPU1"] == "PIX"
    assert topology.headline == "NVLink is unknown (nvmlInit: library not found): showing PCI paths."
    assert topology.notes == ("GPUs are numbered in bus order: NVML gave no indexes.",)


def test_a_gpu_that_nvml_lost_keeps_its_row() -> None:
    whole = dgx1()
    others = [bdf for bdf in DGX1_GPUS if bdf != "0000:0b:00.0"]
    assert not isinstance(whole.nvlinks, Missing)
    left = tuple(
        down(link.bdf, link.link) if link.remote_bdf == "0000:0b:00.0" else link
        for link in whole.nvlinks
        if link.bdf != "0000:0b:00.0"
    )
    lost = Missing(Gap.LOST, "nvmlDeviceGetHandleByIndex 3", "NVML 15: GPU is lost", 15)
    topology = whole._replace(nvml=nvml(others, (lost,)), nvlinks=left).topology()
    assert [gpu.name for gpu in topology.gpus] == [f"GPU{i}" for i in range(7)] + ["GPU@0000:0b:00.0"]
    link = topology.links["GPU@0000:0b:00.0", "GPU0"]
    assert (link.nvlinks, link.pci) == (0, "PHB")
    assert topology.links["GPU0", "GPU1"].nvlinks == 1
    assert topology.notes == (
        "NVML enumerates GPU 3 (probably GPU@0000:0b:00.0) but cannot open it (nvmlDeviceGetHandleByIndex 3: "
        "NVML 15: GPU is lost; check the kernel log for Xid 79, then power-cycle the machine).",
    )
    assert topology.gaps == (lost,)


def test_a_gpu_that_only_nvml_lists_has_no_pci_cells() -> None:
    box = Box(
        functions=tree([gpu_at("pci0000:00", "0000:00:01.0", "0000:01:00.0", node=0)]),
        nvml=nvml(["0000:01:00.0", "0000:02:00.0"]),
        nvlinks=direct(["0000:01:00.0", "0000:02:00.0"], {(0, 1): 2}),
        numa=nodes(1),
    )
    topology = box.topology()
    link = next(iter(topology.links))
    assert (link.pci, link.label) == (None, "NV2")
    assert "GPU1 has no PCI function here" in link.pci_reason
    assert topology.notes == ("GPU1 (0000:02:00.0) is listed by NVML but missing from the PCI bus.",)
    assert next(iter(box._replace(nvlinks=()).topology().links)).label == "?"


def test_pci_unknown_as_a_whole() -> None:
    gap = Missing(Gap.DENIED, "/sys/bus/pci/devices", "Permission denied")
    topology = dgx1()._replace(functions=gap).topology()
    assert labels(topology)["GPU0", "GPU3"] == "NV2"
    assert labels(topology)["GPU0", "GPU5"] == "?"
    assert topology.gpus[0].numa_node == gap
    assert topology.notes[0] == "PCI paths are unknown (/sys/bus/pci/devices: Permission denied)."


def test_a_nic_without_pci_parent_has_unknown_cells() -> None:
    no_parent = Missing(Gap.ABSENT, "/sys/class/infiniband/scif0/device", "not a PCI function: virtual")
    gpu = gpu_at("pci0000:00", "0000:00:01.0", "0000:01:00.0", node=0)
    topology = Box(functions=tree([gpu]), ib=(ib("scif0", no_parent),), numa=nodes(1)).topology()
    nic = topology.devices[1]
    assert (nic.kind, nic.name, nic.bdf, nic.numa_node) == ("nic", "scif0", None, no_parent)
    assert (next(iter(topology.links)).label, next(iter(topology.links)).pci) == ("?", None)
    assert "scif0" in next(iter(topology.links)).pci_reason


def test_audio_functions_and_foreign_display_controllers_are_no_gpus() -> None:
    found = [
        function("pci0000:00", "0000:00:01.0", "0000:01:00.1", code=0x040300, ids=(0x10DE, 0x10F2)),
        function("pci0000:00", "0000:00:02.0", "0000:02:00.0", code=0x030000, ids=(0x1A03, 0x2000)),
        function("pci0000:00", "0000:00:01.0", "0000:01:00.0", code=0x030000, ids=(0x10DE, 0x1DB2)),
    ]
    assert [gpu.bdf for gpu in Box(functions=tree(found)).topology().gpus] == ["0000:01:00.0"]


@pytest.mark.parametrize(
    ("a", "b", "count", "due"),
    [
        (0, 0, 2, "NODE"),
        (0, 1, 2, "SOC"),
        (-1, 0, 2, None),
        (-1, -1, 2, None),
        (NO_FILE, 1, 2, None),
        (-1, 0, 1, "NODE"),
        (NO_FILE, -1, 1, "NODE"),
        (0, 1, 0, "SOC"),
        (-1, 0, 0, None),
        (-1, -1, None, None),
    ],
)
def test_different_root_buses(a: int | Missing, b: int | Missing, count: int | None, due: str | None) -> None:
    """A missing or negative node counts only where the host shows exactly one."""
    left = gpu_at("pci0000:10", "0000:10:01.0", "0000:11:00.0", node=a)
    right = gpu_at("pci0000:20", "0000:20:01.0", "0000:21:00.0", node=b)
    label, reason = pci_class(left, right, NO_FILE if count is None else nodes(count))
    assert label == due
    assert ("NUMA node" in reason) is (due is None)


def test_the_only_node_counts_for_its_devices() -> None:
    assert numa_node(gpu_at("pci0000:10", "0000:10:01.0", node=-1), nodes(1)) == 0
    assert numa_node(gpu_at("pci0000:10", "0000:10:01.0", node=3), nodes(1)) == 3
    assert isinstance(numa_node(gpu_at("pci0000:10", "0000:10:01.0", node=-1), nodes(2)), Missing)


ROOT = "pci0000:00"


@pytest.mark.parametrize(
    ("a", "b", "due"),
    [
        (("p1", "u1", "d1", "g1"), ("p1", "u1", "d2", "g2"), "PIX"),
        (("p1", "f.0"), ("p1", "f.1"), "PIX"),
        (("p1", "u1", "d1", "u2", "d3", "g1"), ("p1", "u1", "d2", "g2"), "PXB"),
        (("p1", "u1", "d1", "u2", "d3", "g1"), ("p1", "u1", "d2", "u3", "d4", "g2"), "PXB"),
        (("p1", "g1"), ("p2", "g2"), "PHB"),
        (("g1",), ("g2",), "PHB"),
        (("p1", "u1", "d1", "g1"), ("g2",), "PHB"),
    ],
)
def test_one_root_bus(a: tuple[str, ...], b: tuple[str, ...], due: str) -> None:
    left, right = gpu_at(ROOT, *a), gpu_at(ROOT, *b)
    assert pci_class(left, right, NO_FILE) == (due, "")
    assert pci_class(right, left, NO_FILE) == (due, "")


def test_a_function_meets_itself_in_one_card() -> None:
    """Two InfiniBand devices may share one PCI function."""
    nic = nic_at(ROOT, "p1", "n1")
    assert pci_class(nic, nic, NO_FILE) == ("PIX", "")


def test_disagreement_with_nvml_is_noted_per_kind() -> None:
    whole = dgx1()
    assert not isinstance(whole.pairs, Missing)
    said = {(0, 1): 30, (0, 2): 30, (2, 3): 30}
    pairs = tuple(
        GpuPair(a=DGX1_GPUS[b], b=DGX1_GPUS[a], common_ancestor=said.get((a, b), pair.common_ancestor))
        for (a, b), pair in zip(combinations(range(8), 2), whole.pairs, strict=True)
    )
    assert whole._replace(pairs=pairs).topology().notes == (
        "NVML reports common ancestor PHB, the PCI tree shows PIX: GPU0-GPU1, GPU2-GPU3.",
    )


def test_the_halves_of_a_k80_agree_with_nvml() -> None:
    ends = [gpu_at(ROOT, "p1", "u1", "d1", "0000:06:00.0"), gpu_at(ROOT, "p1", "u1", "d2", "0000:07:00.0")]
    pairs = (GpuPair(a="0000:06:00.0", b="0000:07:00.0", common_ancestor=0),)
    box = Box(functions=tree(ends), nvml=nvml(["0000:06:00.0", "0000:07:00.0"]), nvlinks=(), pairs=pairs)
    assert box.topology().notes == ()


def test_virtual_machines_are_noted() -> None:
    flat = [gpu_at(ROOT, f"0000:00:0{i}.0", node=0) for i in (4, 5)]
    bdfs = [end.bdf for end in flat]
    assert "virtual machine" in Box(functions=tree(flat), nvml=nvml(bdfs), nvlinks=()).topology().notes[0]
    qemu = [gpu_at(ROOT, f"0000:00:0{i}.0", f"0000:0{i}:00.0", node=0) for i in (4, 5)]
    box = Box(functions=tree(qemu, (0x1B36, 0x000C)), nvml=nvml([end.bdf for end in qemu]), nvlinks=())
    assert "hypervisor" in box.topology().notes[0]


def test_long_domains_come_after_short_ones() -> None:
    ends = [gpu_at("pci10000:00", "10000:00:00.0"), gpu_at("pci0035:00", "0035:00:00.0")]
    assert [gpu.bdf for gpu in Box(functions=tree(ends)).topology().gpus] == ["0035:00:00.0", "10000:00:00.0"]


bdf = st.sampled_from([f"0000:{i:02x}:00.0" for i in range(6)])
gap = st.builds(Missing, st.sampled_from(Gap), st.just("somewhere"), st.text(max_size=4))
some_links = st.builds(
    NvLink,
    bdf=bdf,
    link=st.integers(0, 5),
    up=st.booleans() | gap,
    generation=st.integers(1, 5) | gap,
    remote_bdf=bdf | gap,
    remote_type=st.sampled_from([0, 1, 2, 255]) | gap,
)
path = st.lists(bdf, max_size=4).map(lambda found: ("pci0000:00", *found)) | st.just(()) | gap


@st.composite
def some_functions(draw: st.DrawFn) -> PciFunction:
    ids = draw(st.sampled_from([(0x10DE, 0x1DB1), (0x1000, 0xC010), (0x15B3, 0x1013)]))
    code = draw(st.sampled_from([0x030200, 0x060400, 0x068000, 0x020700]))
    node = draw(st.integers(-1, 2) | gap)
    base = function(draw(bdf), code=code, ids=ids, node=node)
    return replace(base, path=draw(path), class_code=draw(st.just(code) | gap))


@settings(max_examples=150)
@given(
    functions=st.lists(some_functions(), max_size=6).map(tuple) | gap,
    listed=st.lists(bdf, max_size=4, unique=True).map(nvml) | gap,
    links=st.lists(some_links, max_size=12).map(tuple) | gap,
    pairs=st.lists(st.builds(GpuPair, a=bdf, b=bdf, common_ancestor=st.integers(0, 60) | gap), max_size=4).map(tuple),
    nics=st.lists(st.builds(ib, st.sampled_from(["mlx5_0", "mlx5_1"]), bdf | gap), max_size=2).map(tuple) | gap,
    count=st.integers(0, 2),
)
def test_any_facts_make_a_topology(
    functions: tuple[PciFunction, ...] | Missing,
    listed: Nvml | Missing,
    links: tuple[NvLink, ...] | Missing,
    pairs: tuple[GpuPair, ...],
    nics: tuple[IbDevice, ...] | Missing,
    count: int,
) -> None:
    topology = Box(functions, nics, listed, links, pairs, nodes(count)).topology()
    size = len(topology.devices)
    assert len(topology.links) == size * (size - 1) // 2
    for link in topology.links:
        assert (link.pci is None) is bool(link.pci_reason)
        assert (link.nvlinks is None) is bool(link.nvlink_reason)
        assert link.label in ("?", link.pci, f"NV{link.nvlinks}")
    assert topology == Box(functions, nics, listed, links, pairs, nodes(count)).topology()


@settings(max_examples=60)
@given(order=st.permutations(range(8)), data=st.data())
def test_numbering_changes_names_alone(order: list[int], data: st.DataObject) -> None:
    """The same box with its GPUs numbered otherwise has the same link between the same two functions."""
    whole = dgx1()
    assert not isinstance(whole.functions, Missing)
    shuffled = tuple(data.draw(st.permutations(whole.functions)))
    other = whole._replace(functions=shuffled, nvml=nvml([DGX1_GPUS[i] for i in order])).topology()
    name = {gpu.bdf: gpu.name for gpu in other.gpus}
    before, after = whole.topology(), other.links
    for link in before.links:
        a, b = before.device(link.a), before.device(link.b)
        assert a is not None
        assert b is not None
        twin = after[name.get(a.bdf, a.name), name.get(b.bdf, b.name)]
        assert (twin.label, twin.pci, twin.nvlinks) == (link.label, link.pci, link.nvlinks)
