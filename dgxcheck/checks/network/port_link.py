"""Link layer and rate of the HCAs' ports, the identity of the HCAs, and the number of their ports."""

from __future__ import annotations

import shlex

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, part, ruled
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, counted, given, judged, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.network.ports import (
    LEAST,
    UP,
    Ports,
    fabric,
    file_of,
    hcas,
    is_apart,
    is_first,
    listed_hcas,
    odd_link_layer,
    per_port,
    ports_of,
    position_of,
    role,
    subject,
    twins,
)
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import MELLANOX
from dgxcheck.facts.infiniband import SDR, IbDevice, IbPort, IbRate
from dgxcheck.facts.missing import Gap, Missing, need, rows
from dgxcheck.facts.typical import majority

_LINK_TYPES = {"InfiniBand": 1, "Ethernet": 2}
"""Of mlxconfig's LINK_TYPE_P1 and LINK_TYPE_P2."""


def _layer(box: Box, device: IbDevice, port: IbPort, listed: Ports) -> Judgement:
    """Warns if a port runs another link layer (InfiniBand, Ethernet) than three quarters of the ports in the same place
    on at least three other HCAs of its model, board and distance to the GPUs.

    Source: link_layer of /sys/class/infiniband/*/ports/*; mlxconfig's LINK_TYPE_P1
    """
    own = need(port.link_layer)
    evidence = (Evidence(file_of(port, "link_layer"), own),)
    if (usual := odd_link_layer(box, device, port, listed)) is not None:
        message, remedy = f"link layer {own}, others {usual}; HCAs of its kind", _set_link_type(device, port, usual)
        return judged(Fault.LINK_LAYER, message, own, usual, evidence=evidence, warns=True, remedy=remedy)
    if len(twins(box, device, port, listed)) < LEAST:
        return skip("no-reference", f"link layer {own}; too few HCAs of its kind to compare with", *evidence)
    return Judgement(Status.PASS, f"link layer {own}", own, own, evidence=evidence)


def _set_link_type(device: IbDevice, port: IbPort, layer: str) -> str:
    if layer not in _LINK_TYPES or not isinstance(device.bdf, str):
        return ""
    command = ("mlxconfig", "-d", device.bdf, "set", f"LINK_TYPE_P{port.port}={_LINK_TYPES[layer]}")
    return f"unless this was intended: {shlex.join(command)}"


def _identity(box: Box) -> Judged:
    """Warns if the node GUID of a ConnectX or BlueField adapter is all zeros; fails if an HCA has no port, or fewer
    than most others of its kind. Virtual functions are not judged.

    Source: node_guid and ports of /sys/class/infiniband/*
    """
    for device in given(listed_hcas(box)):
        yield subject(device), ruled(_of_hca, box, device)


def _of_hca(box: Box, device: IbDevice) -> Judgement:
    where = f"/sys/class/infiniband/{device.name}"
    if isinstance(device.node_guid, Missing):
        pci = box.topology.functions.get(device.bdf) if isinstance(device.bdf, str) else None
        zeros = device.node_guid.gap is Gap.UNSUPPORTED and device.is_vf is False
        if not zeros or pci is None or pci.vendor != MELLANOX:
            return unjudged(device.node_guid)
        evidence = (Evidence(f"{where}/node_guid", device.node_guid.reason),)
        return judged(Fault.HCA_IDENTITY, "node GUID is all zeros", evidence=evidence, warns=True)
    number, usual = len(need(ports_of(box, device.name))), _usual_ports(box, device)
    fewer = usual is not None and number < usual
    evidence = (Evidence(f"{where}/ports", number),)
    message = counted(number, "port") + (f", {usual} on the other HCAs of its kind" if fewer else "")
    required = usual if number and not fewer else usual or 1
    return judged(Fault.HCA_IDENTITY, message, number, required, "ports", evidence, fails=fewer or not number)


def _usual_ports(box: Box, device: IbDevice) -> int | None:
    """The number of ports that most other HCAs in its role have; None with fewer than two of them."""
    own, others = role(box, device), [other for other in rows(hcas(box)) if other is not device]
    alike = [other for other in others if own is not None and role(box, other) == own]
    counts = [len(found) for other in alike if not isinstance(found := ports_of(box, other.name), Missing)]
    return majority(counts) if len(counts) > 1 else None


LANES = 4
"""Of a port; each half of a split cable has two, from HDR on."""
SPLIT = ("HDR", "NDR", "XDR")


def _port_rate(box: Box, device: IbDevice, port: IbPort, listed: Ports) -> Judgement:
    """Warns if an ACTIVE port runs below the profile's rate (first port of an InfiniBand card that shares a PCIe switch
    with a GPU where some do), otherwise below the ports in the same place of cards of its kind; on InfiniBand also if
    it runs on fewer than 4 lanes (from HDR on 2, a split cable), or stays at SDR, at which each link begins.

    Source: rate of /sys/class/infiniband/*/ports/*, the profile's network.rate
    """
    state = need(port.state)
    if state not in UP:
        return skip("dependency-failed", f"port is {state.name} and has no rate (network.port-state)")
    rate = need(port.rate)
    expected, reference = expected_rate(box, device, port, listed)
    ethernet = port.link_layer == "Ethernet"  # 10 and 25 Gbit/s need one lane only
    narrow = not ethernet and rate.lanes < LANES and not (rate.lanes == LANES // 2 and rate.speed in SPLIT)
    bad = rate.gbit_per_s < expected or narrow
    of_ib = port.link_layer == "InfiniBand" and not device.name.startswith(("mthca", "i40iw"))
    if of_ib and not bad and rate.gbit_per_s <= SDR:
        bad, expected, reference = True, 2 * SDR, " (the first step above SDR)"
    if narrow and rate.gbit_per_s >= expected:
        expected, reference = rate.gbit_per_s * LANES / rate.lanes, f" ({LANES} lanes)"
    lanes = f"{rate.speed}, {rate.lanes} of {LANES} lanes" if narrow else f"{rate.lanes}X {rate.speed}".rstrip()
    message = f"{rate.gbit_per_s:g} Gbit/s ({lanes}), expected {expected:g} Gbit/s{reference}"
    evidence = (Evidence(file_of(port, "rate"), sysfs_rate(rate)),)
    return judged(Fault.PORT_SLOW, message, rate.gbit_per_s, expected, "Gbit/s", evidence, warns=bad)


def expected_rate(box: Box, device: IbDevice, port: IbPort, listed: Ports) -> tuple[float, str]:
    """Gbit/s, and whose rate that is: the profile's for the first port of a card that is not for storage, whose network
    may be slower, else that of ports in its place; 0 if none of these is up.
    """
    number, place, apart = box.number("network.rate"), position_of(device, port), is_apart(box, device)
    if number is not None and is_first(device, port) and not apart:
        return number.value, " (reference machine)"
    alike = [each for other, each in listed if position_of(other, each) == place
             and each.link_layer == port.link_layer and is_apart(box, other) == apart]  # fmt: skip
    rates = [each.rate.gbit_per_s for each in alike if each.state in UP and isinstance(each.rate, IbRate)]
    return max(rates, default=0.0), " (ports of the same kind)"


def sysfs_rate(rate: IbRate) -> str:
    """As in the file ``rate``: ``100 Gb/sec (4X EDR)``."""
    return f"{rate.gbit_per_s:g} Gb/sec ({rate.lanes}X {rate.speed})".replace(" )", ")")


CHECKS = (
    Check("network.link-layer", per_port(_layer), part("link layer")),
    Check("network.hca-identity", _identity),
    Check("network.port-rate", per_port(_port_rate), shared=fabric),
)  # fmt: skip
