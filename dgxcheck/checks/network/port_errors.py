"""Error counters of the HCAs' ports, judged by their growth alone."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, as_evidence, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import COUNTER_RESET, HOUR_S, MIN_EVENTS, counter_growth, rate
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.network.port_totals import judge_total
from dgxcheck.checks.network.ports import fabric, file_of, per_port_growth
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.infiniband import IbPort
from dgxcheck.facts.missing import Missing, need
from dgxcheck.survey import Snapshot

Counters = Mapping[str, "int | Missing"]
DOWNED = "link_downed"
OF_THE_LINK = (
    "symbol_error",
    "link_error_recovery",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "port_rcv_errors",
)
"""Counters of this end of the cable; those of congestion, of the far end and port_xmit_wait are no fault of it."""
CEILING = {
    "symbol_error": 65535,
    DOWNED: 255,
    "link_error_recovery": 255,
    "local_link_integrity_errors": 15,
    "excessive_buffer_overrun_errors": 15,
    "port_rcv_errors": 65535,
}
"""Where a counter of the InfiniBand specification's width stops; wider ones of newer adapters go on."""


def counters_of(snapshot: Snapshot, port: IbPort, which: str = "counters") -> Counters | Missing | None:
    """``counters`` or ``hw_counters`` of a port; None where it is not listed."""
    if isinstance(snapshot.ib_ports, Missing):
        return snapshot.ib_ports
    for device in snapshot.ib_ports:
        if device.device == port.device and not isinstance(device.ports, Missing):
            return next((getattr(each, which) for each in device.ports if each.port == port.port), None)
    return None


def _port_errors(box: Box, growth: Growth, port: IbPort) -> Judgement:
    new, old = need(counters_of(growth.new, port)), counters_of(growth.old, port)
    if new is None or old is None or isinstance(old, Missing):
        return skip("no-history", "its counters were not read before")
    events: dict[str, int] = {}
    unread: list[Judgement] = []
    for name in (DOWNED, *OF_THE_LINK):
        if name not in new or name not in old:
            continue
        more = counter_growth(old[name], new[name])
        if more is None or isinstance(more, Missing):
            unread.append(COUNTER_RESET if more is None else unjudged(more))
        elif not more and new[name] == CEILING[name]:
            unread.append(skip("no-history", f"{name} is saturated at {CEILING[name]}: growth cannot be seen"))
        else:
            events[name] = more
    if any(events.values()):
        return _grown(box, growth, port, {name: more for name, more in events.items() if more}, new)
    if unread:
        return unread[0]
    if not events:
        return skip("not-supported", "the port has none of these counters")
    return Judgement(Status.PASS, f"no new errors {growth.how}", 0, 0, "errors")


def _grown(box: Box, growth: Growth, port: IbPort, events: Mapping[str, int], new: Counters) -> Judgement:
    most = max((more for name, more in events.items() if name != DOWNED), default=0)
    hourly = rate(most, growth, HOUR_S)
    steady = growth.seconds >= HOUR_S and hourly >= box.settings.limit("network.errors")
    often = hourly >= box.settings.limit("network.errors-warn")
    status = Status.PASS if most < MIN_EVENTS else Status.FAIL if steady else Status.WARN if often else Status.PASS
    if DOWNED in events:
        status = Status.FAIL
    evidence = tuple(Evidence(file_of(port, f"counters/{name}"), as_evidence(new[name])) for name in events)
    total = sum(events.values())
    by_name = ", ".join(f"{name} {more}{_saturated(name, new)}" for name, more in events.items())
    message = f"{counted(total, 'new error')} {growth.how}: {by_name}"
    fault = None if status is Status.PASS else Fault.PORT_ERRORS
    return Judgement(status, message, total, 0, "errors", evidence, fault=fault)


def _saturated(name: str, new: Counters) -> str:
    return " (saturated)" if new[name] == CEILING[name] else ""


def _total(box: Box, port: IbPort) -> Judgement | None:
    limits = ((OF_THE_LINK, "network.errors"), ((DOWNED,), "network.errors-warn"))
    judged = (
        judge_total(box, port, "counters", names, box.settings.limit(limit), Fault.PORT_ERRORS, names is OF_THE_LINK)
        for names, limit in limits
    )  # fmt: skip
    return next((judgement for judgement in judged if judgement is not None), None)


CHECKS = (
    Check(
        id="network.port-errors",
        rule="Fails if a link went down since the counters were first read (link_downed). Warns if symbol errors, link"
        " recoveries, local integrity errors, buffer overruns or receive errors grew by 3 or more and by at least"
        " {network.errors-warn}; fails from {network.errors} on, observed over an hour or more. Without a second"
        " reading an hour or more later, also warns above {network.errors}, for links that went down above"
        " {network.errors-warn}, over the whole time since boot. The growth of a saturated counter is not judged, and"
        " port_xmit_wait never is.",
        source="counters of /sys/class/infiniband/*/ports/*; widths of the InfiniBand specification; thresholds of"
        " ibcheckerrors",
        remedy="clean, reseat or replace the cable or transceiver, then watch the counters of both ports (perfquery)",
        judge=per_port_growth(_port_errors, _total),
        witness="counters",
        shared=fabric,
    ),
)
