"""What is said where a measurement has no figure, and who says it: one fault is told by one check."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, SkipReason, Status, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.measurement.lookup import ALONE, PAIRS, REASONS, UNREADY, Figures, evidence, way
from dgxcheck.facts.measurement import Measurement, Untaken
from dgxcheck.facts.missing import Gap, Missing

INTEGRITY = ("memory-integrity", "p2p-integrity")
_WORDS = {
    214: "an ECC error that could not be corrected",
    220: "an NVLink error that could not be corrected",
    226: "a memory error that was contained",
    700: "an access to an illegal address",
    702: "a kernel that ran too long",
    714: "an error in the hardware stack",
    715: "an illegal instruction",
    716: "a misaligned address",
    717: "an address of the wrong space",
    718: "a program counter out of bounds",
    719: "a launch that failed",
    802: UNREADY,
    999: "an unknown error of the driver",
}
"""CUresult codes that end a context, https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html"""
_UNAVAILABLE: dict[int, SkipReason] = {
    2: "busy",  # out of memory: others have it
    46: "busy",  # another process has the GPU for itself
    34: "not-visible", 100: "not-visible", 101: "not-visible",
    3: "dependency-failed", 803: "dependency-failed", 804: "dependency-failed",
    800: "no-permission",
    209: "not-supported", 217: "not-supported", 218: "not-supported", 221: "not-supported", 222: "not-supported",
    223: "not-supported", 711: "not-supported", 801: "not-supported",
}  # fmt: skip
BAD = (Status.FAIL, Status.UNKNOWN, Status.WARN)
_WORST = (*BAD, Status.PASS, Status.SKIP)


def untaken(box: Box, row: Measurement) -> Judgement | None:
    """What is to be said where there is no figure; None where there is one."""
    value, seen = row.value, evidence(row)
    if isinstance(value, Missing):
        if value.gap is not Gap.TIMEOUT:
            return unjudged(value)
        return Judgement(Status.FAIL, f"{way(box, row)} hung in {row.kind}: {value}", evidence=(seen,))
    if not isinstance(value, Untaken):
        return None
    if value.reason != "failed":
        return skip(REASONS.get(value.reason) or "not-supported", f"{row.kind}: {value.detail}", seen)
    if withheld(value):
        return skip("dependency-failed", "data arrive wrong: see measure.p2p-integrity", seen)
    code = value.code or 0
    words = f"{_WORDS[code]} ({value.detail})" if code in _WORDS else value.detail
    if code in _UNAVAILABLE:
        return skip(_UNAVAILABLE[code], f"{row.kind}: {words}", seen)
    return Judgement(Status.FAIL, f"{way(box, row)} ended {row.kind} with {words}", evidence=(seen,))


def worst(said: Sequence[Judgement]) -> Judgement:
    """The worst of several, the first among equals."""
    return min(said, key=lambda each: _WORST.index(each.status))


def once(found: Figures, check: str, said: Judgement, a: str, b: str = "") -> Judgement:
    """A bad judgement, or a skip where an earlier check tells what is behind it: a GPU or pair that fails as such."""
    teller = _teller(found, check, a, b) if said.status in BAD else None
    return said if teller is None else skip("dependency-failed", f"see {teller}: {said.message}", *said.evidence)


def _teller(found: Figures, check: str, a: str, b: str) -> str | None:
    for id, kinds in ALONE.items():
        if id == check:
            return None
        if any(broken(found.of(kind, end)) for end in filter(None, (a, b)) for kind in kinds):
            return id
    for id, kinds in PAIRS.items():
        if id == check:
            return None
        if any(broken(found.of(kind, *ends)) for ends in ((a, b), (b, a)) for kind in kinds):
            return id
    return None


def broken(row: Measurement | None) -> bool:
    """Hung, failed for good, or wrong?"""
    if row is None:
        return False
    value = row.value
    if isinstance(value, Missing):
        return value.gap is Gap.TIMEOUT
    if isinstance(value, Untaken):
        return value.reason == "failed" and not withheld(value) and (value.code or 0) not in _UNAVAILABLE
    return row.kind in INTEGRITY and (bool(row.number) or row.more.get("timed_out") is True)


def withheld(value: Untaken) -> bool:
    """Is there a figure that is not published, for the data arrived wrong?"""
    return value.detail.partition(":")[0] == "integrity"
