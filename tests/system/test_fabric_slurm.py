"""The chain: a fabric is discovered, Slurm loads the topology.conf made of it, and a job lands below one leaf."""

from __future__ import annotations

from pathlib import Path

import pytest
from fabrics import Fabric
from sample import swept
from slurm_cluster import cluster

from dgxcheck.cli import main


@pytest.mark.parametrize("systems", swept((12, 124), 2))
def test_a_job_of_four_lands_below_one_leaf(systems: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


MEASURES = """#!/bin/bash
# a pair is as slow as dgx003
case "$SLURMD_NODENAME $*" in *dgx003*) rate=40;; *) rate=97;; esac
printf '{"BW_average": %s}\\n' "$rate"
"""


@pytest.mark.exhaustive
def test_the_batch_script_of_pairs_runs_and_its_outputs_blame_the_bad_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Real sbatch and srun; ib_write_bw is a stand-in, which needs no time to start."""
    folder, out, script = tmp_path / "slurm", tmp_path / "out", tmp_path / "pairs.sh"
    folder.mkdir()
    hosts = [f"dgx{number:03}" for number in range(6)]
    assert main(["fleet", "pairs", "-w", "dgx[000-005]", "--launcher", "slurm", "-o", str(script)]) == 0
    with cluster(folder, dict.fromkeys(hosts, "CPUs=2"), "") as made:
        for name, text in (("ib_write_bw", MEASURES), ("sleep", "#!/bin/bash\n")):
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        log = str(folder / "job.log")
        job = made.asked("sbatch", "--parsable", "--chdir", str(folder), "-o", log, str(script), str(out)).strip()
        made.until(lambda: "JobState=COMPLETED" in made.asked("scontrol", "show", "job", job), f"job {job}")
        assert (folder / "job.log").read_text() == ""
    assert len([*out.iterdir()]) == 9
    assert main(["fleet", "pairs", str(out)]) == 2
    said = capsys.readouterr().out
    assert said.startswith("FAIL: 6 nodes, 9 measurements in 3 rounds: 1 bad adapter\n")
    assert "dgx003" in said
