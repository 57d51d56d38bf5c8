"""Which GPU is lost where NVML says so in answer to queries about pairs of GPUs alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from dgxcheck.checks.engine.box import Box
from dgxcheck.facts.ids import NvmlReturn
from dgxcheck.facts.missing import Gap, Missing

Pair = tuple[str, str]


def is_about(gap: Missing, bdf: str | None) -> bool:
    """Was it an NVML query about this GPU alone? One about a pair may fail because of the other GPU."""
    return gap.where.startswith("nvml") and _gpus_of(gap) == (bdf,)


def lost_pairs(box: Box, known: Collection[str | None]) -> Mapping[Pair, Missing]:
    """Pairs of GPUs of which a query failed because one of the two is lost, without those that have a ``known`` one."""
    found: dict[Pair, Missing] = {}
    for gap in box.gaps:
        if gap.gap is Gap.LOST and gap.code != NvmlReturn.RESET_REQUIRED and gap.where.startswith("nvml"):
            gpus = sorted(_gpus_of(gap))
            if len(gpus) == 2 and not {*gpus} & {*known}:
                found.setdefault((gpus[0], gpus[1]), gap)
    return found


def common_gpus(pairs: Mapping[Pair, Missing]) -> dict[str, list[Missing]]:
    """The fewest GPUs that are in two and more of the pairs and account for them, each with the gaps of its pairs.

    A pair that has none of these is left: either of its GPUs may be the lost one.
    """
    left = dict(pairs)
    found: dict[str, list[Missing]] = {}
    while left:
        gpu, count = Counter(gpu for pair in sorted(left) for gpu in pair).most_common(1)[0]
        if count < 2:
            break
        found[gpu] = [gap for pair, gap in left.items() if gpu in pair]
        left = {pair: gap for pair, gap in left.items() if gpu not in pair}
    return found


def _gpus_of(gap: Missing) -> tuple[str, ...]:
    """The bus ids in a query: ``nvmlDeviceGetP2PStatus 0000:06:00.0 0000:07:00.0 0``."""
    return tuple(word for word in gap.where.split()[1:] if ":" in word)
