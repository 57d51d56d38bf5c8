"""A saved kernel log as the events that the watch would have reported."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from dgxcheck.facts.missing import BadInput, Missing
from dgxcheck.source.kernel_log.kmsg import relevant_lines
from dgxcheck.source.kernel_log.saved import load
from dgxcheck.watch.event import ReportedEvent
from dgxcheck.watch.fold import Ledger
from dgxcheck.watch.log_events import log_events, log_facts


def replayed(path: str) -> Iterator[ReportedEvent]:
    """In the order of the log, by its own clock, without dates. BadInput for what is no kernel log."""
    facts = log_facts(relevant_lines(load(path)))
    if isinstance(facts, Missing):
        raise BadInput(f"{path}: {facts}")
    ledger = Ledger()
    for event in log_events(facts, lambda bdf, code: 0):
        yield from ledger.take([event], event.seconds or 0.0, "")
    yield from ledger.repeated(inf, "")
