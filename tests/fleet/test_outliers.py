"""Figures off the median are found, noise is not; versions and settings that differ are named."""

from __future__ import annotations

import json
from pathlib import Path
from time import time

import pytest
from many import fleet, result
from prometheus_client.parser import text_string_to_metric_families
from schemas import complaints

from dgxcheck.cli import main
from dgxcheck.fleet.judge import judge


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """400 machines in a folder, and what is wrong with which of them."""
    folder = tmp_path_factory.mktemp("fleet")
    planted = {}
    with (folder / "all.jsonl").open("w") as stream:
        for document, fault in fleet(400):
            stream.write(json.dumps(document) + "\n")
            planted[document["host"]] = fault
    return folder, planted


def test_what_was_planted_is_found_and_nothing_else(many: tuple[Path, dict[str, str]]) -> None:
    folder, planted = many
    found = judge([str(folder)])
    figures = {(node, fault[7:]) for node, fault in planted.items() if fault.startswith("figure ")}
    faults = {node for node, fault in planted.items() if fault == "fault"}
    assert len(figures) > 5
    assert len(faults) > 5
    assert figures <= {(each.node, each.key) for each in found.outliers}
    assert faults == {name for name, node in found.nodes.items() if node.verdict != "pass"}
    healthy = {node for node, fault in planted.items() if not fault}
    assert healthy.isdisjoint({each.node for each in found.outliers})


def test_json_and_prometheus_are_read_back(
    many: tuple[Path, dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    folder, planted = many
    assert main(["fleet", "--format", "json", "--fail-on", "never", str(folder)]) == 0
    document = json.loads(capsys.readouterr().out)
    for name, found in (("fleet", document), ("result", result("dgx-1-v100-bar1-small"))):
        assert complaints(name, found) == []
    assert len(document["nodes"]) == len(planted)
    main(["fleet", "--format", "prometheus", "-n", "node00000,silent", str(folder)])
    families = {each.name: each for each in text_string_to_metric_families(capsys.readouterr().out)}
    assert sum(sample.value for sample in families["dgxcheck_fleet_nodes"].samples) == len(planted)
    verdicts = {each.labels["node"]: each.value for each in families["dgxcheck_fleet_node_verdict"].samples}
    assert verdicts.keys() == planted.keys() | {"silent"}
    assert verdicts["silent"] == 3
    assert len(families["dgxcheck_fleet_node_result_timestamp_seconds"].samples) == len(planted)
    (verdict,), (date,) = (families[f"dgxcheck_fleet_{each}"].samples for each in ("verdict", "timestamp_seconds"))
    assert verdict.value == 2
    assert time() - 60 < date.value <= time()


def test_few_nodes_have_no_median(tmp_path: Path) -> None:
    lines = [json.dumps(document) for document, _ in fleet(6)]
    (tmp_path / "few.jsonl").write_text("\n".join(lines))
    assert judge([str(tmp_path)]).outliers == ()


def test_versions_that_differ(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = []
    for number in range(16):
        document = result("dgx-1-v100", host=f"dgx{number:03}")
        document["versions"]["vbios"] = ["88.00.43.00.04"] if number == 7 else document["versions"]["vbios"]
        lines.append(json.dumps(document))
    (tmp_path / "all.jsonl").write_text("\n".join(lines))
    (only,) = judge([str(tmp_path)]).differences
    assert (only.name, [len(nodes) for nodes in only.nodes.values()]) == ("vbios", [15, 1])
    main(["fleet", str(tmp_path)])
    assert "88.00.43.00.04: dgx007 (1)" in capsys.readouterr().out


@pytest.mark.parametrize(("box", "odd", "shown"), [
    ("dgx-a100", "dgx-a100-governor", "frequency governor: performance: n[01-15] (15); powersave: n00 (1)"),
    ("dgx-a100", "dgx-a100-read-request-all", "; 128 bytes, 512 bytes: n00 (1)"),
    ("dgx-1-v100", "dgx-1-v100-ecc-off", "GPU ECC mode: on: n[01-15] (15); off, on: n00 (1)"),
    ("dgx-1-v100", "dgx-1-v100-hca-ethernet", "link layer: InfiniBand: n[01-15] (15); Ethernet, InfiniBand: n00 (1)"),
    ("dgx-2", "dgx-2-memory-limited", "kernel command line: ro: n[01-15] (15); ro mem=512G: n00 (1)"),
    ("dgx-1-p100", "dgx-1-p100-maxcpus", "kernel command line: ro: n[01-15] (15); ro maxcpus=20: n00 (1)"),
])  # fmt: skip
def test_a_setting_that_one_node_has(
    box: str, odd: str, shown: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 16 nodes alike; what has as many values as nodes is not compared."""
    documents = [result(odd if number == 0 else box, host=f"n{number:02}") for number in range(16)]
    for number, document in enumerate(documents):
        document["settings"]["asset"] = [str(number)]
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    main(["fleet", str(tmp_path)])
    printed = capsys.readouterr().out
    assert f"{shown}\n" in printed
    assert "; 1 with a version or setting that few have" in printed
    assert "asset" not in printed


NOW = "570.148.08"


def measured(folder: Path, slow: dict[int, tuple[float, int, str]], nodes: int = 30) -> str:
    """Nodes of which some have a share of the memory bandwidth, on so many of their GPUs, and with a driver."""
    lines = []
    for number in range(nodes):
        share, gpus, driver = slow.get(number, (1.0, 0, NOW))
        document = result("dgx-a100", host=f"dgx{number:03}")
        document["versions"]["driver"] = [driver]
        places = [part["at"] for part in document["parts"] if part["kind"] == "gpu"]
        for turn, at in enumerate(places):
            value = (1300 + number % 5 + turn / 10) * (share if turn < gpus else 1)
            document["passed"][f"measure.memory-bandwidth/{at}"] = value
        lines.append(json.dumps(document) + "\n")
    (folder / "all.jsonl").write_text("".join(lines))
    return str(folder)


def test_no_node_that_is_off_hides_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow = dict.fromkeys((3, 4), (0.7, 8, NOW)) | {20: (0.8, 1, NOW), 21: (0.9, 3, NOW)}
    assert main(["fleet", measured(tmp_path, slow)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "WARN: 30 nodes: 30 pass; 4 off the median"
    rows = [line.strip() for line in lines if " measure.memory-bandwidth" in line]
    assert rows[:2] == [f"dgx00{number} measure.memory-bandwidth, 8 GPUs, -30 %" for number in (3, 4)]
    assert rows[2].startswith("dgx020 measure.memory-bandwidth/0000:07:00.0: ")
    assert rows[3:] == ["dgx021 measure.memory-bandwidth, 3 GPUs, -10 %"]


@pytest.mark.parametrize(("slow", "off"), [
    ({6: (0.6, 8, "550")}, {6}), ({6: (1, 0, "550")}, set()), ({6: (0.6, 8, "550"), 7: (0.6, 8, NOW)}, {6, 7}),
    (dict.fromkeys(range(8), (0.6, 8, "550")), set()),
    ({number: (0.6 if number == 2 else 1, 8, f"55{number % 4}") for number in range(12)}, {2}),
])  # fmt: skip
def test_few_nodes_with_a_driver_are_compared_with_all_drivers(
    slow: dict[int, tuple[float, int, str]], off: set[int], tmp_path: Path
) -> None:
    found = judge([measured(tmp_path, slow)]).outliers
    assert {each.node for each in found} == {f"dgx{number:03}" for number in off}
    assert {each.node for each in found if each.another_driver} == {
        f"dgx{number:03}" for number in off if slow[number][2] != NOW
    }


def test_a_driver_that_few_have_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = measured(tmp_path, {6: (0.6, 8, "550")})
    main(["fleet", folder])
    assert "dgx006 measure.memory-bandwidth, 8 GPUs, -40 % (another driver)" in capsys.readouterr().out
    main(["fleet", "--format", "json", folder])
    document = json.loads(capsys.readouterr().out)
    assert complaints("fleet", document) == []
    assert [each["another_driver"] for each in document["outliers"]] == [True] * 8
    main(["fleet", "--format", "html", folder])
    assert "-40 %, another driver" in capsys.readouterr().out
