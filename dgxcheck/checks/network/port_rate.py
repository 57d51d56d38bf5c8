"""The rate of the HCAs' ports."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, skip
from dgxcheck.checks.network.per_port import per_port
from dgxcheck.checks.network.ports import UP, fabric, file_of, is_first, position_of
from dgxcheck.facts.infiniband import IbDevice, IbPort, IbRate
from dgxcheck.facts.missing import need

LANES = 4
"""Of a port; each half of a split cable has two, from HDR on."""
SPLIT = ("HDR", "NDR", "XDR")


def _port_rate(box: Box, device: IbDevice, port: IbPort, listed: list[tuple[IbDevice, IbPort]]) -> Judgement:
    state = need(port.state)
    if state not in UP:
        return skip("dependency-failed", f"port is {state.name} and has no rate (network.port-state)")
    rate = need(port.rate)
    expected, reference = _expected_rate(box, device, port, listed)
    ethernet = port.link_layer == "Ethernet"  # 10 and 25 Gbit/s need one lane only
    narrow = not ethernet and rate.lanes < LANES and not (rate.lanes == LANES // 2 and rate.speed in SPLIT)
    bad = rate.gbit_per_s < expected or narrow
    lanes = f"{rate.speed}, {rate.lanes} of {LANES} lanes" if narrow else f"{rate.lanes}X {rate.speed}".rstrip()
    message = f"{rate.gbit_per_s:g} Gbit/s ({lanes}), expected {expected:g} Gbit/s{reference}"
    evidence = (Evidence(file_of(port, "rate"), sysfs_rate(rate)),)
    status, fault = (Status.WARN, Fault.PORT_SLOW) if bad else (Status.PASS, None)
    return Judgement(status, message, rate.gbit_per_s, expected, "Gbit/s", evidence, fault=fault)


def _expected_rate(
    box: Box, device: IbDevice, port: IbPort, listed: list[tuple[IbDevice, IbPort]]
) -> tuple[float, str]:
    """Gbit/s, and whose rate that is: the profile's for the first port of a card, else that of ports in its place."""
    number = box.choice.number("network.rate") if box.choice else None
    if number is not None and is_first(device, port):
        return number.value, " (reference machine)"
    rates = [
        each.rate.gbit_per_s
        for other, each in listed
        if position_of(other, each) == position_of(device, port)
        and each.link_layer == port.link_layer
        and each.state in UP
        and isinstance(each.rate, IbRate)
    ]
    return max(rates), " (ports of the same kind)"


def sysfs_rate(rate: IbRate) -> str:
    """As in the file ``rate``: ``100 Gb/sec (4X EDR)``."""
    return f"{rate.gbit_per_s:g} Gb/sec ({rate.lanes}X {rate.speed})".replace(" )", ")")


CHECKS = (
    Check(
        id="network.port-rate",
        rule="Warns if an ACTIVE port runs below the profile's rate (first port of an InfiniBand card), otherwise below"
        " the ports in the same place of cards of its kind; on InfiniBand also if it runs on fewer than 4 lanes (from"
        " HDR on 2, a split cable).",
        source="rate of /sys/class/infiniband/*/ports/*, the profile's network.rate",
        remedy="clean, reseat or replace the cable; check the speed that the switch port is set to",
        judge=per_port(_port_rate),
        shared=fabric,
    ),
)
