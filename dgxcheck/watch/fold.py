"""Events into counts: what is new is reported at once, what repeats is counted and summed up.

Bounded, however long it runs: a fixed number of keys, and the last events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from math import inf

from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.watch.event import OTHER, Event, ReportedEvent, as_json

MOST_KEYS = 512
"""Of device, kind and code; of more the oldest are forgotten."""
MOST_EVENTS = 1000
REPEAT_S = 900.0
"""What repeats is reported again after this time, with the number of occurrences in between."""
MOST_CHANGES = 5
"""Changes of one key that are reported within ``REPEAT_S``: a link that flaps does not flood either."""
RANK = (Status.PASS, Status.WARN, Status.UNKNOWN, Status.FAIL)
"""The mildest first."""
EventKey = tuple[str, str, str]


class Tally:
    """Occurrences of one key."""

    __slots__ = ("began", "count", "event", "first", "last", "reported", "waiting", "worst")

    def __init__(self, event: Event, date: str) -> None:
        self.event = event
        """The last one; of those that wait the last of the worst, unless each is a change."""
        self.count = 0
        self.first, self.last = date, date
        self.worst = event.status
        """Of the last period of reports: what was worse in an earlier one hides nothing."""
        self.waiting = 0
        """Occurrences that no report has covered yet."""
        self.began = -inf
        """Seconds since boot of the first report of a period of ``REPEAT_S``."""
        self.reported = 0
        """Reports in that period."""

    def is_over(self, now: float) -> bool:
        """Is the period? One that a damaged state has begin in the future is."""
        return not 0 <= now - self.began < REPEAT_S


def _worse(status: Status, other: Status) -> bool:
    return RANK.index(status) > RANK.index(other)


class Ledger:
    """All that was counted, and the last events that were reported."""

    def __init__(self) -> None:
        self.tallies: dict[EventKey, Tally] = {}
        self.recent: deque[dict[str, Json]] = deque(maxlen=MOST_EVENTS)

    def take(self, events: Iterable[Event], now: float, date: str) -> Iterator[ReportedEvent]:
        """Count events, and yield those to tell; ``now`` is in seconds since boot."""
        for each in events:
            event = self._bounded(each)
            if (tally := self.tallies.get(event.key)) is None:
                tally = self.tallies[event.key] = Tally(event, date)
            if not tally.waiting or event.is_change or not _worse(tally.event.status, event.status):
                tally.event = event
            tally.last = date
            tally.count += event.count
            tally.waiting += event.count
            often = MOST_CHANGES if event.is_change else 1
            if _worse(event.status, tally.worst) or tally.reported < often or tally.is_over(now):
                yield self._tell(tally, now, date)

    def repeated(self, now: float, date: str) -> Iterator[ReportedEvent]:
        """What occurred again since it was last reported, ``REPEAT_S`` ago."""
        for tally in self.tallies.values():
            if tally.waiting and tally.is_over(now):
                yield self._tell(tally, now, date)

    def _tell(self, tally: Tally, now: float, date: str) -> ReportedEvent:
        if tally.is_over(now):
            tally.began, tally.reported, tally.worst = now, 0, Status.PASS
        tally.reported += 1
        tally.worst = max(tally.worst, tally.event.status, key=RANK.index)
        reported = ReportedEvent(replace(tally.event, count=tally.waiting), date, tally.count)
        tally.waiting = 0
        self.recent.append(as_json(reported))
        return reported

    def _bounded(self, event: Event) -> Event:
        """The oldest of the mildest makes room: what is new is never without its device as long as that helps."""
        if event.key not in self.tallies and len(self.tallies) >= MOST_KEYS:
            idle = [tally for tally in self.tallies.values() if not tally.waiting and tally.event.code != OTHER]
            if not idle:
                return replace(event, bdf="", code=OTHER)
            del self.tallies[min(idle, key=lambda tally: (RANK.index(tally.worst), tally.last)).event.key]
        return event
