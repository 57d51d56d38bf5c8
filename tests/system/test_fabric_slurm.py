"""The chain: a fabric is discovered, Slurm loads the topology.conf made of it, and a job lands below one leaf."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabrics import Fabric
from slurm_cluster import cluster

from dgxcheck.cli import main


@pytest.mark.parametrize("systems", [12, pytest.param(124, marks=pytest.mark.exhaustive)])
def test_a_job_of_four_lands_below_one_leaf(
    systems: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fabric = Fabric("fat", systems)
    (tmp_path / "ib.txt").write_text(fabric.discovered())
    assert main(["fabric", "--format", "slurm", str(tmp_path / "ib.txt")]) == 0
    topology = capsys.readouterr().out
    folder = tmp_path / "slurm"
    folder.mkdir()
    hosts = dict.fromkeys(fabric.hosts, "CPUs=1")
    with cluster(folder, hosts, "", topology) as made:
        assert "SwitchName=leaf001 Level=0" in made.asked("scontrol", "show", "topology")
        said = made.asked("srun", "-N4", "--switches=1", "printenv", "SLURM_TOPOLOGY_ADDR")
        leaves = {line.split(".")[1] for line in said.split()}
        assert len(leaves) == 1
        assert len(said.split()) == 4
