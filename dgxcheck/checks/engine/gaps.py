"""From a missing fact to the judgement of the check that needs it, and to the GPU that a failed query blames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from dgxcheck.checks.engine.finding import Judgement, SkipReason, Status, of_gaps, skip
from dgxcheck.facts.bdf import IdPair
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record, remembered, values

_SKIPPED: dict[Gap, SkipReason] = {
    Gap.ABSENT: "not-supported",
    Gap.UNSUPPORTED: "not-supported",
    Gap.DENIED: "no-permission",
    Gap.UNRECORDED: "not-recorded",
    Gap.UNASKED: "not-in-level",
}
_WITHOUT_PARTS = frozenset((bool, int, float, str, type(None)))
"""Types of most facts: nothing is missing in them."""
_OF_THE_DRIVER = ("nvml", "/dev/nvidia", "/proc/driver/nvidia")


def is_driver_query(gap: Missing) -> bool:
    """Was it a query to the NVIDIA driver?"""
    return gap.where.startswith(_OF_THE_DRIVER)


def unjudged(gap: Missing) -> Judgement:
    """Skip; unknown if a source that must answer did not, or gave an invalid value.

    A lost GPU and a driver that hangs fail once, in gpu.lost and driver.responsive; other checks skip.
    """
    reason = _SKIPPED.get(gap.gap)
    if gap.gap in (Gap.LOST, Gap.TIMEOUT) and is_driver_query(gap):
        reason = "dependency-failed"
    return _unknown(gap) if reason is None else skip(reason, f"{gap.where}: {gap}", *of_gaps([gap]))


def _unknown(gap: Missing) -> Judgement:
    return Judgement(Status.UNKNOWN, f"{gap.where}: {gap}", evidence=of_gaps([gap]))


def unread(gap: Missing) -> Judgement:
    """The same for a fact that this device must have: unknown also if it is absent, unsupported or not permitted."""
    return _unknown(gap) if gap.gap in (Gap.ABSENT, Gap.UNSUPPORTED, Gap.DENIED) else unjudged(gap)


def is_about(gap: Missing, bdf: str | None) -> bool:
    """Was it an NVML query about this GPU alone? One about a pair may fail because of the other GPU."""
    return _gpus_of(gap) == (bdf,)


def involves(gap: Missing, bdf: str | None) -> bool:
    """Was it an NVML query about this GPU, or about a pair with it?"""
    return bdf in _gpus_of(gap)


def failed_pairs(gaps: Iterable[Missing], known: Collection[str | None]) -> Mapping[IdPair, Missing]:
    """Pairs of GPUs of which one of these queries failed, without those with a GPU that failed ``known`` ones alone."""
    found: dict[IdPair, Missing] = {}
    for gap in gaps:
        gpus = sorted(_gpus_of(gap))
        if len(gpus) == 2 and not {*gpus} & {*known}:
            found.setdefault((gpus[0], gpus[1]), gap)
    return found


def common_gpus(pairs: Mapping[IdPair, Missing]) -> dict[str, list[Missing]]:
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
    """The bus ids in a query to NVML: ``nvmlDeviceGetP2PStatus 0000:06:00.0 0000:07:00.0 0``."""
    function, *words = gap.where.split() or ("",)
    return tuple(word for word in words if ":" in word) if function.startswith("nvml") else ()


@remembered()
def missing_in(*readings: Record) -> tuple[Missing, ...]:
    """Every gap in these facts and in all that they hold, once."""
    found: dict[Missing, None] = {}
    open_: list[object] = [*reversed(readings)]
    while open_:
        fact = open_.pop()
        if type(fact) is Missing:
            found[fact] = None
            continue
        held = values(fact) if isinstance(fact, Record) else (*fact.values(),) if isinstance(fact, dict) else fact
        if type(held) is tuple and not _WITHOUT_PARTS.issuperset(map(type, held)):
            open_ += [part for part in reversed(held) if type(part) not in _WITHOUT_PARTS]
    return tuple(found)
