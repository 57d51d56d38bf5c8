"""Matrices of reference machines, built from what is published of them, against the outputs of nvidia-smi.

Those are not part of the project: where they do not lie beside it these tests are skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from itertools import combinations, permutations, product
from typing import Any

import pytest
from checkout import ROOT
from topology_boxes import (
    GPU,
    NIC,
    PUBLISHED,
    SWITCH,
    Box,
    direct,
    function,
    gpu_at,
    ib,
    nic_at,
    nodes,
    nvlink,
    nvml,
    tree,
)

from dgxcheck.assessment import examine
from dgxcheck.topology.model import Topology
from dgxcheck.topology.nvlinks import Graph, find_rings, nvlink_generation, nvlink_graph
from dgxcheck.topology.reference import matches

SHARED = ROOT.parent / "shared"
RECORDINGS, FACTS = SHARED / "recordings", SHARED / "facts"
pytestmark = pytest.mark.skipif(not FACTS.is_dir() or not RECORDINGS.is_dir(), reason=f"no recordings in {SHARED}")


def recorded_matrix(name: str) -> dict[tuple[str, str], str]:
    """Cells of a recorded ``topo -m`` by row and column name, SYS written as SOC."""
    lines = (RECORDINGS / "topo" / name).read_text().splitlines()
    header = re.findall(r"GPU\d+|mlx5_\d+|NIC\d+", lines[0])
    if not any(column.startswith("GPU") for column in header):
        header = [f"GPU{i}" for i in range(8)] + header
    cells = {}
    for line in lines[1:]:
        row, *values = line.split()[: len(header) + 1] or [""]
        if row in header:
            cells.update({(row, column): value for column, value in zip(header, values, strict=False)})
    return {ends: "SOC" if value == "SYS" else value for ends, value in cells.items() if ends[0] != ends[1]}


def facts(name: str) -> Any:
    return json.loads((FACTS / f"{name}.json").read_text())


def pairs_of(nvlinks: dict[str, int]) -> dict[tuple[int, int], int]:
    return {(int(pair[0]), int(pair[2])): links for pair, links in nvlinks.items()}


def through(bdfs: Sequence[str], switches: Iterable[tuple[str, int]], generation: int) -> Box:
    """Every GPU with the given number of links to every switch."""
    wires = [switch for switch, links in switches for _ in range(links)]
    links = [nvlink(bdf, i, switch, generation, 2) for bdf in bdfs for i, switch in enumerate(wires)]
    return Box(functions=(), nvml=nvml(bdfs), nvlinks=tuple(links), numa=nodes(2))


def dgx1_from_facts(name: str) -> Box:
    known = facts(name)
    gpus, nics = known["pci"]["gpu_bus_ids"], known["pci"]["nic_bus_ids"]
    ends = []
    for switch in known["pci"]["switches"]:
        node, up = switch["numa"], switch["upstream_port"]
        names = [*(gpus[str(i)] for i in switch["children_gpus"]), *(nics[i] for i in switch["children_nics"])]
        for number, bdf in enumerate(names):
            make = gpu_at if bdf in gpus.values() else nic_at
            ends.append(make(f"pci{node}", f"port above {up}", up, f"{up} down {number}", bdf, node=node))
    bdfs = [gpus[str(i)] for i in range(8)]
    wires = direct(bdfs, pairs_of(known["nvlink"]["pairs"]), known["nvlink"]["generation"])
    return Box(
        functions=tree(ends),
        ib=tuple(ib(nic, bdf) for nic, bdf in nics.items()),
        nvml=nvml(bdfs),
        nvlinks=wires,
        numa=nodes(2),
    )


@pytest.mark.parametrize(
    ("name", "recording", "rings"),
    [("dgx-1-v100", "dgx1-v100-ucxpy.txt", 3), ("dgx-1-p100", "dgx1-p100-sheffield.txt", 2)],
)
def test_dgx1_matrices_are_those_of_nvidia_smi(name: str, recording: str, rings: int) -> None:
    topology = dgx1_from_facts(name).topology()
    due = recorded_matrix(recording)
    assert len(due) == 132
    assert {ends: link.label for link in topology.links for ends in ((link.a, link.b), (link.b, link.a))} == due
    assert_graph(topology, name, rings)


def assert_graph(topology: Topology, name: str, rings: int) -> None:
    wires = nvlink_graph(topology)
    assert isinstance(wires, Graph)
    assert [reference.name for reference in matches(wires, nvlink_generation(topology))] == [name]
    assert find_rings(wires).count == rings


def test_station_matrix() -> None:
    known = facts("dgx-station-v100")
    bdfs = [known["pci"]["gpu_bus_ids"][str(i)] for i in range(4)]
    ends = [
        gpu_at("pci0000:00", switch["root_port"], switch["upstream_port"], f"down {bdf}", bdf, node=-1)
        for switch in known["pci"]["switches"]
        for bdf in (bdfs[i] for i in switch["children_gpus"])
    ]
    wires = direct(bdfs, pairs_of(known["nvlink"]["pairs"]))
    topology = Box(functions=tree(ends), nvml=nvml(bdfs), nvlinks=wires, numa=nodes(1)).topology()
    labels = known["pci_only_labels"]
    assert {f"{link.a[3:]}-{link.b[3:]}": link.pci for link in topology.links} == {
        f"{a}-{b}": labels.get(f"{a}-{b}", labels["other"]) for a, b in combinations(range(4), 2)
    }
    assert {gpu.numa_node for gpu in topology.gpus} == {0}
    assert_graph(topology, "dgx-station-v100", 2)


def test_dgx2_matrix() -> None:
    known = facts("dgx-2")
    gpus, nics = known["pci"]["gpus"], known["pci"]["nics"]
    ends = [
        make(f"pci{it['root']}", *it["bridges"], it["bdf"], node=it["numa"])
        for group, make in ((gpus, gpu_at), (nics, nic_at))
        for it in group.values()
    ]
    bdfs = [gpus[str(i)]["bdf"] for i in range(16)]
    switches = known["nvlink"]["nvswitch_pci"][:6]
    fabric = through(bdfs, [(switch, 1) for switch in switches], 2)
    listed = tuple(ib(name, it["bdf"]) for name, it in nics.items())
    topology = fabric._replace(functions=tree(ends), ib=listed).topology()
    assert topology.devices[-1].name == "mlx5_10"
    matrix = topology.links
    wires = [link for link in topology.links if link.switched]
    assert {link.label for link in wires} == {"NV6"}
    assert len(wires) == 120
    # the recorded machine has no boot NIC on 0c:00.0: its mlx5_0 is mlx5_1 here
    shift = {"mlx5_0": "mlx5_1", "mlx5_1": "mlx5_2", "mlx5_2": "mlx5_3", "mlx5_3": "mlx5_4"}
    checked = 0
    for (row, column), value in recorded_matrix("dgx2-16x-v100-nccltests78-cut.txt").items():
        if column in shift:
            assert matrix[row, shift[column]].label == value
            checked += 1
    assert checked == 16
    assert matrix["mlx5_5", "mlx5_6"].label == "PIX"
    assert_graph(topology, "dgx-2", 3)


def test_dgx_a100_matrix() -> None:
    known = facts("dgx-a100")
    gpus, nics = known["pci"]["gpus"], known["pci"]["nics"]
    ends = []
    for group, code in ((gpus, GPU), (nics, NIC)):
        for it in group.values():
            up = it["switch_upstream_ports"]
            # the recording holds upstream ports alone: a port above each, one below the last for each device
            levels = [bridge for port in up for bridge in (f"above {port}", port)] + [f"above {it['bdf'][:-2]}"]
            ids = (0x10DE, 0x20B0) if code == GPU else (0x15B3, 0x101B)
            root = f"pci{up[0] if up else it['bdf'][:-2]}"
            ends.append(function(root, *levels, it["bdf"], code=code, ids=ids, node=it["numa"]))
    bdfs = [gpus[str(i)]["bdf"] for i in range(8)]
    fabric = through(bdfs, gpus["0"]["nvswitch_links"].items(), 3)
    switches = [
        function("pci0000:c0", f"above {bdf}", bdf, code=SWITCH, ids=(0x10DE, 0x1AF1))
        for bdf in gpus["0"]["nvswitch_links"]
    ]
    listed = tuple(ib(name, it["bdf"]) for name, it in nics.items())
    topology = fabric._replace(functions=tree([*ends, *switches]), ib=listed, numa=nodes(8)).topology()
    matrix = topology.links
    compute = [name for name, it in nics.items() if it["switch_upstream_ports"]]
    due = recorded_matrix("dgx-a100-10nic-legend.txt")
    for gpu, peer in combinations(range(8), 2):
        assert matrix[f"GPU{gpu}", f"GPU{peer}"].label == due[f"GPU{gpu}", f"GPU{peer}"] == "NV12"
    for gpu, (number, name) in product(range(8), enumerate(compute)):
        assert matrix[f"GPU{gpu}", name].label == due[f"GPU{gpu}", f"NIC{number}"]
    assert matrix["mlx5_4", "mlx5_5"].label == due["NIC8", "NIC9"] == "PIX"
    assert_graph(topology, "dgx-a100", 6)


def test_dgx_h100_graph() -> None:
    """Links are split 5 + 5 + 4 + 4 over the switches, not alike on every GPU."""
    known = facts("dgx-h100")["nvlink"]
    bdfs = [f"0000:{16 + i:02x}:00.0" for i in range(8)]
    topology = through(bdfs, [("c", 5), ("d", 5), ("e", 4), ("f", 4)], known["generation"]).topology()
    assert {link.label for link in topology.links} == {f"NV{known['links_per_gpu']}"}
    assert_graph(topology, "dgx-h100", 9)


@pytest.mark.parametrize("box", [box for box, of in PUBLISHED.items() if of.text])
def test_a_shipped_recording_has_the_published_matrix(box: str) -> None:
    """All cells of the recorded text; NICs in their order, as NVIDIA's tool numbers them."""
    topology = examine(box).topology
    published, matrix = recorded_matrix(PUBLISHED[box].text), topology.links
    nics = sorted({end for ends in published for end in ends if not end.startswith("GPU")}, key=_number)
    names = dict(zip(nics, (device.name for device in topology.devices if device.kind == "nic"), strict=False))
    assert len(published) == PUBLISHED[box].cells
    assert {(a, b): matrix[names.get(a, a), names.get(b, b)].label for a, b in published} == published


def _number(nic: str) -> int:
    return int(re.sub(r"\D", "", nic.partition("_")[2] or nic))


def test_the_shipped_dgx_b200_has_the_published_matrix() -> None:
    """NVIDIA/nccl-tests issue 333: eight B200, driver 570.158.01; NIC0 to NIC3 lead to the NVSwitches."""
    own = dict(zip((4, 7, 8, 9, 10, 13, 14, 15), range(8), strict=True))
    first = {f"GPU{number}" for number in range(4)} | {f"mlx5_{number}" for number in range(10)}
    cards = [{"mlx5_0", "mlx5_1", "mlx5_2", "mlx5_3"}, {"mlx5_5", "mlx5_6"}, {"mlx5_11", "mlx5_12"}]
    cards += [{f"mlx5_{nic}", f"GPU{gpu}"} for nic, gpu in own.items()]
    due = {}
    for a, b in permutations([f"GPU{number}" for number in range(8)] + [f"mlx5_{number}" for number in range(16)], 2):
        near = "NODE" if (a in first) == (b in first) else "SOC"
        shared = "PXB" if "GPU" in a + b else "PIX"
        both = a.startswith("GPU") and b.startswith("GPU")
        due[a, b] = "NV18" if both else shared if any({a, b} <= card for card in cards) else near
    matrix = examine("dgx-b200").topology.links
    assert len(due) == PUBLISHED["dgx-b200"].cells
    assert {ends: matrix[ends].label for ends in due} == due


def test_a_gb200_tray_has_the_published_rows() -> None:
    """GPU0 to GPU2: sgl-project/sglang issue 11208."""
    topology = examine("gb200-nvl72").topology
    matrix = topology.links
    cells = [[matrix[row, other.name].label for other in topology.devices if other.name != row]
             for row in ("GPU0", "GPU1", "GPU2")]  # fmt: skip
    assert sum(map(len, cells)) == PUBLISHED["gb200-nvl72"].cells
    assert cells == 3 * [["NV18"] * 3 + ["SOC"] * 6]


def test_k80_matrix() -> None:
    """One host switch over two boards on socket 0, two root ports on socket 1, and a switch on every board."""
    ends = []
    for gpu in range(8):
        board, node = gpu // 2, gpu // 4
        above = ("host port", "host switch", f"host down {board}") if node == 0 else (f"root port {board}",)
        ends.append(gpu_at(f"pci{node}", *above, f"board {board}", f"down {gpu}", f"0000:0{gpu}:00.0", node=node))
    ends.append(nic_at("pci0", "nic port", "0000:20:00.0", node=0))
    bdfs = [f"0000:0{i}:00.0" for i in range(8)]
    found = Box(functions=tree(ends), ib=(ib("mlx5_0", "0000:20:00.0"),), nvml=nvml(bdfs), nvlinks=(), numa=nodes(2))
    topology = found.topology()
    due = recorded_matrix("k80-8x-seed-ivb122.txt")
    assert {ends: link.label for link in topology.links for ends in ((link.a, link.b), (link.b, link.a))} == due
