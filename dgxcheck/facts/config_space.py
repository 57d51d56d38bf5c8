"""What PCI configuration space says: payload sizes, read requests, Access Control Services."""

from __future__ import annotations

from enum import IntEnum

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class PortType(IntEnum):
    """Device/Port Type of the PCI Express Capabilities register."""

    ENDPOINT = 0
    LEGACY_ENDPOINT = 1
    ROOT_PORT = 4
    UPSTREAM_PORT = 5
    DOWNSTREAM_PORT = 6
    PCIE_TO_PCI_BRIDGE = 7
    PCI_TO_PCIE_BRIDGE = 8
    ROOT_COMPLEX_ENDPOINT = 9
    ROOT_COMPLEX_EVENT_COLLECTOR = 10


class Express(Record):
    """The PCI Express capability; sizes in bytes."""

    port_type: PortType | Missing
    max_payload_supported: int | Missing
    max_payload: int | Missing
    max_read_request: int | Missing


class Acs(Record):
    """Access Control Services: the capability and control words.

    Bits: 0x01 source validation, 0x02 translation blocking, 0x04 request redirect, 0x08 completion redirect,
    0x10 upstream forwarding, 0x20 egress control, 0x40 direct translated P2P.
    """

    capability: int
    control: int


class ConfigSpace(Record):
    """A GPU, NVSwitch or HCA, or a bridge above one, from ``/sys/bus/pci/devices/<bdf>/config``."""

    bdf: str
    power_state: str | Missing
    express: Express | Missing
    acs: Acs | Missing | None
    """None for a function without the capability."""
