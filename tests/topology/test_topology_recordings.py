"""Classes of real machines, from sysfs trees recorded by others.

The recordings are not part of the project: where they do not lie beside it these tests are skipped.
"""

from __future__ import annotations

import re
import tarfile
from collections import Counter
from itertools import combinations, product
from typing import NamedTuple

import pytest
from checkout import ROOT
from topology_boxes import (
    NO_FILE,
    Box,
    function,
    ib,
)

from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.memory import NumaNode
from dgxcheck.facts.pci import PciFunction
from dgxcheck.topology.model import Topology
from dgxcheck.topology.paths import pci_class

RECORDINGS = ROOT.parent / "shared" / "recordings"
pytestmark = pytest.mark.skipif(not RECORDINGS.is_dir(), reason=f"no recordings in {RECORDINGS}")


class Tree(NamedTuple):
    """What a recorded sysfs holds of PCI, InfiniBand and NUMA."""

    functions: dict[str, PciFunction]
    ib: tuple[IbDevice, ...]
    numa: tuple[NumaNode, ...]


def read(name: str) -> Tree:
    """A recorded tree, by its archive; symbolic links are read as text, never followed."""
    paths: dict[str, tuple[str, ...]] = {}
    texts: dict[tuple[str, str], str] = {}
    behind: dict[str, str] = {}
    found_nodes: set[int] = set()
    with tarfile.open(RECORDINGS / name) as archive:
        for member in archive:
            parts = member.name.split("/")
            if parts[-3:-1] == ["pci", "devices"] and member.issym():
                target = member.linkname.split("/")
                root = max(i for i, part in enumerate(target) if part.startswith("pci"))
                paths[parts[-1]] = tuple(target[root:])
            elif parts[-2:-1] == ["infiniband"] and "class" in parts and member.issym():
                target = member.linkname.split("/")
                behind[parts[-1]] = target[target.index("infiniband") - 1]
            elif parts[-1] in ("class", "vendor", "device", "numa_node") and member.isfile():
                content = archive.extractfile(member)
                assert content is not None
                texts[parts[-2], parts[-1]] = content.read().decode().strip()
            elif match := re.search(r"/system/node/node(\d+)(/|$)", member.name):
                found_nodes.add(int(match[1]))
    functions = {}
    for bdf, path in paths.items():
        node = texts.get((bdf, "numa_node"))
        functions[bdf] = function(
            *path,
            code=int(texts[bdf, "class"], 16),
            ids=(int(texts[bdf, "vendor"], 16), int(texts[bdf, "device"], 16)),
            node=NO_FILE if node is None else int(node),
        )
    return Tree(
        functions,
        tuple(ib(device, bdf) for device, bdf in sorted(behind.items())),
        tuple(NumaNode(node=node, cpulist="") for node in sorted(found_nodes)),
    )


def box(found: Tree) -> Topology:
    return Box(functions=tuple(found.functions.values()), ib=found.ib, numa=found.numa).topology()


def classes(topology: Topology, kinds: str) -> Counter[str | None]:
    kind = {device.name: device.kind for device in topology.devices}
    return Counter(link.pci for link in topology.links if f"{kind[link.a]} {kind[link.b]}" == kinds)


@pytest.mark.parametrize(
    ("name", "gpus", "nics"),
    [
        ("checkbox-dgx-station", {"PIX": 2, "PHB": 4}, {}),
        ("mpibind-cts1-pascal", {"PIX": 1}, {"PIX": 2}),
        ("mpibind-g4dnmetal", {"PHB": 4, "NODE": 8, "SOC": 16}, {"NODE": 4, "SOC": 4}),
        ("mpibind-coral-lassen", {"PIX": 2, "SOC": 4}, {"NODE": 8, "SOC": 8}),
    ],
)
def test_recorded_trees(name: str, gpus: dict[str, int], nics: dict[str, int]) -> None:
    topology = box(read(f"sysfs-trees/{name}.sysfs.tar.gz"))
    assert classes(topology, "gpu gpu") == gpus
    assert classes(topology, "gpu nic") == nics


def test_the_station_pairs_its_gpus_below_two_switches() -> None:
    topology = box(read("sysfs-trees/checkbox-dgx-station.sysfs.tar.gz"))
    assert [gpu.bdf for gpu in topology.gpus] == [f"0000:{bus}:00.0" for bus in ("07", "08", "0e", "0f")]
    assert [(link.a, link.b) for link in topology.links if link.pci == "PIX"] == [("GPU0", "GPU1"), ("GPU2", "GPU3")]


def test_eight_accelerators_and_two_hcas_below_two_switches() -> None:
    """A machine shaped like a DGX-1 with other accelerators; the full /sys of it is recorded."""
    found = read("sysfs-raw/hwloc-32intel64-2p8co2t+8ve.tar.bz2")
    accelerators = [it for it in found.functions.values() if it.class_code == 0x0B4000]
    hcas = [it for it in found.functions.values() if it.vendor == 0x15B3]
    assert (len(accelerators), len(hcas)) == (8, 2)

    def switch(it: PciFunction) -> str:
        assert isinstance(it.path, tuple)
        return it.path[2]

    for a, b in [*combinations(accelerators, 2), *product(accelerators, hcas)]:
        due = "PIX" if switch(a) == switch(b) else "NODE"
        assert pci_class(a, b, found.numa) == (due, "")
