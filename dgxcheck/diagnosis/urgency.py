"""When a cause is to be dealt with, by the faults of its findings and their severity."""

from __future__ import annotations

from collections.abc import Iterable

from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import Urgency

ORDER: tuple[Urgency, ...] = ("now", "next-drain", "next-maintenance", "watch")


def urgency_of(findings: Iterable[Finding]) -> Urgency:
    """The most urgent of the findings; what could not be read makes nothing more urgent.

    An uncorrected error whose row waits for its remapping was contained, and its page is no longer used (Ampere and
    later; https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html); one that was not has an Xid of its own.
    """
    every = [*findings]
    known = [each for each in every if each.judgement.fault is not None]
    if any(each.judgement.fault is Fault.REMAP_PENDING for each in known):
        known = [each for each in known if each.judgement.fault is not Fault.ECC_UNCORRECTED]
    return min(map(_urgency, known or every), key=ORDER.index, default="now")


def _urgency(finding: Finding) -> Urgency:
    fault = finding.judgement.fault
    if finding.status is Status.WARN:
        return "next-drain" if fault is None else fault.warns
    return "now" if fault is None else fault.fails
