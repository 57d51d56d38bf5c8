"""Counters of the HCAs' ports by their rows in ``facts/infiniband.py``: what grows, and totals that are a flood."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.check import Check, itself, own_remedy
from dgxcheck.checks.engine.finding import (
    Evidence,
    Judgement,
    Status,
    Subject,
    as_evidence,
    counted,
    given,
    judged,
    skip,
)
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import COUNTER_RESET, DAY_S, HOUR_S, MIN_EVENTS, counter_growth, flood, rate
from dgxcheck.checks.network.ports import behind, fabric, file_of, listed_ports, name_of, per_port_growth
from dgxcheck.components.component import Component
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.infiniband import DOWNED, RECEIVER, IbPort, counter_row
from dgxcheck.facts.missing import Missing, need, rows
from dgxcheck.facts.nature import Fact
from dgxcheck.facts.typical import median
from dgxcheck.survey import Snapshot

Counts = dict[str, "int | Missing"]
"""By file below the port: ``counters/symbol_error``."""
Picked = Callable[[Fact], bool]
_FOLDERS = ("counters", "hw_counters")
_AT_BOOT = 10
"""Times the limit that a total since boot may have: peers that came and went, a fabric that was set up."""
FEW_DOWNS, FEWEST_PORTS = 10, 3
"""Of a link since its counters were cleared (infiniband-diags, error_thresholds); ports that say what is usual."""
PROGRAM = "program"
_NOT_BEFORE = skip("no-history", "its counters were not read before")
_NO_COUNTERS = skip("not-supported", "the port has none of these counters")
_PARTICULAR: Mapping[str, FaultKind] = {
    PROGRAM: Fault.PROGRAM_ERROR, "fabric": Fault.FABRIC_ERRORS, "partition keys": Fault.FABRIC_ERRORS,
    RECEIVER: Fault.RECEIVER_NOT_READY,
}  # fmt: skip
"""Where all counters that grew blame the same."""


def _blamed(files: Iterable[str]) -> tuple[FaultKind, str]:
    blamed = {str(_row(file).more.get("blames")) for file in files}
    only = blamed.pop() if len(blamed) == 1 else ""
    fault = _PARTICULAR.get(only, Fault.TRANSPORT_ERRORS)
    return fault, own_remedy("network.transport-errors", only) if only in _PARTICULAR else ""


def _blames(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The fabric, where this end of the cable has no errors of its own; else the port."""
    yield from (behind(box, at),) if judgement.fault is Fault.FABRIC_ERRORS else itself(box, at, judgement)


def of_cable(row: Fact) -> bool:
    return row.more.get("blames") == "cable"


def of_others(row: Fact) -> bool:
    return of_any(row) and not of_cable(row)


def of_any(row: Fact) -> bool:
    """Does it count errors?"""
    return "any" not in row.more


def _counts(port: IbPort, picked: Picked) -> Counts:
    """The counters of a port whose rows are picked."""
    read = {folder: counters for folder in _FOLDERS if isinstance(counters := getattr(port, folder), Mapping)}
    return {
        f"{folder}/{name}": count
        for folder, counters in read.items() for name, count in counters.items() if picked(counter_row(name))
    }  # fmt: skip


def _name(file: str) -> str:
    return file.partition("/")[2]


def _row(file: str) -> Fact:
    return counter_row(_name(file))


def _port(snapshot: Snapshot, port: IbPort) -> IbPort | None:
    own = (other for device in need(snapshot.ib_ports) if device.device == port.device for other in rows(device.ports))
    return next((other for other in own if other.port == port.port), None)


def grown_of(growth: Growth, port: IbPort, picked: Picked) -> tuple[dict[str, int], Counts] | Judgement:
    """New events by file, those that grew alone, and the new counts; the skip where nothing can be compared."""
    later, earlier = _port(growth.new, port), _port(growth.old, port)
    if later is None or earlier is None:
        return _NOT_BEFORE
    for folder in _FOLDERS:
        if isinstance(gap := getattr(later, folder), Missing) and not _counts(later, picked):
            return unjudged(gap)
    new, old = _counts(later, picked), _counts(earlier, picked)
    if new and not old:
        return _NOT_BEFORE
    events: dict[str, int] = {}
    unread: dict[str, Judgement] = {}
    for file in [file for file in new if file in old]:
        more, ceiling = counter_growth(old[file], new[file]), _row(file).more.get("ceiling")
        if more is None or isinstance(more, Missing):
            unread[file] = COUNTER_RESET if more is None else unjudged(more)
        elif not more and new[file] == ceiling:
            message = f"{_name(file)} is saturated at {ceiling}: growth cannot be seen"
            unread[file] = Judgement(Status.SKIP, message, ceiling, reason="no-history")
        else:
            events[file] = more
    hidden = any(of_cable(_row(file)) or why is COUNTER_RESET for file, why in unread.items())
    if unread and not any(events.values()) and (hidden or not events):
        return next(iter(unread.values()))
    most_first = sorted(events.items(), key=lambda item: (_name(item[0]) != DOWNED, -item[1]))
    return ({file: more for file, more in most_first if more}, new) if events else _NO_COUNTERS


def _of_link(box: Box, growth: Growth, port: IbPort) -> Judgement:
    """Fails if a link went down since the counters were first read (link_downed). Warns if symbol errors, link
    recoveries, local integrity errors, buffer overruns or receive errors grew by 3 or more and by at least
    {network.errors-warn}; fails from {network.errors} on, observed over an hour or more. Where growth over an hour or
    more is not known, also warns above {network.errors} over the whole time since boot, of a link that went down above
    {network.carrier}, or more than 10 times and once a day where it is ten times what the other ports have. The growth
    of a saturated counter is not judged, and port_xmit_wait never is.

    Source: counters of /sys/class/infiniband/*/ports/*; widths of the InfiniBand specification; thresholds of
    ibcheckerrors
    """
    events, new = given(grown_of(growth, port, of_cable))
    if not events:
        return Judgement(Status.PASS, f"no new errors {growth.how}", 0, 0, "errors")
    most = max((more for file, more in events.items() if _name(file) != DOWNED), default=0)
    hourly = rate(most, growth, HOUR_S)
    steady = growth.seconds >= HOUR_S and hourly >= box.settings.limit("network.errors")
    often = hourly >= box.settings.limit("network.errors-warn")
    many, down = most >= MIN_EVENTS, f"counters/{DOWNED}" in events
    total = sum(events.values())
    saturated = {file: " (saturated)" for file in events if new[file] == _row(file).more.get("ceiling")}
    by_name = ", ".join(f"{_name(file)} {more}{saturated.get(file, '')}" for file, more in events.items())
    message, evidence = f"{counted(total, 'new error')} {growth.how}: {by_name}", evidence_of(port, events, new)
    warns, fails = many and often, down or (many and steady)
    return judged(Fault.PORT_ERRORS, message, total, 0, "errors", evidence, warns=warns, fails=fails)


def evidence_of(port: IbPort, files: Iterable[str], new: Counts) -> tuple[Evidence, ...]:
    return tuple(Evidence(file_of(port, file), as_evidence(new[file])) for file in files)


def _of_transport(box: Box, growth: Growth, port: IbPort) -> Judgement:
    """Warns if any other counter of a port, of timeouts, sequence errors, retransmissions, discards or of what is not
    known, grew by 3 or more and by at least {network.transport} (what the fabric discards or refuses: {network.fabric};
    failed work requests of programs: {network.programs}): peers that end or reboot leave some behind; those
    of the path are due at the next drain from {network.transport-often}. Traffic, congestion control and flushed
    requests are not judged. Where growth over an hour or more is not known, also warns above {network.transport-total}
    (of the fabric: ten times its limit) over the whole time since boot.

    Source: counters and hw_counters of /sys/class/infiniband/*/ports/* (mlx5); error_thresholds of infiniband-diags;
    NVSentinel's and DCGM's watches of the same
    """
    events, new = given(grown_of(growth, port, of_others))
    if not events:
        return Judgement(Status.PASS, f"no new retransmissions, timeouts or discards {growth.how}", 0, 0, "errors")
    limits = {file: box.settings.limit(str(_row(file).more["limit"])) for file in events}
    many = [file for file, more in events.items() if more >= MIN_EVENTS]
    bad = [file for file in many if rate(events[file], growth, HOUR_S) >= limits[file]]
    shown = bad or [*events]
    worst = max(shown, key=lambda file: events[file] / max(limits[file], 1))
    by_name = ", ".join(f"{_name(file)} {events[file]}" for file in shown)
    message = f"{by_name} {growth.how} ({limits[worst]:g} an hour{' of each' if len(shown) > 1 else ''} allowed)"
    hourly, evidence = rate(events[worst], growth, HOUR_S), evidence_of(port, events, new)
    fault, remedy = _blamed(bad)
    if fault is Fault.TRANSPORT_ERRORS and hourly >= box.settings.limit("network.transport-often"):
        fault = Fault.TRANSPORT_FLOOD
    figures = (round(hourly, 2), limits[worst], "an hour")
    return judged(fault, message, *figures, evidence, warns=bool(bad), remedy=remedy)


def _link_total(box: Box, port: IbPort) -> Judgement | None:
    often = box.settings.limit("network.errors")
    return _downs_total(box, port) or _total(box, port, _of_signal, lambda _: often)


def _of_signal(row: Fact) -> bool:
    return of_cable(row) and row.name != DOWNED


def _downs_total(box: Box, port: IbPort) -> Judgement | None:
    """A warning where its link went down too often since boot, or far more often than those of the other ports."""
    file, limit = f"counters/{DOWNED}", box.settings.limit("network.carrier")
    downs = _counts(port, of_cable).get(file)
    if not isinstance(downs, int) or downs <= FEW_DOWNS:
        return None
    if (since := flood(box, downs, None, limit, DAY_S)) is not None:
        allowed = f"{since} ({limit:g} a day allowed)"
    else:
        since, others = flood(box, downs, None, 1, DAY_S), [*_elsewhere(box, port, file, of_cable)]
        if since is None or len(others) < FEWEST_PORTS or downs <= FEW_DOWNS * (usual := median(others)):
            return None
        allowed = f"{since}, usual here: {usual:g}"
    message, evidence = f"{DOWNED}: {counted(downs, 'event')} {allowed}", (Evidence(file_of(port, file), downs),)
    return Judgement(Status.WARN, message, downs, limit, "a day", evidence, fault=Fault.PORT_ERRORS)


def _transport_total(box: Box, port: IbPort) -> Judgement | None:
    """What programs do wrong is judged while it grows alone."""

    def limit(row: Fact) -> float:
        name = str(row.more["limit"])
        by_name = name != "network.transport"
        return _AT_BOOT * box.settings.limit(name) if by_name else box.settings.limit("network.transport-total")

    return _total(box, port, lambda row: of_others(row) and row.more.get("blames") != PROGRAM, limit)


def _total(box: Box, port: IbPort, picked: Picked, limit: Callable[[Fact], float]) -> Judgement | None:
    """A warning where one of these counters counted more than its limit an hour over all the time since boot."""
    read = {file: count for file, count in _counts(port, picked).items() if isinstance(count, int)}
    for file, count in sorted(read.items(), key=lambda item: -item[1]):
        allowed, name = limit(_row(file)), _name(file)
        if (since := flood(box, count, _elsewhere(box, port, file, picked), allowed, HOUR_S)) is not None:
            message = f"{name}: {counted(count, 'event')} {since} ({allowed:g} an hour allowed)"
            evidence = (Evidence(file_of(port, file), count),)
            fault, remedy = (Fault.PORT_ERRORS, "") if of_cable(_row(file)) else _blamed([file])
            return Judgement(Status.WARN, message, count, allowed, "an hour", evidence, remedy=remedy, fault=fault)
    return None


def _elsewhere(box: Box, port: IbPort, file: str, picked: Picked) -> Iterator[int]:
    """The same counter of the other ports; looked up only where ``flood`` asks."""
    for _, other in listed_ports(box):
        if name_of(other) != name_of(port) and isinstance(count := _counts(other, picked).get(file), int):
            yield count


CHECKS = (
    Check("network.port-errors", per_port_growth(_of_link, _link_total), shared=fabric, counters=True),
    Check("network.transport-errors", per_port_growth(_of_transport, _transport_total), _blames, fabric, counters=True),
)  # fmt: skip
