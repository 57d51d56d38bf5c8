"""Adapters that lead to NVSwitches alone: over their ports the NVLink Subnet Manager sets up the fabric."""

from __future__ import annotations

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, ruled
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, given, skip
from dgxcheck.checks.engine.growth import MIN_EVENTS
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.network.hcas import bridges
from dgxcheck.checks.network.port_counters import evidence_of, grown_of, of_cable, of_others
from dgxcheck.checks.network.ports import UP, file_of, name_of, port_subject, ports
from dgxcheck.components.component import Component
from dgxcheck.components.containment import NVSWITCHES
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.infiniband import IbPort
from dgxcheck.facts.missing import Missing, rows


def _judge(box: Box) -> Judged:
    if not rows(bridges(box)):
        yield HOST, skip("not-supported", "no adapter leads to NVSwitches")
        return
    for device, port in given(ports(box, bridges)):
        yield port_subject(device, port), ruled(_port, box, port)


def _port(box: Box, port: IbPort) -> Judgement:
    if not isinstance(port.state, Missing) and port.state not in UP:
        message = f"{name_of(port)}, which leads to the NVSwitches, is {port.state.name}"
        state = Evidence(file_of(port, "state"), port.state.name)
        return Judgement(Status.FAIL, message, port.state.name, "ACTIVE", "", (state,), fault=Fault.NVSWITCH_PORT)
    if isinstance(box.growth, Judgement):
        return box.growth
    found = [grown_of(box.growth, port, picked) for picked in (of_cable, of_others)]
    events = {file: more for each in found if not isinstance(each, Judgement) for file, more in each[0].items()}
    many = {file: more for file, more in events.items() if more >= MIN_EVENTS}
    if not events and (unread := next((each for each in found if isinstance(each, Judgement)), None)) is not None:
        return unread
    total, how = sum(many.values()), box.growth.how
    if not many:
        return Judgement(Status.PASS, f"no new errors {how}", 0, 0, "errors")
    by_name = ", ".join(f"{file.partition('/')[2]} {more}" for file, more in many.items())
    message = f"{counted(total, 'new error')} {how} on the port to the NVSwitches: {by_name}"
    counts = next(each[1] for each in found if not isinstance(each, Judgement) and many.keys() & each[1].keys())
    evidence = evidence_of(port, [file for file in many if file in counts], counts)
    return Judgement(Status.WARN, message, total, 0, "errors", evidence, fault=Fault.NVSWITCH_PORT)


def _switches(box: Box, at: object, judgement: Judgement) -> tuple[Component, ...]:
    return (NVSWITCHES,)


CHECKS = (
    Check(
        id="nvlink.switch-port",
        rule="Fails if a port of an adapter that leads to NVSwitches (its vital product data say SW_MNG) is not active."
        " Warns if an error counter of it grew by 3 or more; what programs and the fabric of a network leave behind is"
        " not there.",
        source="/sys/class/infiniband/*/ports/*; Fabric Manager user guide, NVLink Subnet Manager",
        remedy="read the NVLink Subnet Manager's log (journalctl -u nvidia-fabricmanager); the link is on the baseboard"
        " and has no cable: if it stays, open a ticket with nvidia-bug-report.log.gz",
        judge=_judge,
        blames=_switches,
        witness="counters",
    ),
)
