"""NCCL's topology file: the structure that dumps of such machines have, with all that NCCL reads and nothing else."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter

import pytest
from nccl_shape import shape
from test_placement import BOXES, box

from dgxcheck.cli import main
from dgxcheck.readers.nccl.topology_xml import read_topology_xml

_A100_SIDE = (
    "1x switch(1x switch(1x nic 1x switch(1x gpu[2* 2* 2* 2* 2* 2*])) 1x switch(1x nic)"
    " 1x switch(1x switch(1x gpu[2* 2* 2* 2* 2* 2*])))"
)
SHAPES = {
    "dgx-1-v100": ["2x switch(2x gpu[1 1 2 2] 1x nic)"] * 2,
    "dgx-1-p100": ["2x switch(2x gpu[1 1 1 1] 1x nic)"] * 2,
    "dgx-station-v100": ["2x switch(2x gpu[1 1 2])"],
    "k80-x8": ["1x nic 1x switch(2x switch(2x gpu))", "2x switch(2x gpu)"],
    "pcie-x4": ["2x switch(2x gpu)"],
    "pcie-x8": ["2x switch(2x gpu)"] * 2,
    "dgx-2": [f"{nics}x nic 2x switch(2x switch(2x gpu[1* 1* 1* 1* 1* 1*] 1x nic))" for nics in (1, 2)],
    "dgx-a100": ["2x nic", _A100_SIDE, _A100_SIDE, "2x nic", _A100_SIDE, _A100_SIDE],
}
"""A line per CPU. A GPU of a DGX-1 has two single and two double links and shares its switch with another one and a
NIC (NVIDIA/nccl#671); links to NVSwitches are counted by switch (OCI's file for H100, in oci-hpc)."""
READ = {
    "system": {"version"}, "cpu": {"numaid", "affinity", "arch", "vendor", "familyid", "modelid"},
    "pci": {"busid", "class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed", "link_width"},
    "gpu": {"dev", "rank", "sm", "gdr"}, "nvlink": {"target", "count", "tclass"}, "nic": set(),
    "net": {"name", "dev", "port", "speed", "guid", "latency", "maxconn", "gdr"},
}  # fmt: skip
"""Attributes by element (src/graph/topo.cc)."""


def printed(capsys: pytest.CaptureFixture[str], name: str) -> str:
    assert main(["topo", "--format", "nccl-xml", "--from", name]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", BOXES)
def test_the_structure_is_that_of_published_files(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    root = ET.fromstring(printed(capsys, name))
    assert shape(root) == SHAPES[name]
    assert [each for each in root.iter() if not set(each.attrib) <= READ[each.tag]] == []
    assert {*Counter(each.get("busid") for each in root.iter("pci")).values()} == {1}
    classes = {each.get("busid"): each.get("class") for each in root.iter("pci")}
    links = list(root.iter("nvlink"))
    assert all(classes.get(link.get("target", ""), "0x068000") == link.get("tclass") for link in links)


def test_numbers_are_numbers_also_where_a_gpu_is_not_opened(capsys: pytest.CaptureFixture[str]) -> None:
    root = ET.fromstring(printed(capsys, "dgx-1-v100-gpu-missing"))
    gpus = list(root.iter("gpu"))
    assert sorted(int(gpu.get("rank", "")) for gpu in gpus) == [*range(7)]
    assert len({gpu.get("dev") for gpu in gpus}) == 7


@pytest.mark.parametrize("name", BOXES)
def test_our_own_reader_finds_the_same_wiring_in_ncclss_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, name)
    topology = box(name).topology
    root = ET.fromstring(text)
    assert {gpu.get("busid") for gpu in root.iter("pci") if gpu.find("gpu") is not None} == {
        gpu.bdf for gpu in topology.gpus
    }
    links = Counter(int(link.get("count", "")) for link in root.iter("nvlink"))
    assert bool(links) == any(link.nvlinks for link in topology.nvlinked())
    assert read_topology_xml(tuple(text.splitlines()))
