"""Which GPU a process of a job uses: its local rank, among the GPUs that it may see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.facts.missing import BadInput
from dgxcheck.launch.placement import Placement

LOCAL_RANK = {
    "LOCAL_RANK": "torchrun", "OMPI_COMM_WORLD_LOCAL_RANK": "Open MPI", "MPI_LOCALRANKID": "Intel MPI and MPICH",
    "MV2_COMM_WORLD_LOCAL_RANK": "MVAPICH", "PALS_LOCAL_RANKID": "Cray PALS", "PMI_LOCAL_RANK": "Cray PMI",
    "JSM_NAMESPACE_LOCAL_RANK": "IBM JSM", "FLUX_TASK_LOCAL_ID": "Flux", "SLURM_LOCALID": "Slurm",
}  # fmt: skip
"""Where launchers say it; the first that is set counts. Schedulers come last: a launcher that one task of a job starts
leaves ``SLURM_LOCALID=0`` to all its processes."""
VISIBLE = "CUDA_VISIBLE_DEVICES"


def local_rank(environment: Mapping[str, str]) -> int | None:
    """Of this process on its node; None where no launcher says it. Raises BadInput for what is no number."""
    for name, launcher in LOCAL_RANK.items():
        text = environment.get(name, "")
        if text:
            if not (text.isascii() and text.isdigit() and len(text) < 7):
                raise BadInput(f"{name}={text[:40]}: not a local rank of {launcher}")
            return int(text)
    return None


def of_rank(placed: Sequence[Placement], rank: int, visible: str | None) -> Placement:
    """The GPU of a local rank among those of ``CUDA_VISIBLE_DEVICES`` (indexes or UUIDs); more ranks take turns.

    Indexes are in the order of the bus: ``bind`` sets ``CUDA_DEVICE_ORDER``. Raises BadInput where it names none here.
    """
    seen = list(placed) if visible is None else [_named(placed, word) for word in visible.split(",") if word.strip()]
    if not seen:
        raise BadInput("CUDA_VISIBLE_DEVICES is empty: no GPU for this process" if visible is not None else
                       "no GPU found; see dgxcheck health")  # fmt: skip
    return seen[rank % len(seen)]


def _named(placed: Sequence[Placement], word: str) -> Placement:
    text = word.strip()
    if text.isascii() and text.isdigit() and int(text) < len(placed):
        return placed[int(text)]
    found = [each for each in placed if text.startswith("GPU-") and isinstance(each.gpu.uuid, str)
             and each.gpu.uuid.startswith(text)]  # fmt: skip
    if len(found) != 1:
        raise BadInput(f"{VISIBLE}={' '.join(text[:60].split())}: no GPU of this machine")
    return found[0]
