"""``dgxcheck bind``: the GPU of a local rank, and what its process is given."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest
from click.testing import CliRunner

from dgxcheck.assessment.machine import LAUNCH, LiveMachine, examine
from dgxcheck.cli import dgxcheck
from dgxcheck.facts.missing import BadInput, Gap, Missing, rows
from dgxcheck.facts.record import replace
from dgxcheck.launch import LOCAL_RANK, Placement, divided, local_rank, near_cpus, of_rank, placements

RANKS = [
    ("0", None, "GPU0", "mlx5_0:1"), ("5", None, "GPU5", "mlx5_7:1"), ("9", None, "GPU1", "mlx5_1:1"),
    ("1", "6,7", "GPU7", "mlx5_9:1"), ("0", " 3 ", "GPU3", "mlx5_3:1"),
]  # fmt: skip


def dry(environment: dict[str, str | None], box: str = "dgx-a100") -> str:
    unset = dict.fromkeys((*LOCAL_RANK, "CUDA_VISIBLE_DEVICES", "NCCL_IB_HCA", "UCX_NET_DEVICES"))
    argv = ["--dry-run", "--from", box, "--", "./train", "-x", "a b"]
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


UUIDS = [f"GPU-{each}-11c8-e0ab-93d1-6c0f21aa97e4" for each in (
    "00000000", "aaaa1111", "aaaa2222", "bbbb0000", "cccc0000", "dddd0000", "eeee0000", "ffff0000")]  # fmt: skip
A, B = UUIDS[1], UUIDS[3]
RULES = {
    "order": ("2,1", [2, 1]), "one": ("3", [3]), "what follows an invalid index": ("0,2,-1,1", [0, 2]),
    "beyond the last": ("1,2,8,3", [1, 2]), "no number": ("4,3,two,1", [4, 3]), "an empty entry": ("0,,1", [0]),
    "a comma at the end": ("0,1,", [0, 1]), "blanks": (" 3 , 2 ", [3, 2]), "trailing characters": ("0,1x", [0, 1]),
    "a suffix": ("1gpu2,2ampere", [1, 2]), "signs": ("2,+3,-0,5", [2, 3, 0, 5]),
    "leading zeros": (f"01,{'2':0>40}", [1, 2]),
    "a range": ("0-2", [0]), "hexadecimal": ("0x1", [0]), "a fraction": ("1.9", [1]), "too large": ("1,99999999", [1]),
    "another script": ("1,\u0662", [1]), "none": ("", []), "a word": ("NoDevFiles", []), "none at once": ("-1,0", []),
    "twice": ("0,1,2,1", None), "twice in other words": ("1,01", None), "twice behind the end": ("0,-1,0", [0]),
    "UUIDs": (f"{B},{A}", [3, 1]), "the beginning of one": ("GPU-bb", [3]), "of several": ("GPU-aaaa", []),
    "of several behind one": (f"{B},GPU-aaaa,{A}", [3]), "of none": (f"{B},GPU-1,{A}", [3]),
    "an index among UUIDs": (f"{A},3", [1]), "a UUID among indexes": (f"3,{A}", [3]), "the same": (f"{A},{A}", None),
    "and its beginning": (f"{A},GPU-aaaa1", None), "capitals": (A.upper(), []), "and blanks": (f"{A}, {B}", None),
    "a MIG device": (f"MIG-{B}/13/0", [3]), "of MIG devices the first": (f"MIG-{B}/1/0,MIG-{A}/1/0", [3]),
    "the beginning of its GPU": ("MIG-GPU-bb/13/0", [3]), "a MIG device by UUID": ("MIG-d184f67c-c95f", None),
    "a GPU behind a MIG device": (f"MIG-{B}/13/0,{A}", [3]), "a MIG device behind a GPU": (f"{A},MIG-{B}/13/0", [1]),
}  # fmt: skip
"""Which GPUs CUDA sees; None where it sees none of a list that names some, or where that is not certain."""


@pytest.mark.parametrize("rule", RULES)
def test_the_rules_of_cuda(rule: str) -> None:
    seen, gpus = RULES[rule]
    placed = _of_uuids(UUIDS)
    if not gpus:
        with pytest.raises(BadInput, match="no GPU of this machine" if gpus == [] else "twice|blanks|not known"):
            of_rank(placed, 0, seen)
        return
    assert [of_rank(placed, rank, seen) for rank in range(len(gpus) + 1)] == [placed[gpu] for gpu in (*gpus, gpus[0])]


def test_a_mig_device_by_uuid_is_of_the_only_gpu() -> None:
    (own,) = only = _of_uuids(UUIDS)[:1]
    assert of_rank(only, 0, "MIG-d184f67c-c95f-5ef2-a935-195bd0094fbd") is own


def test_a_uuid_that_was_not_read_may_be_the_one_that_is_meant() -> None:
    placed = _of_uuids([*UUIDS[:6], Missing(Gap.DENIED, "uuid"), UUIDS[7]])
    assert of_rank(placed, 0, A) is placed[1]
    for seen in ("GPU-bbbb", UUIDS[6]):
        with pytest.raises(BadInput, match="the UUID of GPU6 is not known"):
            of_rank(placed, 0, seen)


def _of_uuids(uuids: Sequence[str | Missing]) -> list[Placement]:
    machine = examine("dgx-1-v100", LAUNCH)
    placed = placements(machine.snapshot, machine.topology)
    return [replace(each, gpu=replace(each.gpu, uuid=uuid)) for each, uuid in zip(placed, uuids, strict=True)]


@pytest.mark.parametrize(
    ("fault", "order"),
    [("pcie-x8-handle-refused", None), ("dgx-1-v100-gpu-lost", "PCI_BUS_ID"), ("dgx-1-v100", "FASTEST_FIRST"),
     ("dgx-a100-mig", None), ("pcie-x4-init-denied", None), ("dgx-2-driver-not-loaded", None)],
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


def test_only_gpus_that_cuda_sees_whole_are_ranks() -> None:
    """GPU1 has MIG enabled: a list without it is sure, and so is one that names a MIG device."""
    machine = examine("dgx-a100-mig", LAUNCH)
    placed = placements(machine.snapshot, machine.topology)
    uuid = str(placed[1].gpu.uuid)
    for seen in (None, "0,1", uuid):
        assert "MIG is enabled on GPU1" in divided(machine.snapshot, placed, seen)
    for seen in ("0,2", f"MIG-{uuid}/1/0"):
        assert divided(machine.snapshot, placed, seen) == ""
    unread = replace(rows(machine.snapshot.gpu_modes)[2], mig=Missing(Gap.TIMEOUT, "MIG mode"))
    snapshot = replace(machine.snapshot, gpu_modes=(unread,))
    assert divided(snapshot, placed, "0,2") == "whether MIG is enabled on GPU2 is not known"
    assert divided(snapshot, placed, "0,1") == ""


def test_a_mistyped_option_is_no_program() -> None:
    done = CliRunner().invoke(dgxcheck, ["bind", "--dryrun", "-i", "0", "--from", "dgx-1-v100", "--", "true"])
    assert isinstance(done.exception, SystemExit)
    assert "--dry-run" in done.output


def test_a_gpu_that_is_not_like_the_others_is_named_with_the_list_without_it() -> None:
    """Of a DGX Station A100 the fourth GPU is that of the display: four ranks would use it and leave one A100 idle."""
    note = "dgxcheck: GPU3 is not of the model of the other GPUs; CUDA_VISIBLE_DEVICES=0,1,2,4 leaves it out"
    assert dry({"LOCAL_RANK": "3"}, "dgx-station-a100").splitlines()[0] == note
    for environment in ({"LOCAL_RANK": "2"}, {"LOCAL_RANK": "3", "CUDA_VISIBLE_DEVICES": "0,1,2,4"}):
        assert "leaves it out" not in dry({**environment}, "dgx-station-a100")
