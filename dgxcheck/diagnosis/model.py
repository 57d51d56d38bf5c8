"""What a diagnosis is: causes with the findings that each explains, and what to do about them."""

from __future__ import annotations

from dgxcheck.facts.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgxcheck.checks.engine.finding import Status
    from dgxcheck.components.component import Component
    from dgxcheck.components.containment import Fru
    from dgxcheck.diagnosis.action import Action
    from dgxcheck.diagnosis.confidence import Confidence
    from dgxcheck.diagnosis.preserve import Preserve
    from dgxcheck.diagnosis.recurrence import Recurrence
    from dgxcheck.facts.faults.kind import FaultKind


class Cause(Record):
    """One component to blame."""

    component: Component
    explains: tuple[str, ...]
    """Keys of the findings, the worst first."""
    faults: tuple[FaultKind, ...]
    severity: Status
    confidence: Confidence
    actions: tuple[Action, ...]
    """From the least disruptive up."""
    recurrence: Recurrence | None
    """What was done already and did not help, where an Xid came back; actions that it rules out are left out."""
    preserve: tuple[Preserve, ...]
    """Commands that save what the actions destroy."""
    frus: tuple[Fru, ...] = ()
    """What may have to be taken out, where the actions end at its seat, in its place or at the vendor."""


class Diagnosis(Record):
    """Every bad finding that the site has not acknowledged is in one of the two."""

    causes: tuple[Cause, ...]
    unexplained: tuple[str, ...]
    """Keys of findings."""


HEALTHY = Diagnosis(causes=(), unexplained=())
