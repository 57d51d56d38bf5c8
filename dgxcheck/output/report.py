"""What every format of ``health``, ``diff``, ``fleet`` and ``fabric`` is made from."""

from __future__ import annotations

from dgxcheck.facts.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from dgxcheck.assessment.compare import Comparison
    from dgxcheck.assessment.result import Assessment
    from dgxcheck.fabric.judge import Judged
    from dgxcheck.fleet.history import History
    from dgxcheck.fleet.judge import Fleet
    from dgxcheck.fleet.lemons import Lemon
    from dgxcheck.fleet.node import NodeVerdict
    from dgxcheck.fleet.pairs import JudgedPairs
    from dgxcheck.fleet.part_history import Followed


class HealthReport(Record):
    """An assessment, and how it is to be shown."""

    assessment: Assessment
    exit_code: int
    verbose: bool = False
    """Are findings that passed or skipped wanted too, where a format leaves them out?"""
    fail_on: str = "warn"
    """The mildest verdict that the exit code tells."""
    width: int | None = None
    """Columns of the terminal; None: lines are not folded."""
    brief: bool = False
    """Of the text the verdict, the devices that are not ok, and the first cause: 24 lines."""
    every_metric: bool = False
    """Every check and error counter as a metric, too."""


class DiffReport(Record):
    """A comparison, and how the command ends."""

    comparison: Comparison
    exit_code: int


class FleetReport(Record, kw_only=False):
    """A judged fleet, and how it is to be shown."""

    fleet: Fleet
    exit_code: int
    verbose: bool = False
    """Are all outliers and unread files listed?"""
    racks: Mapping[str, tuple[str, ...]] = {}
    """Which nodes stand together, for pictures."""


class HistoryReport(Record, kw_only=False):
    """What only time shows of a fleet, and how it is to be shown."""

    history: History
    lemons: tuple[Lemon, ...]
    followed: tuple[Followed, ...]
    verdict: NodeVerdict
    exit_code: int
    verbose: bool = False


class PairsReport(Record, kw_only=False):
    """Nodes that were measured in pairs, and how they are to be shown."""

    judged: JudgedPairs
    verdict: str
    exit_code: int
    verbose: bool = False


class FabricReport(Record):
    """A judged fabric, and how it is to be shown."""

    judged: Judged
    exit_code: int
    verbose: bool = False
    """Are all leaves and findings listed?"""
