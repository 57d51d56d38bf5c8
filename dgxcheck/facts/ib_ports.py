"""Ports of InfiniBand and RoCE devices: state, rate, counters."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class PortState(IntEnum):
    """Logical state; INIT or ARMED on InfiniBand means that no subnet manager has been by."""

    NOP = 0
    DOWN = 1
    INIT = 2
    ARMED = 3
    ACTIVE = 4
    ACTIVE_DEFER = 5


class PhysState(IntEnum):
    """Physical state."""

    SLEEP = 1
    POLLING = 2
    DISABLED = 3
    TRAINING = 4
    LINK_UP = 5
    RECOVERY = 6
    PHY_TEST = 7


class IbRate(Record):
    """``100 Gb/sec (4X EDR)``; a port that is down often says 10 (4X SDR), which means nothing."""

    gbit_per_s: float
    lanes: int
    speed: str


class IbPort(Record):
    """One ``/sys/class/infiniband/<device>/ports/<port>``."""

    device: str
    port: int
    state: PortState | Missing
    phys_state: PhysState | Missing
    rate: IbRate | Missing
    link_layer: str | Missing
    """``InfiniBand`` or ``Ethernet``."""
    lid: int | Missing
    sm_lid: int | Missing
    counters: Mapping[str, int | Missing] | Missing
    """As the kernel prints them: ``port_xmit_data`` and ``port_rcv_data`` in units of four octets, never wrapping."""
    hw_counters: Mapping[str, int | Missing] | Missing
    """The driver's own."""


class IbDevicePorts(Record):
    """The ports of one ``/sys/class/infiniband/<device>``, by number."""

    device: str
    ports: tuple[IbPort, ...] | Missing
