"""Differences of findings and of the score between two health reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from dgxcheck.difference.model import Difference, Trend
from dgxcheck.facts.record import Record

FindingStatus = Literal["pass", "warn", "fail", "unknown", "skip"]
RANK: Mapping[FindingStatus, int] = {"pass": 0, "warn": 1, "unknown": 2, "fail": 3}
"""From good to bad; skip has no rank."""
MOST_NAMED = 6


class FindingSummary(Record):
    """One finding."""

    status: FindingStatus
    device: str
    bdf: str | None
    message: str


class HealthSummary(Record):
    """The findings of one run by key, and its score as ``health`` prints it; None without a reference machine."""

    findings: Mapping[str, FindingSummary]
    score: float | None
    against: str
    """The reference machine's name."""


def differences(old: HealthSummary, new: HealthSummary) -> Iterator[Difference]:
    """Findings that are not a pass on both sides, then the score: what is no longer checked makes it no better."""
    bdfs = {finding.bdf for finding in new.findings.values()}
    passed = {_check(key) for key, finding in old.findings.items() if finding.status == "pass"}
    ran = _checks_run(new)
    unchecked = False
    for key in (*new.findings, *(key for key in old.findings if key not in new.findings)):
        was, now = old.findings.get(key), new.findings.get(key)
        cured = now is None and was is not None and was.bdf in bdfs and _check(key) in ran
        for difference in _finding(key, was, now, cured, was is None and _check(key) in passed):
            unchecked |= difference.kind == "neutral"
            yield difference
    if old.score is not None and new.score is not None and old.score != new.score and old.against == new.against:
        rise: Trend = "neutral" if unchecked else "better"
        yield Difference(
            kind=rise if new.score > old.score else "worse", area="score", change="changed", device="score",
            bdf=None, what="score", old=old.score, new=new.score,
            message=f"{old.score:g} -> {new.score:g} of 100 against {new.against}",
        )  # fmt: skip


def checks_no_longer_run(old: HealthSummary, new: HealthSummary) -> list[str]:
    """A note on the checks with a result in the old run and none in the new one; empty without any."""
    lost = [check for check in _checks_run(old) if check not in _checks_run(new)]
    if not lost:
        return []
    more = f" and {len(lost) - MOST_NAMED} more" if len(lost) > MOST_NAMED else ""
    return [f"checked in OLD only: {', '.join(lost[:MOST_NAMED])}{more}"]


def _checks_run(report: HealthSummary) -> dict[str, None]:
    """Ids of the checks with a finding other than skip, in order."""
    return dict.fromkeys(_check(key) for key, finding in report.findings.items() if finding.status != "skip")


def _check(key: str) -> str:
    return key.partition("/")[0]


def _finding(
    key: str, old: FindingSummary | None, new: FindingSummary | None, cured: bool, passed: bool
) -> Iterator[Difference]:
    """``cured``, ``passed``: the check passed on the new or old side, possibly with one finding for all devices."""
    was, now = (None if finding is None or finding.status == "skip" else finding.status for finding in (old, new))
    before_rank, rank = (RANK[status] if status else 0 for status in (was, now))
    finding = new or old
    if rank == before_rank or finding is None:
        return
    kind: Trend = "worse" if rank > before_rank else "better"
    if now is None and not cured:
        kind = "neutral"  # no longer checked, or the device is missing: not a cure
    before, after = was or ("pass" if passed else "not checked"), now or ("pass" if cured else "not checked")
    about = f": {new.message}" if new is not None and now not in (None, "pass") else ""
    yield Difference(
        kind=kind, area="finding", change="changed" if was and now else "new" if now else "gone", device=finding.device,
        bdf=finding.bdf, what=key, old=was, new=now, message=f"{_check(key)} {before} -> {after}{about}",
    )  # fmt: skip
