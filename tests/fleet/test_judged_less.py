"""A node that was judged by less than the others does not pass in silence; a version that one of many has warns."""

from __future__ import annotations

import json
from pathlib import Path
from time import gmtime, strftime, time
from typing import Any

import pytest
from many import result
from schemas import complaints

from dgxcheck.cli import main
from dgxcheck.fleet.judge import judge
from dgxcheck.source.state_file import DATE

LESS: list[tuple[dict[str, Any], set[str], bool]] = [
    ({}, set(), True),
    ({"level": "quick"}, {"level"}, True),
    ({"level": "extended"}, set(), True),
    ({"profile": None}, {"profile"}, True),
    ({"tool_version": "0.0.3"}, {"dgxcheck"}, True),
    ({"tool_version": "9.9.9"}, set(), True),
    ({"coverage": 0.2}, {"coverage"}, False),
    ({"coverage": 0.97}, set(), True),
    ({"skipped": {"no-permission": ["pcie.aer"]}}, {"checks"}, False),
    ({"skipped": {"not-supported": ["pcie.aer"]}}, set(), True),
]


def written(folder: Path, count: int, **of_last: Any) -> str:
    """Fresh results of machines alike, of which the last one has other members."""
    made = {"source": {"kind": "live"}, "generated_at": strftime(DATE, gmtime(time()))}
    nodes = [result("dgx-a100", host=f"n{number}", **made) for number in range(1, count + 1)]
    nodes[-1] |= of_last
    (folder / "all.jsonl").write_text("".join(json.dumps(each) + "\n" for each in nodes))
    return str(folder)


@pytest.mark.parametrize(("members", "aspects", "returns"), LESS)
def test_what_judged_less_warns_and_what_could_not_judge_is_held_back(
    members: dict[str, Any], aspects: set[str], returns: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = written(tmp_path, 4, **members)
    fleet = judge([folder])
    assert {(each.node, each.aspect) for each in fleet.judged_less} == {("n4", aspect) for aspect in aspects}
    assert fleet.verdict == ("warn" if aspects else "pass")
    assert main(["fleet", "--gate", "-n", "n4", folder]) == (0 if returns else 2)
    assert ("n4: return" in capsys.readouterr().out) is returns
    assert main(["fleet", "--gate", "-n", "n1", folder]) == 0


def test_it_is_in_every_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path, 4, coverage=0.2, skipped={"no-permission": ["pcie.aer", "ecc.volatile"]})
    assert main(["fleet", folder]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("WARN: 4 nodes: 4 pass; 1 judged by less\n")
    assert "  n4: coverage 20 % (most: 100 %); not judged there: ecc.volatile, pcie.aer\n" in printed
    main(["fleet", "--format", "json", folder])
    document = json.loads(capsys.readouterr().out)
    assert complaints("fleet", document) == []
    assert [each["coverage"] for each in document["nodes"]] == [1.0, 1.0, 1.0, 0.2]
    assert [each["aspect"] for each in document["judged_less"]] == ["coverage", "checks"]
    main(["fleet", "--format", "html", folder])
    assert "coverage 20 %" in capsys.readouterr().out


@pytest.mark.parametrize(("others", "said"), [
    (0, "; all nodes with driver 570.172.08 have it,"), (1, "; only nodes with driver 570.172.08 have it, 6 of 7:"),
    (3, "; so many nodes have one reason"),
])  # fmt: skip
def test_the_version_of_exactly_the_nodes_with_a_common_fault_is_named(
    others: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    specs = ["dgx-a100-sram-threshold"] * 6 + ["dgx-a100"] * 20
    documents = [result(spec, host=f"n{number:02}") for number, spec in enumerate(specs)]
    for each in documents[: 6 + others]:
        each["versions"] = {**each["versions"], "driver": ["570.172.08"]}
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(each) + "\n" for each in documents))
    main(["fleet", str(tmp_path)])
    assert said in capsys.readouterr().out
    main(["fleet", "--format", "json", str(tmp_path)])
    document = json.loads(capsys.readouterr().out)
    assert complaints("fleet", document) == []
    assert [each["version_nodes"] for each in document["faults"] if each["common"]] == [(6 + others) % 9]


@pytest.mark.parametrize(("odd", "count", "verdict"), [
    (1, 12, "warn"), (1, 8, "warn"), (1, 7, "pass"), (6, 12, "pass"),
])  # fmt: skip
def test_a_version_that_few_have_warns(odd: int, count: int, verdict: str, tmp_path: Path) -> None:
    documents = [result("dgx-a100", host=f"n{number:02}") for number in range(count)]
    for each in documents[:odd]:
        each["versions"] = {**each["versions"], "vbios": ["92.00.00.00.01"]}
    (tmp_path / "all.jsonl").write_text("".join(json.dumps(each) + "\n" for each in documents))
    fleet = judge([str(tmp_path)], max_age_s=1e12)
    assert fleet.verdict == verdict
    assert [each.rare for each in fleet.differences] == [("n00",) if verdict == "warn" else ()]
