"""What another tool found wrong, or right: a diagnostic's test, or an error in a library's log."""

from __future__ import annotations

from typing import Literal

from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.record import Record

Outcome = Literal["pass", "warn", "fail", "unknown", "note"]
"""``unknown``: not as it should be, but by that output alone it may be meant so. A note says what is neither good nor
bad by itself: counts of errors without the time that they are from."""
NOT_STARTED = "fabric-manager-not-started"
"""Topic: Fabric Manager did not start, on a machine that may have no NVSwitch."""
OF_SERVICE = (NOT_STARTED, "fabric-manager-service")
"""Topics: what systemd says of Fabric Manager's service."""
CONFIGURED = "fabric-manager-configured"
"""Topic: Fabric Manager found NVSwitches and set them up."""


class ToolReport(Record, nature="event"):
    """One result of one tool about one device or the host."""

    subject: str
    """``GPU3`` as the tool numbers it, a bdf, the name of an HCA, or ``host``."""
    tool: str
    topic: str
    """The tool's own test, or the kind of its error: ``memory``, ``ib-completion``."""
    outcome: Outcome
    fault: FaultKind | None
    """None where nothing is wrong, and of an outcome that names none."""
    text: str
    """What is wrong, for people, in one line."""
    count: int = 1
    """How often it is reported."""
