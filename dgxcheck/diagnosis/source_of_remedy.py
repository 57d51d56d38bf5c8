"""Which of the findings of a cause has the remedy that is printed."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.checks.engine.finding import BAD, Finding, Status
from dgxcheck.components.component import Component
from dgxcheck.components.containment import OF_SLOT
from dgxcheck.diagnosis.escalation import OF_COMPONENT
from dgxcheck.facts.faults import DEVICE_DEAD, MODULES_REFUSED, SILENT, Fault
from dgxcheck.facts.faults.kind import FaultKind

_SAY_WHY = frozenset(
    {*MODULES_REFUSED, Fault.GPU_REFUSED, Fault.GPU_UNRECOGNISED, Fault.START_MEMORY, Fault.GPU_UNPOWERED,
     Fault.XID_LINK_OFF, Fault.DRIVER_UNBOUND, Fault.HOTTER}
)  # fmt: skip
"""Software switched a link off, one GPU is hot among cool ones; the kernel or the driver gives its reason: the rest
follows."""


def remedy_finding(component: Component, explained: Sequence[Finding], looks: bool = False) -> Finding:
    """The finding whose remedy is about the component: that it is dead, from which the rest of it follows; else one
    that blames it first, of a state rather than of the log.

    ``looks``: one whose remedy begins with what only looks, where there is one; the others' may burn, set or reset.
    """
    usual = OF_COMPONENT.get((component.kind, component.part), ())[:1] == ("inspect",)

    def inspects(fault: FaultKind | None) -> bool:
        if fault is None or fault.steps:
            return fault is not None and fault.steps[0] == "inspect"
        return usual and fault.category in ("hardware", "environment")

    def rank(finding: Finding) -> tuple[bool, bool, bool, bool, bool, bool, int]:
        acts = looks and not inspects(finding.judgement.fault)
        says_why = finding.judgement.fault in _SAY_WHY
        dead = finding.judgement.fault in DEVICE_DEAD
        whole = finding.judgement.fault in SILENT and component.part in ("", OF_SLOT)
        itself = whole and finding.subject.bdf == component.bdf
        indirect = dead or finding.witness == "log"
        elsewhere = not finding.blames or finding.blames[0].key != component.key
        unread = finding.status is Status.UNKNOWN
        return acts, not says_why, not itself, unread, indirect, elsewhere, BAD.index(finding.status)

    return min(explained, key=rank)
