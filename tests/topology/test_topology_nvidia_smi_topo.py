"""A topology out of an imported matrix: alone, and beside what a box says itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seam import run

from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.facts.tool_outputs import NvidiaSmiTopo
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.keys import GroupedFacts, insert
from dgxcheck.source.recording.load import open_source
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.survey import WIRING, survey
from dgxcheck.topology.build import build
from dgxcheck.topology.model import Topology
from dgxcheck.topology.nvidia_smi_topo import HIDDEN, NOT_SHOWN, PCI_ALONE, statuses
from dgxcheck.topology.nvlinks import nvlink_graph
from dgxcheck.topology.reference import possible
from probes.stated import stated

PAIR: dict[str, Json] = {"stated label GPU0 GPU0": "X", "stated label GPU0 GPU1": "NV2",
                         "stated label GPU1 GPU0": "NV2", "stated label GPU1 GPU1": "X"}  # fmt: skip


def wired(facts: dict[str, Json], box: str | None = None) -> Topology:
    lines: GroupedFacts = {}
    if box is not None:
        source = open_source(box)
        assert isinstance(source, RecordedSource)
        lines = {line: dict(group) for line, group in source.lines.items()}
    for key, fact in facts.items():
        insert(lines, key, fact)
    found = survey(RecordedSource(lines, Origin("recording")), WIRING)
    return build(found)


def test_nvlinks_hide_the_pci_path() -> None:
    (link,) = wired(PAIR).links
    assert (link.nvlinks, link.pci, link.pci_reason, link.label) == (2, None, HIDDEN, "NV2")


def test_both_matrices_together_tell_both() -> None:
    (link,) = wired(PAIR | {"stated label-pci GPU0 GPU1": "SYS"}).links
    assert (link.nvlinks, link.pci, link.label) == (2, "SOC", "NV2")


def test_a_matrix_of_pci_paths_says_nothing_of_nvlinks() -> None:
    box = wired({"stated label-pci GPU0 GPU1": "PHB"})
    (link,) = box.links
    assert (link.nvlinks, link.nvlink_reason, link.pci) == (None, PCI_ALONE, "PHB")
    assert isinstance(nvlink_graph(box), Missing)


def test_cells_that_disagree_are_garbled() -> None:
    (link,) = wired(PAIR | {"stated label GPU1 GPU0": "NV1"}).links
    assert (link.nvlinks, link.pci) == (None, None)
    assert "says NV2 one way and NV1 the other" in link.nvlink_reason or "NV1 one way" in link.nvlink_reason


def test_links_of_each_gpu_alone_make_no_graph() -> None:
    graph = nvlink_graph(wired({"stated nvlink GPU0 0": "25 GB/s", "stated nvlink GPU1 0": "25 GB/s"}))
    assert isinstance(graph, Missing)
    assert graph.gap is Gap.UNRECORDED


def test_a_pair_without_a_row_is_not_known() -> None:
    box = wired(PAIR | {"stated label GPU0 GPU2": "PIX"})
    links = {(link.a, link.b): link for link in box.links}
    assert links["GPU1", "GPU2"].nvlinks is None
    assert links["GPU1", "GPU2"].nvlink_reason == NOT_SHOWN
    assert links["GPU0", "GPU2"].nvlinks == 0


def test_devices_have_what_the_matrix_says_and_no_more() -> None:
    box = wired(PAIR | {
        "stated label GPU0 NIC0": "PIX", "stated nic-name NIC0": "mlx5_7", "stated cpu-affinity GPU0": "0-9",
        "stated numa-affinity GPU0": "1", "stated numa-affinity GPU1": "N/A", "stated nvlink GPU1 0": "x",
    })  # fmt: skip
    gpu, other, nic = box.devices
    assert (gpu.name, gpu.index, gpu.bdf, gpu.cpu_affinity, gpu.numa_node) == ("GPU0", 0, None, "0-9", 1)
    assert isinstance(other.numa_node, Missing)
    assert other.numa_node.gap is Gap.UNSUPPORTED
    assert (other.nvlink_positions, nic.name, nic.kind) == (1, "mlx5_7", "nic")


def test_more_links_than_a_gpu_has_run_through_switches() -> None:
    facts: dict[str, Json] = {f"stated label GPU{a} GPU{b}": "NV6" for a in range(5) for b in range(5) if a != b}
    assert all(link.switched for link in wired(facts).links)
    del facts["stated label GPU0 GPU4"], facts["stated label GPU4 GPU0"]
    three = {key: fact for key, fact in facts.items() if "GPU4" not in key}
    assert not any(link.switched for link in wired(three).links)


def test_a_box_that_agrees_stays_as_it_is() -> None:
    a, b = "0000:06:00.0", "0000:07:00.0"
    assert wired({f"stated label {a} {b}": "NV1"}, "dgx-1-p100") == wired({}, "dgx-1-p100")


def test_differences_from_the_box_are_told() -> None:
    box = wired({"stated label GPU0 GPU1": "NV2", "stated label GPU0 mlx9_9": "PIX"}, "dgx-1-p100")
    assert "The imported nvidia-smi topo matrix shows NV2, the box itself NV1: GPU0-GPU1." in box.notes
    assert "The imported nvidia-smi topo matrix lists devices that the box does not have: mlx9_9." in box.notes
    assert {link.label for link in box.links if {link.a, link.b} == {"GPU0", "GPU1"}} == {"NV1"}


def test_a_cut_graph_may_be_some_machines() -> None:
    full = [list(row) for row in ([0, 1, 1, 2], [1, 0, 2, 1], [1, 2, 0, 1], [2, 1, 1, 0])]
    cut: list[list[int | None]] = [
        [count if 0 in (a, b) else None for b, count in enumerate(full[a])] for a in range(4)
    ]
    assert [it.name for it in possible(cut)] == ["dgx-station-v100"]
    assert possible([[0, 2, None, 2], [2, 0, None, None], [None] * 4, [2, None, None, 0]]) == ()
    assert possible([[0, None], [None, 0]]) == ()
    assert possible([[0, 0, None], [0, 0, 0], [None, 0, 0]]) == ()


@pytest.mark.parametrize(("kind", "asked", "due"), [
    ("p2p-read", "read", [("GPU0", "GPU1", "OK")]),
    ("p2p-read", "write", []),
    ("p2p", "read", [("GPU0", "GPU1", "OK")]),
    ("p2p", "write", [("GPU0", "GPU1", "OK")]),
])  # fmt: skip
def test_statuses_of_a_matrix_are_those_of_its_capability(
    kind: str, asked: str, due: list[tuple[str, str, str]]
) -> None:
    """One that does not name its capability is taken for the one that is asked for; GPUs of no matrix have none."""
    box = wired(PAIR)
    matrix = NvidiaSmiTopo(
        names=("GPU0", "GPU1", "GPU7"), labels={}, pci_labels={}, cpu_affinity={}, numa_affinity={}, gpu_numa_id={},
        nic_names={}, nvlinks={}, p2p={
            kind.removeprefix("p2p").removeprefix("-"): {
                ("GPU0", "GPU1"): "OK", ("GPU0", "GPU7"): "NS", ("GPU7", "GPU1"): "NS",
            },
        },
    )  # fmt: skip
    found = statuses(box, matrix, asked)
    assert [(each.a, each.b, getattr(each, asked)) for each in found] == due
    assert all(isinstance(each.atomics, Missing) for each in found)


def test_a_made_up_crowd_of_devices_is_garbled() -> None:
    lines: GroupedFacts = {}
    for number in range(600):
        insert(lines, f"stated label GPU0 GPU{number}", "PIX")
    found = stated(RecordedSource(lines, Origin("recording")))
    assert isinstance(found, Missing)
    assert found.gap is Gap.GARBLED


NAMES = st.sampled_from(("GPU0", "GPU1", "GPU2", "NIC0", "mlx5_0", "0000:06:00.0", "GPU@x", "\u0661", "GPU99999999999"))
KINDS = st.sampled_from(
    ("label", "label-pci", "p2p", "p2p-read", "nvlink", "cpu-affinity", "numa-affinity", "nic-name", "z")
)
FACTS = st.sampled_from(("NV1", "NV0", "NV999", "NV\u0661", "SYS", "X", "OK", "mlx5_0", "0", "N/A", 3, None, [1],
                         {"missing": "garbled"}, {"missing": 3, "detail": 4}, "\x1b[2J"))  # fmt: skip


@given(
    st.dictionaries(
        st.builds(lambda *words: " ".join(("stated", *words)), KINDS, NAMES, NAMES)
        | st.builds(lambda *words: " ".join(("stated", *words)), KINDS, NAMES),
        FACTS,
        max_size=12,
    )
)
def test_any_statement_is_a_topology(facts: dict[str, Json]) -> None:
    box = wired(facts)
    count = len(box.devices)
    assert len(box.links) == count * (count - 1) // 2
    assert len({device.name for device in box.devices}) == count
    for link in box.links:
        assert (link.pci is None) == bool(link.pci_reason)
        assert (link.nvlinks is None) == bool(link.nvlink_reason)
    nvlink_graph(box)


def test_stated_is_a_record() -> None:
    lines: GroupedFacts = {}
    for key, fact in PAIR.items():
        insert(lines, key, fact)
    found = stated(RecordedSource(lines, Origin("recording")))
    assert isinstance(found, NvidiaSmiTopo)
    assert found.names == ("GPU0", "GPU1")
    assert found.labels == {("GPU0", "GPU1"): "NV2", ("GPU1", "GPU0"): "NV2"}


_RECORDED = Path(__file__).parents[3] / "shared" / "recordings" / "topo"
_UNLIKE = {
    "dgx1-p100-sheffield": "2017: SOC, NICs by name, in the order of a directory",
    "p40-8x-single-root-paddle": "2018: SOC, NICs by name",
    "pcie-4x-2socket-mlx4-tfgdr": "2017: SOC, NICs by name",
    "pcie-8x-pxb-2018-quda669": "2018: NICs by name",
    "pcie-az-4x-m60-rossum": "2017: SOC",
    "dgx-h100-12nic-dgx052-cut": "rows were cut off",
    "l40s-4x-pix-node": "pasted without its first tab",
    "mp-r760xa-1gpu-10nic-sriov": "pasted with blanks in its head",
    "pcie-7gforce-rossum": "pasted without its first tab",
}
"""Captures with tabs that are printed differently, and why; pastes have lost the underlining of the head."""


@pytest.mark.skipif(not _RECORDED.is_dir(), reason="the recordings of other people's machines are not here")
def test_a_matrix_is_printed_byte_for_byte(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unlike: list[str] = []
    same: list[str] = []
    for path in sorted(_RECORDED.glob("*.txt")):
        text, box = path.read_text("utf-8"), str(tmp_path / f"{path.stem}.json")
        if "\t" in text:
            run(capsys, "import", str(path), "-o", box)
            printed = run(capsys, "topo", "-m", "--format", "nvidia-smi", "--from", box).out
            plain = printed if "\x1b" in text else re.sub("\x1b\\[[04]m", "", printed)
            ours, theirs = ((each + "\n").partition("\nLegend:")[0].rstrip("\n") for each in (plain, text))
            (same if ours == theirs else unlike).append(path.stem)
    assert unlike == sorted(_UNLIKE)
    assert len(same) >= 10
