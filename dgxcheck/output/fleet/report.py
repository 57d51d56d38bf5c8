"""What every format of ``dgxcheck fleet`` is made from."""

from __future__ import annotations

from dgxcheck.facts.record import Record
from dgxcheck.fleet.judge import Fleet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Report(Record, kw_only=False):
    """A judged fleet, and how it is to be shown."""

    fleet: Fleet
    exit_code: int
    verbose: bool = False
    """Are all outliers and unread files listed?"""
    racks: Mapping[str, tuple[str, ...]] = {}
    """Which nodes stand together, for pictures."""
