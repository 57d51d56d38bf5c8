"""From a missing fact to the judgement of the check that needs it: one table for all checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dgxcheck.checks.engine.finding import Evidence, Judgement, SkipReason, Status, skip
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record, fields

_SKIPPED: dict[Gap, SkipReason] = {
    Gap.ABSENT: "not-supported",
    Gap.UNSUPPORTED: "not-supported",
    Gap.DENIED: "no-permission",
    Gap.UNRECORDED: "not-recorded",
    Gap.UNASKED: "not-in-level",
}
_OF_THE_DRIVER = ("nvml", "/dev/nvidia", "/proc/driver/nvidia")


def is_driver_query(gap: Missing) -> bool:
    """Was it a query to the NVIDIA driver?"""
    return gap.where.startswith(_OF_THE_DRIVER)


def unjudged(gap: Missing) -> Judgement:
    """Skip; unknown if a source that must answer did not, or gave an invalid value.

    A lost GPU and a driver that hangs fail once, in gpu.lost and driver.responsive; other checks skip.
    """
    message = f"{gap.where}: {gap}"
    evidence = Evidence(gap.where, gap.reason)
    reason = _SKIPPED.get(gap.gap)
    if gap.gap in (Gap.LOST, Gap.TIMEOUT) and is_driver_query(gap):
        reason = "dependency-failed"
    if reason is None:
        return Judgement(Status.UNKNOWN, message, evidence=(evidence,))
    return skip(reason, message, evidence)


def missing_in(facts: object) -> Iterator[Missing]:
    """Every gap in a fact, at any depth."""
    if isinstance(facts, Missing):
        yield facts
    elif isinstance(facts, Record):
        for name in fields(facts):
            yield from missing_in(getattr(facts, name))
    elif isinstance(facts, Mapping):
        for value in facts.values():
            yield from missing_in(value)
    elif isinstance(facts, tuple):
        for value in facts:
            yield from missing_in(value)
