"""Is every port up that is to be used?"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, itself, remedy_of, ruled
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject, judged, skip
from dgxcheck.checks.engine.growth import duration, log_end
from dgxcheck.checks.network.ports import (
    LEAST,
    UP,
    Ports,
    fabric,
    file_of,
    is_apart,
    is_first,
    listed_ports,
    name_of,
    odd_link_layer,
    port_subject,
    ports,
    same_cards,
    twins,
    waits_for,
)
from dgxcheck.components.component import SUBNET_MANAGER, Component
from dgxcheck.components.locate import is_nvidia_adapter
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.host import had_carrier
from dgxcheck.facts.infiniband import IbDevice, IbPort, PhysState, PortState
from dgxcheck.facts.missing import Gap, Missing, need, rows, text_of

_DOWN = (PortState.DOWN, PortState.NOP)
_LAST_LID = 0xBFFF
"""Of a single port; those above are of multicast."""


def of_the_profile(box: Box) -> list[IbPort]:
    """The ports that the profile's rate is for, without those that were never meant to be up."""
    pairs = listed_ports(box)
    return [port for device, port in pairs if is_first(device, port) and not _not_in_use(box, device, port, pairs)]


def _not_in_use(box: Box, device: IbDevice, port: IbPort, listed: Ports) -> str:
    """Why a port that is down was never meant to be up; empty where it may have been."""
    if _is_configured(box, port) or port.state not in _DOWN:
        return ""
    if box.settings.ports:
        return f"not listed in {box.settings.path}"
    if all(each.state in _DOWN and each.phys_state is not PhysState.LINK_UP for _, each in listed):
        asked = _is_asked_about(box, port, len(listed) == 1)
        return "" if asked or _was_up(box, device, port) else "as are all ports: nothing is cabled"
    may_be_ethernet = isinstance(port.link_layer, Missing) or port.link_layer == "Ethernet"
    others = twins(box, device, port, listed)
    dark = [pair for pair in (*others, (device, port)) if pair[1].state in _DOWN and not _was_up(box, *pair)]
    if others and len(dark) > len(others) and is_apart(box, device):
        return "as are those like it, which share no PCIe switch with a GPU: nothing is cabled"
    if port.phys_state is not PhysState.LINK_UP and (device, port) in dark and _is_spare(box, device, listed):
        return "as is one port of each such card: nothing is cabled"
    idle = may_be_ethernet and port.phys_state in (PhysState.POLLING, PhysState.DISABLED)
    idle |= port.link_layer == "Ethernet" and isinstance(port.phys_state, Missing)  # ibv_devinfo without -v
    beside = others or _same_model(device, port, listed)
    if len(beside) >= LEAST and all(each.state in UP for _, each in beside):
        return ""
    kind = "an Ethernet port" if port.link_layer == "Ethernet" else "a port of unknown link layer"
    if idle:
        return "" if _was_up(box, device, port) else f"{kind} that no configuration lists"
    up = sum(each.state in UP for _, each in others)  # a port without a cable polls; somebody switched this one off
    off = port.phys_state is PhysState.DISABLED and box.number("network.rate") is None
    return "switched off, and no configuration lists it" if off and 2 * up <= len(others) else ""


def _same_model(device: IbDevice, port: IbPort, listed: Ports) -> Ports:
    """Of a text that names no bus ids (ibstat): the InfiniBand ports of the same number on the others of its model."""
    own = ("InfiniBand", port.port, device.hca_type)
    return [(other, each) for other, each in listed
            if (port.link_layer, *own[1:]) == own == (each.link_layer, each.port, other.hca_type)
            and each is not port and isinstance(device.bdf, Missing)]  # fmt: skip


def _is_spare(box: Box, device: IbDevice, listed: Ports) -> bool:
    """Is another port of its card up, and are two cards of its model or more so, none with two ports up?"""
    cards = defaultdict(list)
    for other, each in listed:
        if other.hca_type == device.hca_type and isinstance(other.sys_image_guid, str):
            cards[other.sys_image_guid].append(each.state in UP or _was_up(box, other, each))
    pairs = {guid: used for guid, used in cards.items() if len(used) > 1}
    return len(pairs) > 1 and any(pairs.get(text_of(device.sys_image_guid), ())) and max(map(sum, pairs.values())) < 2


def _was_up(box: Box, device: IbDevice, port: IbPort) -> bool:
    """An InfiniBand port keeps the LID that a subnet manager gave it when its link goes down, without one it has 0, or
    0xffff since firmware of ConnectX-6; and any port keeps the count of what it received since its driver was loaded.
    """
    if port.link_layer != "InfiniBand" and _is_off(box, device, port):
        return False
    counters = {} if isinstance(port.counters, Missing) else port.counters
    received = counters.get("port_rcv_data", 0)
    if not isinstance(received, Missing) and received > 0:
        return True
    if port.link_layer == "InfiniBand":
        return not isinstance(port.lid, Missing) and 0 < port.lid <= _LAST_LID
    own = [each for each in rows(box.snapshot.network) if each.bdf == device.bdf]
    return len(own) == 1 and had_carrier(own[0])  # of several nobody knows whose port it is


def _is_off(box: Box, device: IbDevice, port: IbPort) -> bool:
    """Did somebody switch it off? mlx5 calls an Ethernet port disabled that has no carrier, too (Linux
    drivers/infiniband/hw/mlx5/main.c: mlx5_query_port_roce); that of an interface that is set down cannot be read
    (net/core/net-sysfs.c: carrier_show).
    """
    own = [each.carrier for each in rows(box.snapshot.network) if each.bdf == device.bdf]
    return port.phys_state is PhysState.DISABLED and (port.link_layer != "Ethernet" or own != [False])


def _is_asked_about(box: Box, port: IbPort, only: bool) -> bool:
    """Is all that is known of the machine the output of a tool about its ports: with one that looks for a partner, or
    of the only one, by a tool that does not tell whether somebody switched it off (ibv_devinfo)?"""
    untold = only and isinstance(port.phys_state, Missing)
    asked = port.link_layer == "InfiniBand" and (untold or port.phys_state is PhysState.POLLING)
    return asked and isinstance(box.snapshot.pci, Missing)


def _is_configured(box: Box, port: IbPort) -> bool:
    return name_of(port) in box.settings.ports


def _state(box: Box) -> Judged:
    """Warns if a port is not ACTIVE, and fails if the configuration lists it; an InfiniBand port in INIT or ARMED waits
    for a subnet manager. A port that is down is not judged if the configuration lists other ports only; without a
    configuration, neither if all ports are down, or all on cards like its own, that were never up and share no PCIe
    switch with a GPU, as others do, or if another port of its card is up and so is one port at most of the other cards
    of its model, nor on Ethernet if it is disabled or polling, unless the same ports of at least three other HCAs of
    its kind are all up. One that still has its LID, has received data or lost its carrier twice was up before and is
    judged, except an Ethernet port that was switched off, whose interface has not even a carrier that can be read; so
    is an InfiniBand port where nothing else of the machine is known and it is polling, or the only one, whose physical
    state is not known. Warns too if an ACTIVE InfiniBand port has no LID, or knows none of a subnet manager.

    Source: state, phys_state and link_layer of /sys/class/infiniband/*/ports/*
    """
    pairs = listed_ports(box)
    names = {name_of(port) for _, port in pairs}
    for name in [name for name in box.settings.ports if name not in names]:
        evidence = (Evidence(f"/sys/class/infiniband/{name.replace('/', '/ports/')}", "absent"),)
        message = f"no such port; {box.settings.path} lists it"
        at, remedy = Subject(kind="port", name=name, bdf=None), remedy_of("network.port-state", "missing")
        yield at, judged(Fault.PORT_MISSING, message, evidence=evidence, fails=True, remedy=remedy)
    if isinstance(none := ports(box), Judgement):
        yield HOST, none
    for device, port in pairs:
        configured, why = _is_configured(box, port), _not_in_use(box, device, port, pairs)
        odd = odd_link_layer(box, device, port, pairs) is not None
        yield port_subject(device, port), ruled(_port_state, box, device, port, configured, why, odd)


def _port_state(box: Box, device: IbDevice, port: IbPort, configured: bool, not_in_use: str, odd: bool) -> Judgement:
    """``odd``: in another link layer than the ports of its kind, which network.link-layer reports."""
    state, phys = need(port.state), port.phys_state
    off = _is_off(box, device, port)
    how = phys.name.replace("_", " ").lower() if isinstance(phys, PhysState) else ""
    physical = f" ({'no carrier' if phys is PhysState.DISABLED and not off else how})" if how else ""
    evidence = (Evidence(file_of(port, "state"), f"{int(state)}: {state.name}"),)
    message = f"port is {state.name}{physical}"
    if state in UP:
        return _addressed(box, device, port, state, message, evidence)
    if odd and not configured:
        return skip("dependency-failed", f"{message}: see network.link-layer", *evidence)
    if not_in_use:
        return skip("not-configured", f"{message}, {not_in_use}", *evidence)
    fault = _fault(port, off)
    if fault is Fault.NO_SUBNET_MANAGER and _has_no_guid(device):
        message += ": its node GUID is all zeros, and no subnet manager configures such a port"
        facts, remedy = (state.name, "ACTIVE", "", evidence), remedy_of("network.port-state", "no GUID")
        return judged(Fault.HCA_IDENTITY, message, *facts, warns=True, remedy=remedy)
    if fault is Fault.NO_SUBNET_MANAGER:
        message += ": no subnet manager configured it"
    elif any(each.trouble == "unplugged" and each.bdf == device.bdf and not each.past for each in box.log.hcas):
        message += ": no cable or transceiver is plugged in"
    elif downs := [each for each in box.log.hcas if each.trouble == "link down"
                   and each.bdf == device.bdf and each.module == port.port - 1]:  # fmt: skip
        ago = f" {duration(log_end(box) - downs[-1].seconds)} ago" if box.log.timed else ""
        message += f": it went down{ago}"
    now, remedy = (message, state.name, "ACTIVE", "", evidence), _remedy(box, fault, device, port)
    return judged(fault, *now, warns=True, fails=configured, remedy=remedy)


def _has_no_guid(device: IbDevice) -> bool:
    return isinstance(device.node_guid, Missing) and device.node_guid.gap is Gap.UNSUPPORTED


def _addressed(
    box: Box, device: IbDevice, port: IbPort, state: PortState, message: str, evidence: tuple[Evidence, ...]
) -> Judgement:
    """Of a port that is up: on InfiniBand it has a LID, and knows that of its subnet manager."""
    lids = {"lid": (port.lid, "no LID"), "sm_lid": (port.sm_lid, "no subnet manager")}
    nothing = {name: words for name, (lid, words) in lids.items() if lid == 0 and port.link_layer == "InfiniBand"}
    if not nothing:
        return Judgement(Status.PASS, message, state.name, "ACTIVE", evidence=evidence)
    message, fault = f"{message}, {' and '.join(nothing.values())}", Fault.NO_SUBNET_MANAGER
    evidence = (*evidence, *(Evidence(file_of(port, name), "0x0") for name in nothing))
    remedy = _remedy(box, fault, device, port)
    return judged(fault, message, state.name, "ACTIVE", evidence=evidence, warns=True, remedy=remedy)


def _fault(port: IbPort, off: bool) -> FaultKind:
    """The fault of a port that is not up: with a physical link it waits for the subnet manager, which can also be
    configured to leave the port of a virtual function down."""
    waits = port.state in (PortState.INIT, PortState.ARMED) or port.phys_state is PhysState.LINK_UP
    if waits and port.link_layer == "InfiniBand":
        return Fault.NO_SUBNET_MANAGER
    return Fault.PORT_DISABLED if off else Fault.PORT_DOWN


def _remedy(box: Box, fault: FaultKind, device: IbDevice, port: IbPort) -> str:
    if fault is Fault.NO_SUBNET_MANAGER:
        virtual = port.state in _DOWN and device.is_vf is not False
        return remedy_of("network.port-state", "no subnet manager, virtual" if virtual else "no subnet manager")
    if port.link_layer == "Ethernet":
        return remedy_of("network.port-state", "Ethernet")
    if fault is Fault.PORT_DISABLED and not is_nvidia_adapter(box, device.bdf, device.name):
        return remedy_of("network.port-state", "disabled, other vendor")
    if fault is Fault.PORT_DISABLED:
        name = device.bdf if isinstance(device.bdf, str) else device.name
        second = f" -p {port.port}" if port.port > 1 else ""
        return remedy_of("network.port-state", "disabled").format(f"{shlex.quote(name)}{second}")
    return remedy_of("network.port-state")


def port_or_subnet_manager(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The port, its cable included; the subnet manager where the port waits for one."""
    if judgement.fault is Fault.NO_SUBNET_MANAGER:
        yield waits_for(at)
        if _without_subnet_manager(box, at):
            yield SUBNET_MANAGER
    else:
        yield from itself(box, at, judgement)


def _without_subnet_manager(box: Box, at: Subject) -> bool:
    """Do most InfiniBand ports with a link lack one, of all, or of cards like this, which may have their own fabric?"""
    every = listed_ports(box)
    cards = same_cards(box, [at.bdf])
    like = [(device, port) for device, port in every if device.bdf in cards]
    return _most_lack(every) or _most_lack(like)


def _most_lack(every: Ports) -> bool:
    linked = [port for _, port in every if port.link_layer == "InfiniBand" and port.state not in _DOWN]
    with_state = [port for port in linked if isinstance(port.state, PortState)]
    lacking = [port for port in with_state if port.state not in UP or port.sm_lid == 0]
    return len(lacking) > 1 and 2 * len(lacking) > len(linked)


CHECKS = (Check("network.port-state", _state, port_or_subnet_manager, fabric),)
