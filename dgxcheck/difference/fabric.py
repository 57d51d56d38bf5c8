"""HCAs and their ports, and network interfaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dgxcheck.difference.matching import Matched
from dgxcheck.difference.model import Difference, Side
from dgxcheck.difference.numbers import ComparedQuantity, compared
from dgxcheck.facts.infiniband import IbDevice, IbPort, PortState
from dgxcheck.facts.missing import Missing

FIRMWARE = ComparedQuantity("firmware", "hca-firmware", lambda row: row.fw_ver)
INTERFACE = (
    ComparedQuantity("network", "carrier", lambda row: row.carrier, "more"),
    ComparedQuantity("network", "speed", lambda row: row.speed_mbit, "more", "Mbit/s"),
)

STATES = {state.value: state.name for state in PortState}
_INFINIBAND = 32
"""``ARPHRD_INFINIBAND``: IP over InfiniBand, compared as a port."""


def _rate(port: IbPort) -> Any:
    """Gbit/s of a port that is up; the ``rate`` file of a port that is down is meaningless."""
    up = port.state == PortState.ACTIVE
    return port.rate.gbit_per_s if up and not isinstance(port.rate, Missing) else None


PORT = (
    ComparedQuantity("network", "port-state", lambda port: _ordered(port.state), "more", words=STATES),
    ComparedQuantity("network", "port-rate", _rate, "more", "Gbit/s"),
    ComparedQuantity("network", "link-layer", lambda port: port.link_layer),
)


def _ordered(state: Any) -> Any:
    return state if isinstance(state, Missing) else int(state)


def differences(old: Side, new: Side, devices: Matched) -> Iterator[Difference]:
    old_hcas, new_hcas = _hcas(old), _hcas(new)
    for pair in devices.nics:
        if pair.old is None or pair.new is None:
            continue
        before, after = old_hcas.get(pair.old.name), new_hcas.get(pair.new.name)
        yield from compared(before, after, FIRMWARE, pair.new.name, pair.new.bdf)
        old_ports = ports(old, pair.old.name)
        for number, port in ports(new, pair.new.name).items():
            for quantity in PORT:
                yield from compared(old_ports.get(number), port, quantity, f"{pair.new.name}/{number}", pair.new.bdf)
    yield from _interfaces(old, new)


def ports(side: Side, name: str) -> Mapping[int, IbPort]:
    """The ports of an HCA by number."""
    rows = side.snapshot.ib_ports
    if isinstance(rows, Missing):
        return {}
    return {port.port: port for row in rows if row.device == name and not isinstance(row.ports, Missing)
            for port in row.ports}  # fmt: skip


def _hcas(side: Side) -> dict[str, IbDevice]:
    rows = side.snapshot.infiniband
    return {} if isinstance(rows, Missing) else {row.name: row for row in rows}


def _interfaces(old: Side, new: Side) -> Iterator[Difference]:
    """Network interfaces of PCI functions."""
    before, after = (
        {} if isinstance(rows, Missing) else
        {row.name: row for row in rows if isinstance(row.bdf, str) and row.type != _INFINIBAND}
        for rows in (side.snapshot.network for side in (old, new))
    )  # fmt: skip
    for name, row in after.items():
        for quantity in INTERFACE:
            yield from compared(before.get(name), row, quantity, name, row.bdf if isinstance(row.bdf, str) else None)
