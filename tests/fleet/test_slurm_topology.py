"""topology.conf from results: blocks are NVLink domains of several machines, and nothing else is made up."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from many import result

from dgxcheck.assessment.machine import examine
from dgxcheck.assessment.node_facts import nvlink_domains
from dgxcheck.cli import main
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvml.gpu import Fabric, GpuModes
from dgxcheck.facts.record import replace
from dgxcheck.survey import Snapshot

UNKNOWN = Missing(Gap.UNSUPPORTED, "nvml nvmlDeviceGetGpuFabricInfo", "")
CLUSTER = "3f2c1a9e-0000-4000-8000-0000000000a1"
ZEROS = "00000000-0000-0000-0000-000000000000"


def test_no_results_are_no_topology(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (conf := tmp_path / "topology.conf").write_text("as it was\n")
    assert main(["fleet", "--format", "topology", "-o", str(conf), str(tmp_path)]) == 3
    assert "no results; in a folder" in capsys.readouterr().err
    assert conf.read_text() == "as it was\n"


def topology(tmp_path: Path, capsys: pytest.CaptureFixture[str], domains: dict[str, list[str]]) -> list[str]:
    lines = (json.dumps(result("dgx-a100", host=node, nvlink_domains=each)) for node, each in domains.items())
    (tmp_path / "results.jsonl").write_text("\n".join(lines))
    assert main(["fleet", "--format", "topology", str(tmp_path)]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_block_per_domain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    racks = {f"nvl{number:03}": [f"{CLUSTER}.{32766 + (number > 18)}"] for number in range(1, 37)}
    lines = topology(tmp_path, capsys, racks)
    assert [line for line in lines if line[0] != "#"] == [
        "BlockName=nvl-3f2c1a9e-32766 Nodes=nvl[001-018]", "BlockName=nvl-3f2c1a9e-32767 Nodes=nvl[019-036]",
    ]  # fmt: skip
    assert lines[0] == f"# NVLink domain {CLUSTER}.32766: cluster UUID and clique"


def test_what_is_in_no_block_is_a_comment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = topology(tmp_path, capsys, {"a1": [], "a2": [], "b1": [f"{CLUSTER}.1", f"{CLUSTER}.2"]})
    assert not [line for line in lines if line[0] != "#"]
    assert "# in no NVLink domain of several machines: a[1-2]" in lines
    assert f"# b1 has GPUs in several NVLink domains: {CLUSTER}.1, {CLUSTER}.2" in lines
    (tmp_path / "cut.jsonl").write_text('{"schema"')
    assert main(["fleet", "--format", "topology", str(tmp_path)]) == 3
    assert f"# not read: {tmp_path}/cut.jsonl: not a JSON document\n" in capsys.readouterr().out


def test_hostile_names_stay_in_their_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evil = "\nBlockName=evil Nodes=b"
    lines = topology(tmp_path, capsys, {"a": [f"x{evil}"], f"b{evil}": [f"{CLUSTER}.1"], "c Nodes=x": [f"{CLUSTER}.1"]})
    assert not any(re.match("BlockName=evil", line) for line in lines)
    assert not [line for line in lines if line[0] != "#"]


@pytest.mark.parametrize(
    ("state", "cluster", "clique", "domains"),
    [
        (3, CLUSTER, 32766, (f"{CLUSTER}.32766",)),
        (3, ZEROS, 0, ()),
        (2, CLUSTER, 32766, ()),
        (3, UNKNOWN, 1, ()),
        (3, CLUSTER, UNKNOWN, ()),
        (UNKNOWN, CLUSTER, 1, ()),
    ],
)
def test_only_a_registered_gpu_is_in_a_domain(
    state: int | Missing, cluster: str | Missing, clique: int | Missing, domains: tuple[str, ...]
) -> None:
    facts = examine("dgx-a100", ("gpu_modes",)).snapshot
    fabric = Fabric(state=state, status=0, clique_id=clique, cluster_uuid=cluster, health_mask=UNKNOWN,
                    health_summary=UNKNOWN)  # fmt: skip
    assert not isinstance(facts.gpu_modes, Missing)
    modes: tuple[GpuModes, ...] = tuple(replace(each, fabric=fabric) for each in facts.gpu_modes)
    assert nvlink_domains(Snapshot(gpu_modes=modes)) == domains
    assert nvlink_domains(Snapshot(gpu_modes=UNKNOWN)) == ()
