"""How sure a cause is, and by what kind of evidence: data, worded in ``output``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from dgxcheck.checks.engine.finding import Finding, Witness
from dgxcheck.components.component import Component
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.record import Record

Level = Literal["high", "fair", "low"]
Reason = Literal[
    "several-findings",  # independent findings blame it
    "in-common",  # devices that fail alike or in the same moment have it in common
    "some-unaffected",  # several findings blame a switch, but devices behind it are fine
    "one-finding",  # one finding, at the component itself
    "either-end",  # one finding of a link: either end, or what is between, can be at fault
    "eliminated",  # all else on the path ran at full speed in other figures
    "shared",  # several slow figures crossed it, and no good one did
    "shared-with",  # several slow figures crossed it, and other components as well
]
_INFERRED = ("power supply", "cooling")
"""Of the host: what devices share that failed alike or in the same moment; no finding is about it."""
_JOINING = ("link", "nvlink", "port", "socket-interconnect")


class Confidence(Record):
    """A level, why, and of how many independent findings."""

    level: Level
    reason: Reason
    findings: int
    beside: tuple[str, ...] = ()
    """Names of devices that are fine."""
    others: tuple[Component, ...] = ()
    """Components that the evidence cannot tell from this one."""


def by_agreement(component: Component, findings: Sequence[Finding]) -> Confidence:
    """By the independent facts about the component or what is within it."""
    facts = len({_fact(finding) for finding in findings})
    if facts > 1:
        if component.kind == "host" and component.part in _INFERRED and not _is_blamed(component, findings):
            return Confidence(level="fair", reason="in-common", findings=facts)
        affected = {finding.subject.name for finding in findings}
        unaffected = tuple(name for name in component.shared_by if name not in affected)
        if component.kind == "switch" and unaffected:
            return Confidence(level="fair", reason="some-unaffected", findings=facts, beside=unaffected)
        return Confidence(level="high", reason="several-findings", findings=facts)
    return Confidence(level="fair", reason="either-end" if component.kind in _JOINING else "one-finding", findings=1)


def _is_blamed(component: Component, findings: Sequence[Finding]) -> bool:
    return any(each.key == component.key for finding in findings for each in finding.blames)


def _fact(finding: Finding) -> tuple[frozenset[str], FaultKind | None, Witness]:
    """Which devices have which fault, by what kind of witness: findings that agree in all rest on one fact."""
    ends = (finding.subject, finding.subject.peer)
    devices = frozenset(end.bdf or end.name for end in ends if end is not None)
    return devices, finding.judgement.fault, finding.witness


def by_elimination(component: Component, keys: Sequence[str], paths: Mapping[str, Sequence[Component]]) -> Confidence:
    """By what the paths of slow figures have in common, once the components that good figures crossed are left out."""
    if len(keys) == 1:
        return Confidence(level="fair", reason="eliminated", findings=1)
    others = [each for each in paths[keys[0]] if all(each in paths[key] for key in keys) and each != component]
    if others:
        return Confidence(level="low", reason="shared-with", findings=len(keys), others=tuple(others))
    return Confidence(level="fair", reason="shared", findings=len(keys))
