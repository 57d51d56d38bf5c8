"""Slurm itself, with 16 nodes of recordings and one with eight GPUs: what is drained, kept and resumed, and where jobs
land.
"""

from __future__ import annotations

import re
import stat
import subprocess
from collections.abc import Iterator
from os import makedev, mknod
from pathlib import Path

import pytest
from programs import lacking
from sample import swept
from slurm_cluster import Cluster, cluster

from dgxcheck.assessment.machine import LAUNCH, examine
from dgxcheck.cli import main

NODES = [f"dgx{number:03}" for number in range(1, 17)]
HEALTHY = "dgx-1-v100"
FAULTY = {"dgx002": "gpu-lost", "dgx007": "hot", "dgx011": "no-nvml"}
REASONS = {
    "dgx002": "dgxcheck: gpu.lost GPU@0000:0a:00.0 gpu-lost [REBOOT]; level quick",
    "dgx007": "dgxcheck: thermal.temperature GPU2_0000:0a:00.0 overheating 88 C, limit 87 [INSPECT]; level quick",
    "dgx011": "dgxcheck: driver.library host library-missing [CHANGE_SETTING]; level quick",
}
DRAINED = "gpu.lost GPU@0000:0a:00.0 gpu-lost [REBOOT]; level"


GPU_NODES = {"gpu1": "dgx-1-v100", "gpu2": "dgx-station-v100", "gpu3": "k80-x8", "gpu4": "dgx-a100"}


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("slurm")
    texts = {node: gres(folder, box) for node, box in GPU_NODES.items()}
    nodes = dict.fromkeys(NODES, "CPUs=2") | {node: hardware(text) for node, text in texts.items()}
    lines = [line.replace("Name=", f"NodeName={node} Name=", 1) for node, text in texts.items() for line in text]
    with cluster(folder, nodes, "\n".join(lines)) as made:
        yield made


def gres(folder: Path, box: str) -> list[str]:
    """Our lines, with device nodes of our own: slurmd wants character devices."""
    file = folder / "topo.txt"
    assert main(["topo", "--format", "gres", "--from", box, "-o", str(file)]) == 0
    try:
        for number in range(8):
            if not (folder / f"nvidia{number}").exists():
                mknod(folder / f"nvidia{number}", stat.S_IFCHR | 0o600, makedev(195, number))
    except PermissionError:
        lacking("device nodes cannot be made here")
    lines = file.read_text(encoding="utf-8").replace("File=/dev/", f"File={folder}/").splitlines()
    return [line for line in lines if line[0] != "#"]


def hardware(lines: list[str]) -> str:
    """Of slurm.conf; a NUMA node counts as a socket, as numa_node_as_socket has it."""
    cores = [tuple(map(int, found)) for line in lines for found in re.findall(r"Cores=(\d+)-(\d+)", line)]
    each, last = cores[0][1] - cores[0][0] + 1, max(end for _, end in cores)
    kind = re.findall(r"Type=(\w+)", lines[0])[0]
    return f"Sockets={(last + 1) // each} CoresPerSocket={each} Gres=gpu:{kind}:{len(lines)}"


def repaired(slurm: Cluster) -> None:
    for node in slurm.nodes:
        slurm.box(node, HEALTHY)
    slurm.until(lambda: not slurm.drained(), "all nodes resumed")


def told(slurm: Cluster, *lines: tuple[str, str]) -> None:
    """Reasons by node, as a sweep has them."""
    text = "".join(f"{node}\t{reason}\n" for node, reason in lines)
    script = str(slurm.folder / "bin" / "slurm-nodes.sh")
    subprocess.run([script], input=text, text=True, check=True, timeout=60, capture_output=True, env={})


def test_faulty_nodes_are_drained_and_resumed_when_repaired(slurm: Cluster) -> None:
    slurm.asked("scontrol", "update", "NodeName=dgx009", "State=DRAIN", "Reason=fan ordered; level default")
    slurm.asked("scontrol", "update", "NodeName=dgx010", "State=DRAIN", "Reason=dgxcheck: J. asked for a rerun")
    foreign = {node: slurm.states()[node].reason for node in ("dgx009", "dgx010")}
    for node, fault in {**FAULTY, "dgx004": "power-cap", "dgx009": "gpu-lost"}.items():
        slurm.box(node, f"{HEALTHY}-{fault}")
    slurm.checked()
    assert slurm.drained() == REASONS | foreign
    assert "dgx009 is already drained (fan ordered; level default) and has a fault" in slurm.log()
    slurm.box("dgx007", HEALTHY)
    slurm.box("dgx002", f"{HEALTHY}-hot")
    slurm.checked()
    assert slurm.drained() == {**foreign, "dgx002": REASONS["dgx007"], "dgx011": REASONS["dgx011"]}
    for node in NODES:
        slurm.box(node, HEALTHY)
    slurm.checked()
    assert slurm.drained() == foreign
    for node in foreign:
        slurm.asked("scontrol", "update", f"NodeName={node}", "State=RESUME")


def test_a_fault_of_all_nodes_drains_few(slurm: Cluster) -> None:
    """15 % of 20 nodes; the first round is that of all nodes at once."""
    for node in slurm.nodes:
        slurm.box(node, f"{HEALTHY}-gpu-lost")
    slurm.checked()
    slurm.checked()
    assert len(slurm.drained()) == 3
    assert slurm.log().count("is not drained") >= len(slurm.nodes) - 3
    slurm.checked()
    assert len(slurm.drained()) == 3
    repaired(slurm)


def test_one_node_may_always_be_drained(slurm: Cluster) -> None:
    with slurm.setting("DGXCHECK_DRAIN_PERCENT", "1"):
        told(slurm, *((node, f"dgxcheck: {DRAINED} extended") for node in NODES[:4]))
    assert list(slurm.drained()) == ["dgx001"]
    with slurm.setting("DGXCHECK_RESUME", "no"):
        told(slurm, ("dgx001", "dgxcheck: pass; level extended"))
    assert list(slurm.drained()) == ["dgx001"]
    told(slurm, ("dgx001", "dgxcheck: pass; level extended"))
    assert not slurm.drained()


def test_only_the_level_that_found_it_proves_a_fault_gone(slurm: Cluster) -> None:
    told(slurm, ("dgx001", f"dgxcheck: {DRAINED} extended"), ("dgx002", f"dgxcheck: {DRAINED} default"))
    slurm.until(lambda: list(slurm.drained()) == ["dgx001"], "dgx002 checked with the default level")
    slurm.checked()
    told(slurm, ("dgx001", "dgxcheck: unknown; level extended"), ("dgx001", "dgxcheck: warn; level default"))
    assert slurm.drained() == {"dgx001": f"dgxcheck: {DRAINED} extended"}
    told(slurm, ("dgx001", "dgxcheck: gpu.model host gpu-model; level quick"))
    assert slurm.drained() == {"dgx001": f"dgxcheck: {DRAINED} extended"}
    told(slurm, ("dgx001", "dgxcheck: warn; level extended"))
    assert not slurm.drained()


HOSTILE = [
    ("ALL", f"dgxcheck: {DRAINED} quick"),
    ("dgx[001-016]", f"dgxcheck: {DRAINED} quick"),
    ("dgx001", "dgxcheck: gpu.lost\" State=\"DOWN; level quick"),
    ("dgx001", "dgxcheck: no such option; try --help"),
    ("dgx001", f"dgxcheck: {'x' * 300}; level quick"),
    ("-n", f"dgxcheck: {DRAINED} quick"),
    ("nobody", f"dgxcheck: {DRAINED} quick"),
]  # fmt: skip


def test_nothing_else_reaches_scontrol(slurm: Cluster) -> None:
    before = slurm.states()
    told(slurm, *HOSTILE)
    assert slurm.states() == before
    assert slurm.log().count("not a node and its drain reason") == len(HOSTILE) - 1
    assert "nobody is not known to Slurm" in slurm.log()


def job(slurm: Cluster, *words: str) -> str:
    """Its number."""
    return slurm.asked("sbatch", "--parsable", "-o", "/dev/null", *words).strip()


def sweep(slurm: Cluster, results: Path, *options: str) -> str:
    """What its batch script prints."""
    results.chmod(0o777)
    apply = slurm.folder / "bin" / "slurm-nodes.sh"
    exports = f"--export=ALL,DGXCHECK_RESULTS={results},DGXCHECK_APPLY={apply}"
    script = str(slurm.folder / "bin" / "slurm-sweep.sh")
    number = job(slurm, "-N3", "-w", "dgx003,dgx004,dgx005", exports, "-o", str(results / "out"), script, *options)
    slurm.until(lambda: not slurm.asked("squeue", "-h", "-j", number), "the sweep")
    assert len(list((results / number).iterdir())) == 3
    return (results / "out").read_text(encoding="utf-8")


def test_a_sweep_drains_what_the_default_level_finds(slurm: Cluster, tmp_path: Path) -> None:
    slurm.box("dgx004", f"{HEALTHY}-nvlink-crc-flood")
    slurm.checked()
    assert slurm.drained() == {}
    shown = sweep(slurm, tmp_path)
    assert shown.startswith("FAIL: 3 nodes: 1 fail, 2 pass\nfail           1  dgx004\npass           2  dgx[003,005]\n")
    assert list(slurm.drained()) == ["dgx004"]
    assert slurm.drained()["dgx004"].endswith("; level default")
    slurm.checked()
    assert list(slurm.drained()) == ["dgx004"]
    repaired(slurm)


@pytest.mark.parametrize("script", ["prolog", "epilog"])
def test_a_fault_at_a_job_drains_with_its_reason(script: str, slurm: Cluster) -> None:
    """The script gives it before slurmd drains the node, which leaves it as it is; a health check takes it back."""
    slurm.box("dgx006", f"{HEALTHY}-gpu-lost", f"{script}_slurmd")
    number = job(slurm, "-w", "dgx006", "--wrap=true")
    reason = f"dgxcheck: {DRAINED} quick"
    slurm.until(lambda: slurm.drained() == {"dgx006": reason}, reason)
    assert f"{script} of job {number} (exit code 2): dgxcheck: {DRAINED} quick" in slurm.log()
    slurm.asked("scancel", number)
    slurm.box("dgx006", HEALTHY, f"{script}_slurmd")
    slurm.until(lambda: slurm.drained() == {}, "the health check, which finds no fault, resumes it")


@pytest.mark.parametrize("node", swept(GPU_NODES, 2))
def test_jobs_of_two_gpus_land_on_the_best_links(node: str, slurm: Cluster) -> None:
    """On a DGX-1 all four pairs have two NVLinks; without ``Links=`` two pairs of four have one."""
    topology = examine(GPU_NODES[node], LAUNCH).topology
    gpus = sorted(topology.gpus, key=lambda gpu: gpu.bdf or "")
    jobs = [job(slurm, "-w", node, "-n1", "--gres=gpu:2", "--wrap=sleep 60") for _ in range(len(gpus) // 2)]
    slurm.until(lambda: len(slurm.asked("squeue", "-h", "-t", "R", "-w", node).splitlines()) == len(jobs), "running")
    shown = [slurm.asked("scontrol", "-d", "show", "job", each) for each in jobs]
    pairs = [list(numbers(re.findall(r"IDX:([\d,-]+)", text)[0])) for text in shown]
    slurm.asked("scancel", *jobs)
    slurm.until(lambda: not slurm.asked("squeue", "-h", "-w", node), "jobs ended")
    assert sorted(gpu for pair in pairs for gpu in pair) == list(range(len(gpus)))
    assert all(gpus[a].numa_node == gpus[b].numa_node for a, b in pairs)
    links = [[topology.link(a, b).nvlinks or 0 if a is not b else 0 for b in gpus] for a in gpus]
    assert sum(links[a][b] for a, b in pairs) == most_links(links, list(range(len(gpus))))


def numbers(text: str) -> Iterator[int]:
    """``0,3-4`` -> 0, 3, 4."""
    for part in text.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def most_links(links: list[list[int]], left: list[int]) -> int:
    """Of all ways to make pairs."""
    if not left:
        return 0
    first, *others = left
    return max(links[first][each] + most_links(links, [n for n in others if n != each]) for each in others)
