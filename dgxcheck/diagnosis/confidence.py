"""How sure a cause is, and by what kind of evidence: data, worded in ``output``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from dgxcheck.checks.engine.finding import Finding
from dgxcheck.components.component import Component
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.record import Record

Level = Literal[
    "read",  # the fault is what was read of the component itself: a mode, a limit, a count
    "inferred",  # evidence points to the component, and to no other
    "guess",  # evidence does not tell the component from others
]
Reason = Literal[
    "itself",  # it was read of the component
    "in-all",  # it was read of all devices that a setting is for
    "evidence",  # kinds of evidence that do not rest on each other blame it
    "in-common",  # devices that fail alike or in the same moment have it in common
    "some-unaffected",  # a switch is to blame, but devices behind it are fine
    "rest-responds",  # all of a baseboard is lost, while devices beside it respond
    "either-end",  # either end of a link, or what is between, can be at fault
    "one-of-several",  # one kind of evidence, which can come from other components as well
    "eliminated",  # all else on the path ran at full speed in other figures
    "shared",  # several slow figures crossed it, and no good one did
    "shared-with",  # several slow figures crossed it, and other components as well
]
_JOINING = ("link", "nvlink", "port", "socket-interconnect")
_ENDS = 3
"""Either end of what joins two devices, and what is between them."""
_CHOSEN = ("setting", "software", "program")
"""Categories of faults that are states of what they blame, not signs of it."""
_SIGNS = frozenset({Fault.SLOW, Fault.DISAGREEMENT, Fault.CONTRADICTION})
"""A figure says that something on a path is slow; two readings that contradict each other, not which is wrong."""


class Confidence(Record):
    """A level, why, of how many kinds of evidence, and among how many components it chooses."""

    level: Level
    reason: Reason
    kinds: int = 1
    """Of evidence: a fault by one witness, at however many devices."""
    among: int = 1
    beside: tuple[str, ...] = ()
    """Names of devices that are fine."""
    others: tuple[Component, ...] = ()
    """Components that the evidence cannot tell from this one."""


def by_agreement(component: Component, findings: Sequence[Finding]) -> Confidence:
    """By what was read of the component, else by the kinds of evidence about it or what is within it."""
    with_fault = [finding for finding in findings if finding.judgement.fault is not None] or findings
    kinds = len({(finding.judgement.fault, finding.witness) for finding in with_fault})
    if any(_is_read(component, finding) for finding in with_fault):
        return Confidence(level="read", reason="itself", kinds=kinds)
    if all(_is_read_of_each(component, finding) for finding in with_fault):
        return Confidence(level="read", reason="in-all", kinds=kinds)
    affected = {finding.subject.name for finding in findings}
    unaffected = tuple(name for name in component.shared_by if name not in affected)
    if component.kind == "switch" and unaffected:
        return Confidence(level="inferred", reason="some-unaffected", kinds=kinds, beside=unaffected)
    own = [finding for finding in with_fault if any(one.key == component.key for one in finding.blames)]
    if not own and len(affected) > 1:
        return Confidence(level="inferred", reason="in-common", kinds=kinds)
    if kinds > 1:
        return Confidence(level="inferred", reason="evidence", kinds=kinds)
    if component.kind in _JOINING:
        return Confidence(level="guess", reason="either-end", among=_ENDS)
    if own and (others := _others(component, own)):
        return Confidence(level="guess", reason="one-of-several", among=1 + len(others), others=others)
    return Confidence(level="inferred", reason="evidence")


def _is_read(component: Component, finding: Finding) -> bool:
    """Is the fault a state of the component, read of it, rather than a sign of what may be wrong with it?

    Modes and settings are. Counts and states of a part (its memory, its InfoROM) are the part's where nothing else can
    give them; of a device as a whole, of air and power, and of what the kernel log says of it, they are signs.
    """
    if not _is_reading(finding) or not finding.blames or finding.blames[0].key != component.key:
        return False
    if component.part and _is_chosen(finding):
        return True
    of_this = component.part and component.kind != "slot" and finding.subject.bdf == component.bdf
    return bool(of_this or _is_chosen(finding)) and not _others(component, [finding])


def _is_read_of_each(component: Component, finding: Finding) -> bool:
    """Is the component the setting that all devices share, and the fault one of that setting?"""
    shared = finding.shared
    return _is_reading(finding) and _is_chosen(finding) and shared is not None and shared.key == component.key


def _is_reading(finding: Finding) -> bool:
    fault = finding.judgement.fault
    sign = fault is None or fault.category == "environment" or fault in _SIGNS
    return not sign and finding.witness != "log"


def _is_chosen(finding: Finding) -> bool:
    fault = finding.judgement.fault
    return fault is not None and fault.category in _CHOSEN


def _others(component: Component, findings: Sequence[Finding]) -> tuple[Component, ...]:
    """What all of the findings can come from as well; a part of the host at another position is the same part, and an
    array is to blame for its disk."""
    keys = set.intersection(*({blame.key for blame in finding.blames} for finding in findings)) - {component.key}
    others = {blame.key: blame for blame in findings[0].blames if blame.key in keys}
    same = (("host", component.part), ("disk", ""))
    return tuple(other for other in others.values() if (other.kind, other.part) not in same)


def by_elimination(component: Component, keys: Sequence[str], paths: Mapping[str, Sequence[Component]]) -> Confidence:
    """By what the paths of slow figures have in common, once the components that good figures crossed are left out."""
    if len(keys) == 1:
        return Confidence(level="inferred", reason="eliminated")
    if others := [path for path in paths[keys[0]] if all(path in paths[key] for key in keys) and path != component]:
        return Confidence(level="guess", reason="shared-with", among=1 + len(others), others=tuple(others))
    return Confidence(level="inferred", reason="shared")
