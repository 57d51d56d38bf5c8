"""NCCL's log as its versions from 2.5 on write it: the same GPUs and the same ring."""

from __future__ import annotations

import pytest
from readers_text import one, unread

from dgxcheck.readers.nccl import log

Box = list[tuple[int, str, int]]
"""CUDA's number, the bus, NVML's number of each GPU."""
ERAS = {
    "2.5": ("comm 0x7 rank {rank} nranks {n} cudaDev {cuda} busId {bus}000 - Init COMPLETE", "{rank}[{bus}000]", ""),
    "2.17": ("comm 0x7 rank {rank} nranks {n} cudaDev {cuda} busId {bus}000 commId 0x1 - Init COMPLETE",
             "{rank}[{bus}000]", "/0"),
    "2.18": ("comm 0x7 rank {rank} nranks {n} cudaDev {cuda} nvmlDev {nvml} busId {bus}000 commId 0x1 - Init COMPLETE",
             "{rank}[{nvml}]", "/0"),
    "2.27": ("ncclCommInitRank comm 0x7 rank {rank} nranks {n} cudaDev {cuda} nvmlDev {nvml} busId {bus}000"
             " commId 0x1 - Init COMPLETE", "{rank}[{nvml}]", "/1"),
}  # fmt: skip
"""Init line, end of a channel, connection index: as those versions write them."""


def written(era: str, box: Box) -> str:
    init, end, index = ERAS[era]
    ranks = [
        {"rank": rank, "n": len(box), "cuda": cuda, "bus": bus, "nvml": nvml}
        for rank, (cuda, bus, nvml) in enumerate(box)
    ]
    lines = [init.format(**rank) for rank in ranks]
    for one_rank, other in zip(ranks, ranks[1:] + ranks[:1], strict=True):
        lines.append(f"Channel 00{index} : {end.format(**one_rank)} -> {end.format(**other)} via P2P/IPC")
    return "\n".join(f"node7:{40 + n}:{80 + n} [{n % len(box)}] NCCL INFO {line}" for n, line in enumerate(lines))


BOX: Box = [(0, "1b", 4), (1, "43", 5), (2, "c3", 6), (3, "e1", 7)]


@pytest.mark.parametrize("era", ERAS)
def test_every_version_names_the_same_gpus(era: str) -> None:
    text = written(era, BOX)
    found = one(log.read_log, text)
    assert unread([found], text) == []
    listed = {int(key.split()[-1]): fact for key, fact in found.facts.items() if key.startswith("nvml")}
    assert listed == ({nvml: f"0000:{bus}:00.0" for _, bus, nvml in BOX} if "nvmlDev" in ERAS[era][0] else {})
    shown = {key.split("/")[5] for key in found.facts if key.endswith("/class")}
    assert shown == {f"0000:{bus}:00.0" for _, bus, _ in BOX}
    pairs = {tuple(key.split()[2:]) for key in found.facts if key.startswith("measure access")}
    ring = [f"0000:{bus}:00.0" for _, bus, _ in BOX]
    assert pairs == set(zip(ring, ring[1:] + ring[:1], strict=True))
