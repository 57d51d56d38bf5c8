"""Error counters of a port that were read once, over the time since boot."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status
from dgxcheck.checks.engine.growth import HOUR_S, flood
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.network.ports import file_of, name_of, ports
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.infiniband import IbPort


def judge_total(
    box: Box, port: IbPort, which: str, names: Collection[str], limit: float, fault: FaultKind, compared: bool = True
) -> Judgement | None:
    """A warning where one of these counters, of ``counters`` or ``hw_counters``, counted more than ``limit`` an hour
    over all the time since boot; None where none did. ``compared``: with the other ports where that time is not known.
    """
    for name, count in _counts(port, which, names):
        since = flood(box, count, _of_others(box, port, which, name) if compared else None, limit, HOUR_S)
        if since is not None:
            message = f"{name}: {counted(count, 'event')} {since} ({limit:g} an hour allowed)"
            evidence = (Evidence(file_of(port, f"{which}/{name}"), count),)
            return Judgement(Status.WARN, message, count, limit, "an hour", evidence, fault=fault)
    return None


def _of_others(box: Box, port: IbPort, which: str, name: str) -> Iterator[int]:
    """The same counter of the other ports; looked up only where ``flood`` asks."""
    listed = ports(box)
    for _, other in [] if isinstance(listed, Judgement) else listed:
        if name_of(other) != name_of(port):
            yield from (count for _, count in _counts(other, which, (name,)))


def _counts(port: IbPort, which: str, names: Collection[str]) -> Iterator[tuple[str, int]]:
    """The largest first."""
    counters = getattr(port, which)
    known = {} if not hasattr(counters, "items") else dict(counters)
    read = [(name, known[name]) for name in names if isinstance(known.get(name), int)]
    yield from sorted(read, key=lambda each: -each[1])
