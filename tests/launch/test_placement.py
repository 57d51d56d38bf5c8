"""What launchers get: cores, HCAs and links of each GPU, by the formats' own readers where there are any."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from dgxcheck.assessment.machine import LAUNCH, Machine, examine
from dgxcheck.cli import main
from dgxcheck.launch import cores_of_nodes, placements

BOXES = ("dgx-1-p100", "dgx-1-v100", "dgx-2", "dgx-a100", "dgx-station-v100", "k80-x8", "pcie-x4", "pcie-x8")
OWN = {
    "dgx-1-v100": "0 0 1 1 2 2 3 3", "dgx-1-p100": "0 0 1 1 2 2 3 3", "dgx-a100": "0 1 2 3 6 7 8 9",
    "k80-x8": "0 0 0 0 0 0 0 0", "dgx-station-v100": "",
}  # fmt: skip
"""The HCA of each GPU in the order of the bus; NVIDIA's own script for DGX-1 takes gpu / 2 (openucx/ucx#7273)."""


def box(name: str) -> Machine:
    return examine(name, LAUNCH)


def printed(capsys: pytest.CaptureFixture[str], form: str, name: str) -> str:
    assert main(["topo", "--format", form, "--from", name]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", OWN)
def test_each_gpu_has_the_hca_next_to_it_in_turn(name: str) -> None:
    machine = box(name)
    ports = [each.port for each in placements(machine.snapshot, machine.topology)]
    assert ports == ([f"mlx5_{number}:1" for number in OWN[name].split()] or [""] * len(ports))


def test_storage_ports_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    hcas = re.findall(r"mlx5_\d+", printed(capsys, "env", "dgx-a100").splitlines()[1])
    assert hcas == [f"mlx5_{number}" for number in (0, 1, 2, 3, 6, 7, 8, 9)]


def test_a_port_that_is_down_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert "mlx5_1:" not in printed(capsys, "env", "dgx-1-v100-port-down")


@pytest.mark.parametrize("name", BOXES)
def test_cores_are_shared_out_without_overlap(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    cores = cores_of_nodes(box(name).snapshot)
    assert len({core for run in cores.values() for core in run}) == sum(map(len, cores.values())) > 0
    slots = re.findall(r"^rank \d+=\+n0 slot=(\d+)-(\d+)$", printed(capsys, "rankfile", name), re.MULTILINE)
    taken = Counter(core for first, last in slots for core in range(int(first), int(last) + 1))
    assert set(taken.values()) == {1}


GRES = re.compile(r"Name=gpu Type=\w+ File=/dev/nvidia(\d+) Cores=(\d+)-(\d+)(?: Links=([-,\d]+))?")


@pytest.mark.parametrize("name", BOXES)
def test_gres_lines_are_symmetric(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line for line in printed(capsys, "gres", name).splitlines() if line[0] != "#"]
    found = [GRES.fullmatch(line) for line in lines]
    assert all(found)
    assert len({match[1] for match in found if match}) == len(box(name).topology.gpus)
    rows = [[int(word) for word in match[4].split(",")] for match in found if match and match[4]]
    assert not rows or len(rows) == len(lines)
    assert all(rows[a][b] == rows[b][a] for a in range(len(rows)) for b in range(len(rows)))
    assert all((rows[a][b] == -1) == (a == b) for a in range(len(rows)) for b in range(len(rows)))


def test_gres_of_a_dgx_1_as_slurm_was_tried_with(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "gres", "dgx-1-v100").splitlines()
    assert lines[0] == "Name=gpu Type=v100 File=/dev/nvidia0 Cores=0-19 Links=-1,1,1,2,2,0,0,0"
    assert "Cores=20-39" in lines[4]


def test_a_gpu_without_a_device_node_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", "--format", "gres", "--from", "dgx-1-v100-gpu-missing"]) in (0, 3)
    assert capsys.readouterr().out.count("Name=gpu") == 7


def test_a_gpu_with_mig_is_no_device_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", "--format", "gres", "--from", "dgx-a100-mig"]) == 3
    said = capsys.readouterr().out
    assert (said.count("Name=gpu"), said.count("GPU1 0000:0f:00.0: MIG is enabled")) == (7, 1)


@pytest.mark.parametrize("form", ["env", "gres", "rankfile", "nccl-xml"])
def test_formats_for_launchers_are_about_the_whole_box(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", "--rings", "--format", form, "--from", "dgx-1-v100"]) == 3
    assert "leave out --rings" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["env", "gres", "rankfile"])
def test_gpus_of_a_matrix_have_no_bus_ids(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    matrix = tmp_path / "topo.txt"
    matrix.write_text("GPU0 GPU1 CPU Affinity NUMA Affinity\nGPU0 X NV2 0-19 0\nGPU1 NV2 X 20-39 1\n")
    main(["topo", "--format", form, "--from", str(matrix)])
    said = capsys.readouterr().out
    assert "GPU1" in said
    assert not re.search("None|numa_node_as_socket", said)
