"""One precondition of a pair of devices: what it means for the pair, and how it ends as a finding."""

from __future__ import annotations

from typing import Literal

from dgxcheck.checks.engine.finding import Judgement, SkipReason, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record

State = Literal["ready", "slow", "no", "?"]
"""Of a pair: data go straight from GPU to HCA; they do, but slowly or not by default; they do not; cannot tell."""
_AS_ROOT = "run dgxcheck as root (sudo dgxcheck health)"


class Said(Record, kw_only=False):
    """One precondition: what it means for a pair, and how it ends as a finding."""

    state: State
    judgement: Judgement
    short: str = ""
    """In words for a pair, where the judgement speaks of more than that; ``words`` is one of the two."""

    @property
    def words(self) -> str:
        return self.short or self.judgement.message


def unsaid(gap: Missing) -> Said:
    """Cannot tell; what root could read says so."""
    judgement = unjudged(gap)
    if gap.gap is Gap.LOST:
        judgement = skip("dependency-failed", f"{gap.where}: {gap}", *judgement.evidence)
    if gap.gap is Gap.DENIED:
        judgement = skip("no-permission", f"{gap.where}: {gap}; {_AS_ROOT}", *judgement.evidence)
        if gap.where.endswith("/config"):
            return Said("?", judgement, f"configuration space is for root to read: {_AS_ROOT}")
    return Said("?", judgement)


def elsewhere(state: State, message: str, check: str, reason: SkipReason = "dependency-failed") -> Said:
    """It stands in the way, and another check has said so."""
    return Said(state, skip(reason, f"{message}: see {check}"))
