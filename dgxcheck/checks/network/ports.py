"""Ports of the HCAs: up, at their rate, without errors."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.network.hcas import hcas, none_here, subject
from dgxcheck.facts.infiniband import IbDevice, IbPort, IbRate, PhysState, PortState
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import replace

Judged = Iterator[tuple[Subject, Judgement]]
WHOLE = 4
"""Lanes of a port; a cable that splits one has two, from HDR on."""
SPLIT = ("HDR", "NDR", "XDR")
_UP = (PortState.ACTIVE, PortState.ACTIVE_DEFER)
_DOWN = (PortState.DOWN, PortState.NOP)
_OF_ETHERNET = "check cable and switch port, and that the network interface is up"


def ports(box: Box) -> list[tuple[IbDevice, IbPort]] | Judgement:
    """The ports of all HCAs but virtual functions, or why there are none."""
    devices, listed = hcas(box), box.snapshot.ib_ports
    for gap in (devices, listed):
        if isinstance(gap, Missing):
            return none_here(gap)
    if isinstance(devices, Missing) or isinstance(listed, Missing):
        return skip("not-supported", "no InfiniBand device is here")
    by_name = {device.name: device for device in devices}
    found: list[tuple[IbDevice, IbPort]] = []
    for each in listed:
        if each.device in by_name and not isinstance(each.ports, Missing):
            found += [(by_name[each.device], port) for port in each.ports]
    return found or skip("not-supported", "no port of an InfiniBand device is here")


def of_the_profile(box: Box) -> list[IbPort]:
    """The ports that the profile's rate is for, without those that were never meant to be up."""
    found = ports(box)
    listed = [] if isinstance(found, Judgement) else found
    return [port for device, port in listed if _first(device, port) and not _not_meant(box, port, listed)]


def gbit_per_s(port: IbPort) -> float | Missing:
    """What a port runs at; 0 where it is not up."""
    if isinstance(port.state, Missing):
        return port.state
    if port.state not in _UP:
        return 0.0
    return port.rate if isinstance(port.rate, Missing) else port.rate.gbit_per_s


def _not_meant(box: Box, port: IbPort, listed: list[tuple[IbDevice, IbPort]]) -> str:
    """Why a port that is down was never meant to be up; empty where it may have been."""
    if _named(box, port) or port.state not in _DOWN:
        return ""
    if box.settings.ports:
        return f"{box.settings.path} does not list it"
    if all(each.state in _DOWN for _, each in listed):
        return "as are all: nothing is cabled here"
    idle = port.link_layer == "Ethernet" and port.phys_state in (PhysState.POLLING, PhysState.DISABLED)
    return "and no configuration says that this Ethernet port has a cable" if idle else ""


def _named(box: Box, port: IbPort) -> bool:
    return name_of(port) in box.settings.ports


def _first(device: IbDevice, port: IbPort) -> bool:
    """The first of an InfiniBand card; the second may be made or cabled for less, and what RoCE runs at varies."""
    return port.link_layer == "InfiniBand" and _place(device, port)[1:] == ("0", 1)


def port_subject(device: IbDevice, port: IbPort) -> Subject:
    """A port as the configuration names it, at the PCI function behind it."""
    return replace(subject(device), kind="port", name=name_of(port), part=str(port.port))


def name_of(port: IbPort) -> str:
    return f"{port.device}/{port.port}"


def file_of(port: IbPort, name: str) -> str:
    return f"/sys/class/infiniband/{port.device}/ports/{port.port}/{name}"


def _state(box: Box) -> Judged:
    found = ports(box)
    listed = [] if isinstance(found, Judgement) else found
    named = {name_of(port) for _, port in listed}
    for name in box.settings.ports:
        if name not in named:
            evidence = (Evidence(f"/sys/class/infiniband/{name.replace('/', '/ports/')}", "absent"),)
            gone = Judgement(Status.FAIL, f"{box.settings.path} expects it, and it is not there", evidence=evidence)
            yield Subject(kind="port", name=name, bdf=None), gone
    if isinstance(found, Judgement):
        yield HOST, found
        return
    for device, port in listed:
        yield port_subject(device, port), _standing(port, _named(box, port), _not_meant(box, port, listed))


def _standing(port: IbPort, expected: bool, idle: str) -> Judgement:
    state = port.state
    if isinstance(state, Missing):
        return unjudged(state)
    phys = port.phys_state
    physical = f", {phys.name.replace('_', ' ').lower()}" if isinstance(phys, PhysState) else ""
    evidence = (Evidence(file_of(port, "state"), f"{int(state)}: {state.name}"),)
    message = f"the port is {state.name}{physical}"
    if state in _UP:
        return Judgement(Status.PASS, message, state.name, "ACTIVE", evidence=evidence)
    if idle:
        return skip("not-configured", f"{message}, {idle}", *evidence)
    if state in (PortState.INIT, PortState.ARMED) and port.link_layer == "InfiniBand":
        message += ": no subnet manager has set it up"
    status = Status.FAIL if expected else Status.WARN
    remedy = _OF_ETHERNET if port.link_layer == "Ethernet" else ""
    return Judgement(status, message, state.name, "ACTIVE", evidence=evidence, remedy=remedy)


def _rate(box: Box) -> Judged:
    found = ports(box)
    if isinstance(found, Judgement):
        yield HOST, found
        return
    for device, port in found:
        yield port_subject(device, port), _speed(box, device, port, found)


def _speed(box: Box, device: IbDevice, port: IbPort, found: list[tuple[IbDevice, IbPort]]) -> Judgement:
    if isinstance(port.state, Missing):
        return unjudged(port.state)
    if port.state not in _UP:
        return skip("dependency-failed", f"the port is {port.state.name}: its rate means nothing")
    rate = port.rate
    if isinstance(rate, Missing):
        return unjudged(rate)
    due, whose = _due(box, device, port, found)
    if due is None:
        due, whose = rate.gbit_per_s, "it alone"
    evidence = (Evidence(file_of(port, "rate"), said(rate)),)
    low = rate.gbit_per_s < due
    ethernet = port.link_layer == "Ethernet"  # one lane is all that 10 and 25 Gbit/s need
    few = not ethernet and rate.lanes < WHOLE and not (rate.lanes == WHOLE // 2 and rate.speed in SPLIT)
    lanes = f", on {rate.lanes} of {WHOLE} lanes" if few else ""
    message = f"{said(rate)}{lanes}, {whose}: {due:g} Gb/s"
    status = Status.WARN if low or few else Status.PASS
    return Judgement(status, message, rate.gbit_per_s, due, "Gbit/s", evidence)


def _due(box: Box, device: IbDevice, port: IbPort, found: list[tuple[IbDevice, IbPort]]) -> tuple[float | None, str]:
    """What a port should run at: the first of an InfiniBand card as the profile says, others as their like."""
    number = box.choice.number("network.rate") if box.choice else None
    if number is not None and _first(device, port):
        return number.value, "the profile says"
    rates = [
        each.rate.gbit_per_s
        for other, each in found
        if _place(other, each) == _place(device, port)
        and each.link_layer == port.link_layer
        and each.state in _UP
        and isinstance(each.rate, IbRate)
    ]
    return max(rates, default=None), "ports like it"


def _place(device: IbDevice, port: IbPort) -> tuple[str, str, int]:
    """Kind of card, function and port: the second port of a card may be made or cabled for less."""
    kind = device.hca_type if isinstance(device.hca_type, str) else ""
    bdf = device.bdf if isinstance(device.bdf, str) else ".0"
    return kind, bdf.rpartition(".")[2], port.port


def said(rate: IbRate) -> str:
    """As the kernel prints it."""
    return f"{rate.gbit_per_s:g} Gb/sec ({rate.lanes}X {rate.speed})".replace(" )", ")")


CHECKS = (
    Check(
        id="network.port-state",
        rule="Warns where a port is not ACTIVE, in INIT or ARMED on InfiniBand for want of a subnet manager; fails"
        " where the configuration names it. One that is down is not judged where the configuration names others alone;"
        " without a configuration neither where all are down, nor on Ethernet where it is disabled or polls.",
        source="state, phys_state and link_layer of /sys/class/infiniband/*/ports/*",
        remedy="check cable, switch port and subnet manager",
        judge=_state,
    ),
    Check(
        id="network.port-rate",
        rule="Warns where an ACTIVE port runs below the profile's rate (first port of an InfiniBand card), otherwise"
        " below the ports in the same place of cards of its kind; on InfiniBand also on fewer lanes than 4 (2 from HDR"
        " on, which is a split cable).",
        source="rate of /sys/class/infiniband/*/ports/*, the profile's network.rate",
        remedy="clean or replace the cable; look at the speed that the switch port is set to",
        judge=_rate,
    ),
)
