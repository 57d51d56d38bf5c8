"""One thing that is wrong with a fabric."""

from __future__ import annotations

from typing import Literal

from dgxcheck.fabric.moves import Move
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.record import Record

Verdict = Literal["pass", "warn", "unknown", "fail"]


class FabricFinding(Record):
    """A sentence with both ends, and what to do."""

    fault: FaultKind
    status: Verdict
    ends: tuple[str, ...]
    """Adapters and ports, as they are shown."""
    moves: tuple[Move, ...]
    """Plugs to be moved, where that is the remedy."""
    message: str
    action: str
    seats: tuple[str, ...] = ()
    """Where these adapters are in their machines, and whether their name or place is wrong there."""
