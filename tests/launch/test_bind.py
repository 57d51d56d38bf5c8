"""``dgxcheck bind``: the GPU of a local rank, and what its process is given."""

from __future__ import annotations

from collections.abc import Collection

import pytest
from click.testing import CliRunner

from dgxcheck.assessment.machine import LAUNCH, LiveMachine, examine
from dgxcheck.cli import dgxcheck
from dgxcheck.facts.missing import BadInput, Gap, Missing
from dgxcheck.facts.record import replace
from dgxcheck.launch import LOCAL_RANK, local_rank, near_cpus, of_rank, placements

RANKS = [
    ("0", None, "GPU0", "mlx5_0:1"), ("5", None, "GPU5", "mlx5_7:1"), ("9", None, "GPU1", "mlx5_1:1"),
    ("1", "6,7", "GPU7", "mlx5_9:1"), ("0", " 3 ", "GPU3", "mlx5_3:1"),
]  # fmt: skip


def dry(environment: dict[str, str | None]) -> str:
    unset = dict.fromkeys((*LOCAL_RANK, "CUDA_VISIBLE_DEVICES", "NCCL_IB_HCA", "UCX_NET_DEVICES"))
    argv = ["--dry-run", "--from", "dgx-a100", "--", "./train", "-x", "a b"]
    done = CliRunner().invoke(dgxcheck, ["bind", *argv], obj=LiveMachine(), env={**unset, **environment})
    assert done.exit_code == 0, done.exception
    return done.output


@pytest.mark.parametrize(("rank", "seen", "gpu", "port"), RANKS)
@pytest.mark.parametrize("launcher", ["SLURM_LOCALID", "LOCAL_RANK"])
def test_the_gpu_of_a_rank(launcher: str, rank: str, seen: str | None, gpu: str, port: str) -> None:
    said, line = dry({launcher: rank, "CUDA_VISIBLE_DEVICES": seen}).splitlines()
    assert said.startswith(f"# {gpu} ")
    assert line.startswith("CUDA_DEVICE_ORDER=PCI_BUS_ID NCCL_IB_HCA==mlx5_0:1,")
    assert line.endswith(f"UCX_NET_DEVICES={port} ./train -x 'a b'")


@pytest.mark.parametrize("launcher", [name for name in LOCAL_RANK if name != "SLURM_LOCALID"])
def test_a_launcher_within_a_task_of_slurm_counts(launcher: str) -> None:
    """As when torchrun or mpirun is started in a batch script: all its processes inherit SLURM_LOCALID=0."""
    assert local_rank({"SLURM_LOCALID": "0", launcher: "5"}) == 5


PERMITTED = [
    ("0-19,40-59", range(80), {*range(20), *range(40, 60)}), ("0-19,40-59", {3, 18, 25}, {3, 18}),
    ("0-19,40-59", {20, 21}, set()), (Missing(Gap.ABSENT, "numa"), range(80), set()),
]  # fmt: skip


@pytest.mark.parametrize(("cpulist", "permitted", "cpus"), PERMITTED)
def test_only_permitted_cpus_are_bound(cpulist: str | Missing, permitted: Collection[int], cpus: set[int]) -> None:
    machine = examine("dgx-1-v100", LAUNCH)
    own = placements(machine.snapshot, machine.topology)[0]
    assert near_cpus(replace(own, cpulist=cpulist), permitted) == cpus


def test_what_is_set_is_kept() -> None:
    assert "NCCL_IB_HCA" not in dry({"LOCAL_RANK": "0", "NCCL_IB_HCA": "mlx5_9"})


@pytest.mark.parametrize("text", ["x", "-1", "1e3", "٣", "9" * 30])
def test_what_is_no_rank_is_refused(text: str) -> None:
    with pytest.raises(BadInput, match="not a local rank of Slurm"):
        local_rank({"SLURM_LOCALID": text})


@pytest.mark.parametrize(("seen", "rank", "gpu"), [("1,-1,2", 1, 1), ("1,2,8,3", 1, 2), ("3,GPU-none,1", 1, 3)])
def test_what_follows_an_entry_that_names_no_gpu_is_not_seen(seen: str, rank: int, gpu: int) -> None:
    machine = examine("dgx-1-v100", LAUNCH)
    placed = placements(machine.snapshot, machine.topology)
    assert of_rank(placed, rank, seen) is placed[gpu]


@pytest.mark.parametrize(
    ("fault", "order"),
    [("pcie-x8-handle-refused", None), ("dgx-1-v100-gpu-lost", "PCI_BUS_ID"), ("dgx-1-v100", "FASTEST_FIRST")],
)
def test_no_rank_is_bound_where_the_numbers_may_have_shifted(fault: str, order: str | None) -> None:
    argv = ["bind", "--dry-run", "-i", "3", "--from", fault, "--", "true"]
    unset = {**dict.fromkeys((*LOCAL_RANK, "CUDA_VISIBLE_DEVICES")), "CUDA_DEVICE_ORDER": order}
    refused = CliRunner().invoke(dgxcheck, argv, obj=LiveMachine(), env=unset)
    assert isinstance(refused.exception, BadInput)
    assert "--best-effort" in str(refused.exception)
    done = CliRunner().invoke(dgxcheck, [*argv[:2], "--best-effort", *argv[2:]], obj=LiveMachine(), env=unset)
    assert done.exit_code == 0
    assert "all the same" in done.output


@pytest.mark.parametrize("seen", ["8", "GPU-none", "", "NoDevFiles", "1,2,1"])
def test_a_gpu_that_is_not_here_is_refused(seen: str) -> None:
    machine = examine("dgx-1-v100", LAUNCH)
    with pytest.raises(BadInput, match="GPU"):
        of_rank(placements(machine.snapshot, machine.topology), 0, seen)


def test_a_mistyped_option_is_no_program() -> None:
    done = CliRunner().invoke(dgxcheck, ["bind", "--dryrun", "-i", "0", "--from", "dgx-1-v100", "--", "true"])
    assert isinstance(done.exception, SystemExit)
    assert "--dry-run" in done.output


def test_a_uuid_is_found_by_its_beginning() -> None:
    machine = examine("dgx-1-v100", LAUNCH)
    placed = placements(machine.snapshot, machine.topology)
    uuid = str(placed[5].gpu.uuid)
    assert of_rank(placed, 0, uuid) is placed[5]
