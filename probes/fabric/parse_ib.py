"""The texts of ``/sys/class/infiniband`` (drivers/infiniband/core/sysfs.c)."""

from __future__ import annotations

import re

from dgxcheck.facts.infiniband import IbRate, PhysState, PortState
from dgxcheck.facts.missing import Gap, Missing
from probes.parse_scalar import garbled, is_decimal

_RATE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?) Gb/sec \(([0-9]{1,3})X(?: ([A-Z0-9]{1,8}))?\)")
_STATES = {state: state.name for state in PortState}
_PHYS_STATES = {
    PhysState.SLEEP: "Sleep",
    PhysState.POLLING: "Polling",
    PhysState.DISABLED: "Disabled",
    PhysState.TRAINING: "PortConfigurationTraining",
    PhysState.LINK_UP: "LinkUp",
    PhysState.RECOVERY: "LinkErrorRecovery",
    PhysState.PHY_TEST: "Phy Test",
}


def port_state(text: str, where: str) -> PortState | Missing:
    """``4: ACTIVE``; a number and a name that disagree are garbled."""
    body = text.strip()
    for state, name in _STATES.items():
        if body == f"{state.value}: {name}":
            return state
    return garbled(text, where)


def phys_state(text: str, where: str) -> PhysState | Missing:
    """``5: LinkUp``."""
    body = text.strip()
    for state, name in _PHYS_STATES.items():
        if body == f"{state.value}: {name}":
            return state
    return garbled(text, where)


def rate(text: str, where: str) -> IbRate | Missing:
    """``100 Gb/sec (4X EDR)``; older kernels leave the name of SDR out."""
    match = _RATE.fullmatch(text.strip())
    if match is None:
        return garbled(text, where)
    gbit, lanes, speed = match.groups()
    return IbRate(gbit_per_s=float(gbit), lanes=int(lanes), speed=speed or "SDR")


def counter(text: str, where: str) -> int | Missing:
    """A decimal counter; older kernels print ``N/A (no PMA)`` where the port has no performance agent."""
    body = text.strip()
    if is_decimal(body):
        return int(body)
    return Missing(Gap.UNSUPPORTED, where, body) if body == "N/A (no PMA)" else garbled(text, where)
