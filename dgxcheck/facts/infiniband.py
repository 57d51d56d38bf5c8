"""InfiniBand devices and their ports."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record

_UNASKED = Missing(Gap.UNASKED, "/sys/class/infiniband")


class IbDevice(Record):
    """One entry of ``/sys/class/infiniband``."""

    name: str
    bdf: str | Missing
    """PCI function behind the device; absent for software devices and hosts without PCI parents."""
    is_vf: bool | Missing
    """True for an SR-IOV virtual function (it has a ``physfn`` link)."""
    node_guid: str | Missing
    fw_ver: str | Missing
    hca_type: str | Missing
    board_id: str | Missing
    sys_image_guid: str | Missing = _UNASKED
    node_type: str | Missing = _UNASKED
    """``CA``, ``RNIC``, ..."""
    node_desc: str | Missing = _UNASKED


class PortState(IntEnum):
    """Logical state; INIT or ARMED on InfiniBand: no subnet manager has configured the port."""

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
