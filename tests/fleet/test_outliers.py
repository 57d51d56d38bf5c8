"""Figures off the median are found, noise is not; versions that differ are named."""

from __future__ import annotations

import json
from pathlib import Path

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
    main(["fleet", "--format", "prometheus", str(folder)])
    families = {each.name: each for each in text_string_to_metric_families(capsys.readouterr().out)}
    assert sum(sample.value for sample in families["dgxcheck_fleet_nodes"].samples) == len(planted)
    assert len(families["dgxcheck_fleet_node_verdict"].samples) == len(planted)


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
