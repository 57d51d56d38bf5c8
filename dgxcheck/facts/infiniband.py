"""InfiniBand devices and their ports."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from typing import Any

from dgxcheck.facts import nature
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record
from dgxcheck.package_files import table

_UNASKED = Missing(Gap.UNASKED, "/sys/class/infiniband")


class IbDevice(Record, where="/sys/class/infiniband/{name}"):
    """One entry of ``/sys/class/infiniband``."""

    name: str = nature.key()
    bdf: str | Missing = nature.place("PCI function", any="subfunctions of an adapter share it")
    """PCI function behind the device; absent for software devices and hosts without PCI parents."""
    is_vf: bool | Missing = nature.place("virtual function", any="a site makes as many as it needs")
    """True for an SR-IOV virtual function (it has a ``physfn`` link)."""
    node_guid: str | Missing = nature.identity("node GUID", flashed=True)
    fw_ver: str | Missing = nature.version("HCA firmware", among="image")
    hca_type: str | Missing = nature.inventory("HCA type")
    board_id: str | Missing = nature.inventory("PSID")
    sys_image_guid: str | Missing = nature.identity(
        "system image GUID", card=True, shared="adapters without one of their own", flashed=True, default=_UNASKED
    )
    node_type: str | Missing = nature.setting("node type", kept=True, default=_UNASKED)
    """``CA``, ``RNIC``, ..."""
    node_desc: str | Missing = nature.setting(
        "node description", differs="each adapter has its own name in it", default=_UNASKED
    )


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


PHYS_STATES = {
    PhysState.SLEEP: "Sleep", PhysState.POLLING: "Polling", PhysState.DISABLED: "Disabled",
    PhysState.TRAINING: "PortConfigurationTraining", PhysState.LINK_UP: "LinkUp",
    PhysState.RECOVERY: "LinkErrorRecovery", PhysState.PHY_TEST: "Phy Test",
}  # fmt: skip
"""In the kernel's words (``phys_state_to_str``, Linux drivers/infiniband/core/sysfs.c)."""


LANE_GBIT = {
    "SDR": 2.5, "DDR": 5.0, "QDR": 10.0, "FDR10": 10.0, "FDR": 14.0, "EDR": 25.0, "HDR": 50.0, "NDR": 100.0,
    "XDR": 200.0,
}  # fmt: skip
"""Gbit/s of a lane as the kernel reckons them: linux/drivers/infiniband/core/sysfs.c, rate_show."""
CAGE_PORTS = {"NDR": 2}
"""Ports of one cage of a switch whose links have this speed and are not split: an OSFP cage holds two InfiniBand
ports, numbered one after the other (https://docs.nvidia.com/networking/display/QM97X0PUB/Interfaces)."""
SDR = 10
"""Gbit/s of four lanes at the rate at which each link of InfiniBand begins; the first HCAs (mthca) have no other, and
iWARP of old kernels (i40iw) is shown as InfiniBand of that rate."""


class IbRate(Record):
    """``100 Gb/sec (4X EDR)``; a port that is down often says 10 (4X SDR), which means nothing."""

    gbit_per_s: float = nature.state("port rate", "Gbit/s", better="more")
    lanes: int = nature.state("rate lanes")
    speed: str = nature.state("rate speed", differs="the name of what gbit_per_s and lanes say")


RECEIVER = "receiver"
DOWNED = "link_downed"


def _counter(row: Mapping[str, str]) -> Any:
    given: dict[str, Any] = {
        name: int(cell) if cell.isdecimal() else cell for name, cell in row.items() if cell and name != "counter"
    }
    return nature.counter(**given)


@cache
def counters() -> Mapping[str, Any]:
    """``counters`` and ``hw_counters`` of a port, by name: what it blames, how much growth is allowed, and where the
    specification's width ends (``ceiling``)."""
    return {row["counter"]: _counter(row) for row in table("facts/infiniband_counters.tsv")}


@cache
def blaming(*whom: str) -> tuple[str, ...]:
    """The counters that blame one of them; ``cable``: of this end of it, ``link_downed`` first. Those of congestion, of
    the far end and port_xmit_wait are no fault of it."""
    named = (name for name, row in counters().items() if row[2].get("blames") in whom)
    return tuple(sorted(named, key=lambda name: name != DOWNED))


_UNKNOWN = nature.counter(limit="network.transport", blames="path")
_HARMLESS = nature.counter(any="traffic, by its name")
_OF_TRAFFIC = ("bytes", "octets", "data", "packets", "pkts", "frames", "requests", "reqs", "msgs", "wrs", "qps", "sent")
"""How names of counters that other drivers have end where they count what was done."""


@cache
def counter_row(name: str) -> nature.Fact:
    """The row of a port's counter; one that nobody has declared harmless is judged."""
    if (fact := nature.by_name(counters(), name)) is not None:
        return fact
    row: Any = _HARMLESS if name.rpartition("_")[2] in _OF_TRAFFIC else _UNKNOWN
    return nature.Fact(IbPort, name, row)


class IbPort(Record, where="/sys/class/infiniband/{device}/ports/{port}"):
    """One ``/sys/class/infiniband/<device>/ports/<port>``."""

    device: str = nature.key()
    port: int = nature.key()
    state: PortState | Missing = nature.state(
        "port state", better="more", words=tuple(each.name for each in PortState),
        differs="network.port-state judges it by link layer, use and configuration",
    )  # fmt: skip
    phys_state: PhysState | Missing = nature.state(
        "physical port state", words=("", *(each.name for each in PhysState)),
        differs="network.port-state judges it by link layer, use and configuration",
    )  # fmt: skip
    rate: IbRate | Missing = nature.holder()
    link_layer: str | Missing = nature.setting(differs="network.link-layer judges it by model, use and configuration")
    """``InfiniBand`` or ``Ethernet``."""
    lid: int | Missing = nature.identity("LID", any="ports of several subnets may have the same")
    sm_lid: int | Missing = nature.place("LID of the subnet manager", any="rails may be subnets of their own")
    counters: Mapping[str, int | Missing] | Missing = nature.counter(names=counter_row)
    """As the kernel prints them: ``port_xmit_data`` and ``port_rcv_data`` in units of four octets, never wrapping."""
    hw_counters: Mapping[str, int | Missing] | Missing = nature.counter(names=counter_row)
    """The driver's own."""


class IbDevicePorts(Record):
    """The ports of one ``/sys/class/infiniband/<device>``, by number."""

    device: str = nature.key()
    ports: tuple[IbPort, ...] | Missing = nature.holder()
