"""Facts of small and reference boxes, put together by hand for the topology tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.memory import NumaNode
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvml.gpu import Gpu, Nvml
from dgxcheck.facts.nvml.nvlink import GpuPair, NvLink
from dgxcheck.facts.pci import PciFunction
from dgxcheck.survey import Snapshot
from dgxcheck.topology.build import build
from dgxcheck.topology.model import Topology

NO_FILE = Missing(Gap.ABSENT, "file")
BRIDGE, NIC, GPU, SWITCH = 0x060400, 0x020700, 0x030200, 0x068000


class Published(NamedTuple):
    """A recorded ``nvidia-smi topo -m`` of such a machine, and how many of its cells a shipped recording must meet."""

    text: str
    cells: int


PUBLISHED = {
    "dgx-1-p100": Published("dgx1-p100-sheffield.txt", 132),
    "dgx-1-v100": Published("dgx1-v100-ucxpy.txt", 132),
    "k80-x8": Published("k80-8x-seed-ivb122.txt", 72),
    "dgx-h100": Published("dgx-h100-12nic-dgx052-cut.txt", 266),
    "dgx-h200": Published("dgx-h100-12nic-dgx052-cut.txt", 266),
    "dgx-b300": Published("b300-8x-9nic-bond-sglang.txt", 272),
    "l40s-x8": Published("pcie-8x-pix-node-sys.txt", 56),
    "vm-h100-x8": Published("h100-8x-nonic-52c-mleng.txt", 56),
    "dgx-b200": Published("", 552),
    "gb200-nvl72": Published("", 27),
}
"""By shipped recording; without a text where the test says what was published."""


def function(
    *path: str,
    code: int = BRIDGE,
    ids: tuple[int, int] = (0x10B5, 0x8764),
    node: int | Missing = NO_FILE,
    now: tuple[int, int] | None = (3, 16),
    most: tuple[int, int] | None = (3, 16),
) -> PciFunction:
    """A function at the end of ``path``; ``now`` and ``most`` are generation and width."""
    gen, width = now or (NO_FILE, NO_FILE)
    max_gen, max_width = most or (NO_FILE, NO_FILE)
    return PciFunction(
        bdf=path[-1],
        path=path,
        class_code=code,
        vendor=ids[0],
        device=ids[1],
        subsystem_vendor=NO_FILE,
        subsystem_device=NO_FILE,
        link_gen=gen,
        link_width=width,
        max_link_gen=max_gen,
        max_link_width=max_width,
        numa_node=node,
        local_cpulist=NO_FILE if isinstance(node, Missing) else f"cpus of node {node}",
        driver=None,
    )


def tree(ends: Sequence[PciFunction], bridges: tuple[int, int] = (0x10B5, 0x8764)) -> tuple[PciFunction, ...]:
    """The given functions and every bridge above them."""
    found = {end.bdf: end for end in ends}
    for end in ends:
        assert not isinstance(end.path, Missing)
        for depth in range(2, len(end.path)):
            path = end.path[:depth]
            found.setdefault(path[-1], function(*path, ids=bridges, node=end.numa_node))
    return tuple(found.values())


def gpu_at(*path: str, node: int | Missing = NO_FILE) -> PciFunction:
    return function(*path, code=GPU, ids=(0x10DE, 0x1DB1), node=node)


def nic_at(*path: str, node: int | Missing = NO_FILE) -> PciFunction:
    return function(*path, code=NIC, ids=(0x15B3, 0x1013), node=node)


def ib(name: str, bdf: str | Missing) -> IbDevice:
    return IbDevice(
        name=name, bdf=bdf, is_vf=False, node_guid=NO_FILE, fw_ver=NO_FILE, hca_type=NO_FILE, board_id=NO_FILE
    )


def nodes(count: int) -> tuple[NumaNode, ...]:
    return tuple(NumaNode(node=node, cpulist=f"cpus of node {node}") for node in range(count))


def nvml(bdfs: Sequence[str], lost: tuple[Missing, ...] = ()) -> Nvml:
    gpus = tuple(
        Gpu(
            bdf=bdf,
            index=index,
            name="Tesla",
            uuid=f"GPU-{index}",
            serial=NO_FILE,
            minor=index,
            vbios=NO_FILE,
            gpu_numa_id=NO_FILE,
        )
        for index, bdf in enumerate(bdfs)
    )
    return Nvml(
        driver_version="550.1", nvml_version="12.550.1", cuda_version=12040, count=len(gpus), gpus=gpus, lost=lost
    )


def nvlink(bdf: str, link: int, peer: str | Missing, generation: int = 2, kind: int | Missing = 0) -> NvLink:
    return NvLink(bdf=bdf, link=link, up=True, generation=generation, remote_bdf=peer, remote_type=kind)


def down(bdf: str, link: int, up: bool | Missing = False) -> NvLink:
    gap = Missing(Gap.UNASKED, "link")
    return NvLink(bdf=bdf, link=link, up=up, generation=gap, remote_bdf=gap, remote_type=gap)


def direct(bdfs: Sequence[str], pairs: Mapping[tuple[int, int], int], generation: int = 2) -> tuple[NvLink, ...]:
    """Links of both ends of every pair."""
    found: list[NvLink] = []
    used = dict.fromkeys(bdfs, 0)
    for (a, b), links in pairs.items():
        for here, there in ((bdfs[a], bdfs[b]), (bdfs[b], bdfs[a])):
            for _ in range(links):
                found.append(nvlink(here, used[here], there, generation))
                used[here] += 1
    return tuple(found)


class Box(NamedTuple):
    """Facts that ``build`` reads."""

    functions: tuple[PciFunction, ...] | Missing
    ib: tuple[IbDevice, ...] | Missing = ()
    nvml: Nvml | Missing = Missing(Gap.ABSENT, "nvmlInit", "no library")
    nvlinks: tuple[NvLink, ...] | Missing = Missing(Gap.ABSENT, "nvmlInit", "no library")
    pairs: tuple[GpuPair, ...] | Missing = ()
    numa: tuple[NumaNode, ...] | Missing = NO_FILE

    def topology(self) -> Topology:
        return build(Snapshot(pci=self.functions, infiniband=self.ib, gpu=self.nvml, nvlink=self.nvlinks,
                              gpu_pairs=self.pairs, numa=self.numa))  # fmt: skip


DGX1_GPUS = tuple(f"0000:{bus}:00.0" for bus in ("06", "07", "0a", "0b", "85", "86", "89", "8a"))
FACE = {(0, 1): 1, (0, 2): 1, (0, 3): 2, (1, 2): 2, (1, 3): 1, (2, 3): 2}
"""Four GPUs of a DGX-1 V100: half of it, a p3.8xlarge."""
V100 = {
    **FACE,
    **{(a + 4, b + 4): links for (a, b), links in FACE.items()},
    (0, 4): 2,
    (1, 5): 2,
    (2, 6): 1,
    (3, 7): 1,
}
"""As recorded on a DGX-1; the reference graph in the product is written down in another way."""
P100 = dict.fromkeys(V100, 1)


def dgx1(pairs: Mapping[tuple[int, int], int] = V100, generation: int = 2) -> Box:
    """A DGX-1: two sockets, two PLX switches each, two GPUs and a NIC below every switch."""
    ends: list[PciFunction] = []
    for node, root, port, up, bus, devices in (
        (0, "pci0000:00", "00:02.0", "03:00.0", "04", ("05", "06", "07")),
        (0, "pci0000:00", "00:03.0", "08:00.0", "09", ("0c", "0a", "0b")),
        (1, "pci0000:80", "80:02.0", "82:00.0", "83", ("84", "85", "86")),
        (1, "pci0000:80", "80:03.0", "87:00.0", "88", ("8b", "89", "8a")),
    ):
        for i, device in enumerate(devices):
            path = (f"0000:{port}", f"0000:{up}", f"0000:{bus}:{8 + 4 * i:02x}.0", f"0000:{device}:00.0")
            ends.append((gpu_at if i else nic_at)(root, *path, node=node))
    nics = [end.bdf for end in ends if end.class_code == NIC]
    levels = {"PIX": 10, "PHB": 30, "SOC": 50}
    ancestors = tuple(
        GpuPair(a=DGX1_GPUS[a], b=DGX1_GPUS[b], common_ancestor=levels[dgx1_pci(a, b)])
        for a, b in combinations(range(8), 2)
    )
    return Box(
        functions=tree(ends),
        ib=tuple(ib(f"mlx5_{i}", bdf) for i, bdf in enumerate(nics)),
        nvml=nvml(DGX1_GPUS),
        nvlinks=direct(DGX1_GPUS, pairs, generation),
        pairs=ancestors,
        numa=nodes(2),
    )


def dgx1_pci(a: int, b: int) -> str:
    return "PIX" if a // 2 == b // 2 else "PHB" if a // 4 == b // 4 else "SOC"


def fabric(gpus: int, switches: int, links: int, kind: int | Missing = 2) -> Box:
    """GPUs with ``links`` to each of ``switches`` NVSwitches, every GPU on a root bus of its own."""
    bdfs = [f"0000:{16 + i:02x}:00.0" for i in range(gpus)]
    ends = [gpu_at(f"pci0000:{16 + i:02x}", f"0000:{16 + i:02x}:1f.0", bdf, node=0) for i, bdf in enumerate(bdfs)]
    fabric = [f"0000:c{i}:00.0" for i in range(switches)]
    ends += [function("pci0000:c0", bdf, code=SWITCH, ids=(0x10DE, 0x1AF1)) for bdf in fabric]
    found = tuple(
        nvlink(bdf, number * links + link, switch, 3, kind)
        for bdf in bdfs
        for number, switch in enumerate(fabric)
        for link in range(links)
    )
    return Box(functions=tree(ends), nvml=nvml(bdfs), nvlinks=found, numa=nodes(1))
