"""nvlink.matrix: what an imported matrix states is judged, alone and against the box that it was put on."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from judging import BAD, of_text
from read_box import box
from sample import BOXES
from seam import run
from smi_texts import matrix

from dgxcheck.checks.nvlink.matrix import _odd

EIGHT = tuple(f"GPU{n}" for n in range(8))
FULL = {(a, b): "NV12" for a in EIGHT for b in EIGHT if a != b}


def found(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], *onto: str) -> Any:
    """The finding about the matrix; None where there is none."""
    (tmp_path / "t.txt").write_text(text, encoding="utf-8")
    assert run(capsys, "import", str(tmp_path / "t.txt"), *onto, "-o", str(tmp_path / "box.json")).code == 0
    document = json.loads(run(capsys, "health", "--format", "json", "--from", str(tmp_path / "box.json")).out)
    assert not [each for each in document["findings"] if each["fault"] == "check-failed"]
    return next((each for each in document["findings"] if each["id"] == "nvlink.matrix"), None)


@pytest.mark.parametrize(("changed", "status", "said"), [
    ({}, "pass", "every GPU"),
    ({pair: "SYS" for pair in FULL if "GPU6" in pair}, "fail", "no NVLink, 7 other GPUs have some"),
    ({("GPU2", "GPU3"): "NV10", ("GPU3", "GPU2"): "NV10"}, "warn", "fewer NVLinks than the 12 between most GPUs"),
    ({("GPU3", "GPU2"): "NV10"}, "pass", "every GPU"),  # the two of whose cells differ are left out
    ({pair: "NV4" if {*pair} in ({"GPU0", "GPU1"}, {"GPU2", "GPU3"}) else "PHB" for pair in FULL}, "pass", "every"),
])  # fmt: skip
def test_a_matrix_alone(
    changed: dict[tuple[str, str], str], status: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finding = found(matrix(FULL | changed, EIGHT), tmp_path, capsys)
    assert finding["status"] == status
    assert said in finding["message"]
    assert finding["subject"]["name"] == ("GPU6" if status == "fail" else "host")


@pytest.mark.parametrize(("changed", "status", "at"), [
    ({}, "pass", "host"), ({(0, 4): 0}, "warn", "host"), ({(0, 4): 0, (0, 1): 0}, "warn", "GPU0"),
    ({(0, 4): 0, (0, 1): 0, (2, 3): 0}, "warn", "host"),
    ({(0, 4): 3}, "pass", "host"),  # no pair of a cube mesh has three
    ({(a, b): 1 for a in range(8) for b in range(a)} | {(0, 1): 0}, "warn", "host"),
    ({(a, b): 1 + (a + b) % 2 for a in range(8) for b in range(a)} | {(0, 1): 1}, "pass", "host"),  # no cube either
])  # fmt: skip
def test_a_gpu_of_a_cube_mesh(changed: dict[tuple[int, int], int], status: str, at: str) -> None:
    topology = box("dgx-1-v100").topology
    pairs = combinations(topology.gpus, 2)
    counts = {frozenset((a.name, b.name)): topology.link(a, b).nvlinks or 0 for a, b in pairs}
    counts |= {frozenset((f"GPU{a}", f"GPU{b}")): links for (a, b), links in changed.items()}
    ((subject, judgement),) = _odd([*EIGHT], counts)
    assert (judgement.status.value, subject.name) == (status, at)


FOUR = [pair for pair in FULL if {*pair} <= {*EIGHT[:4]}]


@pytest.mark.parametrize(("labels", "status", "at"), [
    ({pair: "SYS" for pair in FULL if {*pair} & {*EIGHT[5:]}}, "fail", "GPU5"),
    ({pair: "SYS" for pair in FULL if {*pair} & {*EIGHT[4:]}}, "pass", "host"),  # as many with as without
    ({pair: "NV10" for pair in FULL if "GPU7" in pair}, "warn", "GPU7"),  # three quarters of the pairs have more
    ({pair: "NV10" for pair in FULL if "GPU7" in pair or {*pair} == {"GPU0", "GPU1"}}, "pass", "host"),
])  # fmt: skip
def test_most_gpus_are_alike(
    labels: dict[tuple[str, str], str], status: str, at: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finding = found(matrix(FULL | labels, EIGHT), tmp_path, capsys)
    assert (finding["status"], finding["subject"]["name"]) == (status, at)


@pytest.mark.parametrize(("apart", "status"), [((), "pass"), (("GPU3",), "fail"), (("GPU2", "GPU3"), "pass")])
def test_three_gpus_are_enough(
    apart: tuple[str, ...], status: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = {pair: "SYS" if {*pair} & {*apart} else FULL[pair] for pair in FOUR}
    assert found(matrix(labels, EIGHT[:4]), tmp_path, capsys)["status"] == status


def test_two_bridged_cards_beside_a_third_are_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    three = EIGHT[:3]
    labels = {(a, b): "NV4" if {a, b} == {"GPU0", "GPU1"} else "PHB" for a in three for b in three if a != b}
    assert found(matrix(labels, three), tmp_path, capsys)["status"] == "pass"


def test_a_matrix_is_held_against_the_box(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onto = ("--onto", "dgx-station-v100")
    shown = run(capsys, "topo", "-m", "--from", "dgx-station-v100").out.partition("\n\n")[0] + "\n"
    own = found(shown, tmp_path, capsys, *onto)
    assert (own["status"], own["measured"]) == ("pass", 0)
    other = found(shown.replace("NV2", "NV1"), tmp_path, capsys, *onto)
    assert other["status"] == "warn"
    assert "NV1, not NV2" in other["message"]


def shown(name: str, capsys: pytest.CaptureFixture[str]) -> tuple[list[list[str]], list[str]]:
    """The matrix of a shipped box in cells, the header without the name of a row, and the names of its columns."""
    text = run(capsys, "topo", "-m", "--from", name).out.partition("\n\n")[0].replace("CPU Affinity", "CPU_Affinity")
    header, *rows = [line.replace("NUMA Affinity", "NUMA_Affinity").split() for line in text.splitlines()]
    return rows, header


def bad(rows: list[list[str]], header: list[str], tmp_path: Path) -> dict[str, str]:
    """Findings of a matrix alone that count, and their remedies, by id."""
    titles = "\t".join(header).replace("_Affinity", " Affinity")
    text = "\n".join(["\t" + titles, *("\t".join(row) for row in rows)]) + "\n"
    found = of_text(text, tmp_path)[1]["findings"]
    return {each["id"]: f"{each['message']}; {each['remedy']}" for each in found if each["status"] in BAD}


@pytest.mark.parametrize("name", BOXES)
def test_the_matrix_of_every_box_agrees_with_itself(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bad(*shown(name, capsys), tmp_path) == {}


@pytest.mark.parametrize(("name", "a", "b", "label", "check", "said"), [
    ("dgx-1-v100", "GPU0", "mlx5_0", "SOC", "consistency.host", "no PCI tree has the paths GPU0-mlx5_0 SOC, "),
    ("dgx-1-v100", "GPU2", "mlx5_2", "PIX", "consistency.host", "no PCI tree has the paths GPU2-mlx5_2 PIX, "),
    ("dgx-1-v100", "GPU0", "GPU4", "SOC", "nvlink.matrix", "fewer NVLinks than the 6 of the others: GPU0 4, GPU4 4"),
    ("dgx-1-p100", "GPU5", "GPU7", "PIX", "nvlink.matrix", "fewer NVLinks than the 4 of the others: GPU5 3, GPU7 3"),
    ("dgx-h100", "GPU3", "GPU6", "NV17", "nvlink.matrix", "fewer NVLinks than the 18 between most GPUs: GPU3-GPU6 17"),
    ("k80-x8", "GPU0", "GPU1", "SOC", "consistency.host", "no PCI tree has the paths GPU0-GPU1 SOC, "),
])  # fmt: skip
def test_one_pair_is_another(
    name: str, a: str, b: str, label: str, check: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, header = shown(name, capsys)
    for row in rows:
        if row[0] in (a, b):
            row[1 + header.index(b if row[0] == a else a)] = label
    found = bad(rows, header, tmp_path)
    assert found[check].startswith(said)


@pytest.mark.parametrize(("at", "column", "value", "said"), [
    ("GPU0", "mlx5_0", "PHB", "GPU0-mlx5_0 is PHB one way and PIX the other"),
    ("GPU0", "CPU_Affinity", "0-9", "GPU0-mlx5_0 is PIX, and CPU affinity of GPU0 0-9"),
    ("GPU5", "NUMA_Affinity", "0", "GPU5-mlx5_2 is PIX, and NUMA affinity of GPU5 0"),
])
def test_one_cell_is_another(
    at: str, column: str, value: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, header = shown("dgx-1-v100", capsys)
    next(row for row in rows if row[0] == at)[1 + header.index(column)] = value
    found = bad(rows, header, tmp_path)["consistency.host"]
    assert said in found
    assert found.endswith("; print nvidia-smi topo -m again and judge its whole output")


def test_a_numa_node_that_does_not_apply_contradicts_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, header = shown("dgx-1-v100", capsys)
    next(row for row in rows if row[0] == "GPU5")[1 + header.index("NUMA_Affinity")] = "N/A"
    assert "consistency.host" not in bad(rows, header, tmp_path)


@pytest.mark.parametrize(("name", "nic", "lacking"), [
    ("dgx-1-v100", "mlx5_1", "mlx5_2, mlx5_3); too few behind the PCIe switch of GPU2, GPU3"),
    ("hgx-h100", "mlx5_4", "too few behind the PCIe switch of GPU4"),
    ("k80-x8", "mlx5_0", ""),
])
def test_a_nic_is_far_from_all_gpus(
    name: str, nic: str, lacking: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows, header = shown(name, capsys)
    for row in rows:
        at = 1 + header.index(nic)
        row[1 : len(rows) + 1] = ["SOC" if "NV" not in cell and cell != "X" and nic in (row[0], other) else cell
                                  for cell, other in zip(row[1:], header, strict=False)][: len(rows)]
        assert row[0] == nic or row[at] == "SOC"
    assert lacking in bad(rows, header, tmp_path).get("network.hca-count", "")


def test_a_nic_is_far_beside_the_names_of_the_gpus(tmp_path: Path) -> None:
    nics = tuple(f"NIC{n}" for n in range(8))
    labels = FULL | {pair: "PXB" if gpu[3:] == nic[3:] != "5" else "SYS"
                     for gpu in EIGHT for nic in nics for pair in ((gpu, nic), (nic, gpu))}  # fmt: skip
    labels |= {(a, b): "SYS" for a in nics for b in nics if a != b}
    names = "".join(f"GPU {n}: NVIDIA H100 80GB HBM3 (UUID: GPU-2e2b6342-3996-51b9-5480-e20df571e00{n})\n"
                    for n in range(8))  # fmt: skip
    _, document = of_text(names + matrix(labels, (*EIGHT, *nics)), tmp_path)
    assert [each["message"] for each in document["findings"] if each["id"] == "network.hca-count"] == [
        f"8 HCAs found ({', '.join(nics)}); too few behind the PCIe switch of GPU5",
    ]


def test_a_bridge_carries_less_than_another(tmp_path: Path) -> None:
    names = EIGHT[:4]
    labels = {(a, b): "NV4" if {a, b} in ({"GPU0", "GPU1"}, {"GPU2", "GPU3"}) else "PHB"
              for a in names for b in names if a != b}  # fmt: skip
    assert of_text(matrix(labels, names), tmp_path)[0] == ()
    labels |= {("GPU2", "GPU3"): "NV2", ("GPU3", "GPU2"): "NV2"}
    _, document = of_text(matrix(labels, names), tmp_path)
    assert "fewer NVLinks than the 4 between others: GPU2-GPU3 2" in [each["message"] for each in document["findings"]]


@pytest.mark.parametrize(("changed", "found"), [
    ({}, "pass"),
    ({("GPU0", "GPU4"): "NS", ("GPU4", "GPU0"): "NS"}, "warn"),
    ({("GPU0", "GPU4"): "CNS"}, "warn"),  # one way
    ({pair: "CNS" for pair in FULL if {*pair} <= {*EIGHT[:4]} or {*pair} <= {*EIGHT[4:6]}}, "warn"),  # three quarters
    ({pair: "CNS" for pair in FULL if {*pair} <= {*EIGHT[:4]} or {*pair} <= {*EIGHT[4:7]}}, "skip"),
    ({pair: "TNS" for pair in FULL if (pair[0] < "GPU4") != (pair[1] < "GPU4")}, "skip"),  # two sockets
    ({("GPU0", "GPU4"): "U"}, "skip"),
    ({pair: "GNS" for pair in FULL if "GPU7" in pair}, "skip"),  # a card of another kind
])  # fmt: skip
def test_a_matrix_of_access_alone(changed: dict[tuple[str, str], str], found: str, tmp_path: Path) -> None:
    _, document = of_text(matrix(dict.fromkeys(FULL, "OK") | changed, EIGHT), tmp_path)
    assert [each["status"] for each in document["findings"] if each["id"] == "p2p.status"] == [found]
