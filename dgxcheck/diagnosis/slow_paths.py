"""Slow figures: what the data crossed, less what other figures of the same kind crossed at full speed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.components.component import SETTINGS, Component, Key
from dgxcheck.facts.faults import Fault


def is_slow(finding: Finding) -> bool:
    """Does the finding say that something is slow and not what?"""
    return finding.judgement.fault is Fault.SLOW and bool(finding.crossed)


def exonerated(findings: Sequence[Finding], slow: Finding) -> set[Key]:
    """What good figures crossed that can be compared with a slow one: large copies with large copies alone.

    A setting is not exonerated: it need not slow down every pair.
    """
    good = (each for each in findings if each.status is Status.PASS and not each.subject.part)
    return {
        component.key
        for finding in good
        if finding.traffic == slow.traffic or (finding.traffic == "memory" and slow.traffic == "copies")
        for component in finding.crossed
        if component.part not in SETTINGS
    }


def candidates(findings: Sequence[Finding], slow: Collection[Finding]) -> Mapping[str, Sequence[Component]]:
    """By key of each slow finding: the components on its path that no good figure exonerates."""
    by_traffic = {finding.traffic: exonerated(findings, finding) for finding in slow}
    return {
        finding.key: [each for each in finding.crossed if each.key not in by_traffic[finding.traffic]]
        for finding in slow
    }
