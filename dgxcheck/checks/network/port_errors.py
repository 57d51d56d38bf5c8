"""Error counters of the HCAs' ports, judged by their growth alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dgxcheck.checks.engine.box import HOST, Box, Growth
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import COUNTER_RESET, HOUR_S, MIN_EVENTS, counter_growth, rate
from dgxcheck.checks.network.ports import file_of, port_subject, ports
from dgxcheck.facts.infiniband import IbPort
from dgxcheck.facts.missing import Missing
from dgxcheck.survey import Snapshot

Judged = Iterator[tuple[Subject, Judgement]]
DOWNED = "link_downed"
OF_THE_LINK = (
    "symbol_error",
    "link_error_recovery",
    "local_link_integrity_errors",
    "excessive_buffer_overrun_errors",
    "port_rcv_errors",
)
"""Counters of this end of the cable; those of congestion, of the far end and port_xmit_wait tell of no fault here."""
CEILING = {
    "symbol_error": 65535,
    DOWNED: 255,
    "link_error_recovery": 255,
    "local_link_integrity_errors": 15,
    "excessive_buffer_overrun_errors": 15,
    "port_rcv_errors": 65535,
}
"""Where a counter of the InfiniBand specification's width stays; wider ones of newer adapters go on."""


def _errors(box: Box) -> Judged:
    found = ports(box)
    growth = box.growth
    if isinstance(found, Judgement) or isinstance(growth, Judgement):
        no_growth = growth if isinstance(growth, Judgement) else COUNTER_RESET
        yield HOST, found if isinstance(found, Judgement) else no_growth
        return
    for device, port in found:
        old, new = (_of(snapshot, port) for snapshot in (growth.old, growth.new))
        yield port_subject(device, port), _judged(box, growth, port, old, new)


def _of(snapshot: Snapshot, port: IbPort) -> Mapping[str, int | Missing] | Missing | None:
    if isinstance(snapshot.ib_ports, Missing):
        return snapshot.ib_ports
    for device in snapshot.ib_ports:
        if device.device == port.device and not isinstance(device.ports, Missing):
            return next((each.counters for each in device.ports if each.port == port.port), None)
    return None


def _judged(
    box: Box,
    growth: Growth,
    port: IbPort,
    old: Mapping[str, int | Missing] | Missing | None,
    new: Mapping[str, int | Missing] | Missing | None,
) -> Judgement:
    if isinstance(new, Missing):
        return unjudged(new)
    if new is None or old is None or isinstance(old, Missing):
        return skip("no-history", "its counters were not read before")
    events: dict[str, int] = {}
    hidden: list[Judgement] = []
    for name in (DOWNED, *OF_THE_LINK):
        if name not in new or name not in old:
            continue
        more = counter_growth(old[name], new[name])
        if more is None or isinstance(more, Missing):
            hidden.append(COUNTER_RESET if more is None else unjudged(more))
        elif more:
            events[name] = more
        elif new[name] == CEILING[name]:
            hidden.append(skip("no-history", f"{name} is saturated at {CEILING[name]}: no growth can be seen"))
        else:
            events.setdefault(name, 0)
    if any(events.values()):
        return _grew(box, growth, port, {name: more for name, more in events.items() if more}, new)
    if hidden:
        return hidden[0]
    if not events:
        return skip("not-supported", "the port has none of these counters")
    return Judgement(Status.PASS, f"no new errors {growth.how}", 0, 0, "errors")


def _grew(
    box: Box, growth: Growth, port: IbPort, events: dict[str, int], new: Mapping[str, int | Missing]
) -> Judgement:
    most = max((more for name, more in events.items() if name != DOWNED), default=0)
    hourly = rate(most, growth, HOUR_S)
    steady = growth.seconds >= HOUR_S and hourly >= box.settings.limit("network.errors")
    often = hourly >= box.settings.limit("network.errors-warn")
    status = Status.PASS if most < MIN_EVENTS else Status.FAIL if steady else Status.WARN if often else Status.PASS
    if DOWNED in events:
        status = Status.FAIL
    evidence = tuple(Evidence(file_of(port, f"counters/{name}"), _shown(new[name])) for name in events)
    said = ", ".join(f"{name} {more}{_full(name, new)}" for name, more in events.items())
    return Judgement(status, f"new errors {growth.how}: {said}", sum(events.values()), 0, "errors", evidence)


def _full(name: str, new: Mapping[str, int | Missing]) -> str:
    return " (saturated)" if new[name] == CEILING[name] else ""


def _shown(value: int | Missing) -> int | str:
    return value.reason if isinstance(value, Missing) else value


CHECKS = (
    Check(
        id="network.port-errors",
        rule="Fails where a link went down since the counters were first read (link_downed); warns where symbol errors,"
        " link recoveries, local integrity errors, buffer overruns or receive errors came 3 times or more and from"
        " {network.errors-warn} on, fails from {network.errors} on, seen over an hour or more. A counter at its ceiling"
        " is saturated and not judged; port_xmit_wait never is.",
        source="counters of /sys/class/infiniband/*/ports/*; widths of the InfiniBand specification; thresholds of"
        " ibcheckerrors",
        remedy="clean or replace the cable or transceiver, then look at both ports' counters again",
        judge=_errors,
    ),
)
