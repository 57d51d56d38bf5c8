"""PCI functions: wiring, slots, BARs, error counters, configuration space and IOMMU groups."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record


class PciFunction(Record):
    """One PCI function's wiring, from ``/sys/bus/pci/devices/<bdf>``."""

    bdf: str
    path: tuple[str, ...] | Missing
    """Root bus (``pci0000:00``), then every bridge's bdf, then the own bdf."""
    class_code: int | Missing
    vendor: int | Missing
    device: int | Missing
    subsystem_vendor: int | Missing
    subsystem_device: int | Missing
    link_gen: int | Missing
    link_width: int | Missing
    max_link_gen: int | Missing
    max_link_width: int | Missing
    numa_node: int | Missing
    """As the kernel gives it; -1 means that the firmware did not say."""
    local_cpulist: str | Missing
    driver: str | Missing | None
    """Name of the bound driver, None where none is bound."""


class Slot(Record):
    """One ``/sys/bus/pci/slots/<name>``."""

    name: str
    address: str | Missing
    """``0000:06:00``: domain, bus and device in the slot, without a function."""


ROM = 6
"""``Bar.line`` of the expansion ROM."""


class Bar(Record):
    """One line of ``/sys/bus/pci/devices/<bdf>/resource``."""

    line: int
    """0 to 5 as the kernel counts (a 64-bit one takes two), 6 the expansion ROM."""
    assigned: bool
    """False where the firmware and the kernel found no room for it."""
    start: int
    size: int | Missing
    is_io: bool
    is_64bit: bool
    is_prefetchable: bool


class PciBars(Record):
    """The BARs of a GPU, HCA or NVSwitch; lines that are all zeros are left out; () if nothing is assigned."""

    bdf: str
    bars: tuple[Bar, ...] | Missing
    bar1: Bar | Missing
    """The largest 64-bit prefetchable one: NVIDIA's BAR1 has line 1 before Hopper, line 2 since."""


class AerErrors(Record):
    """One ``aer_dev_*`` file."""

    counts: Mapping[str, int]
    """By the short name of newer kernels (``RxErr``, ``BadTLP``), whichever the kernel prints."""
    total: int | Missing
    """The ``TOTAL_ERR_*`` line; it may differ from the sum."""


class RootPortErrors(Record):
    """Messages that a root port received from below, ``aer_rootport_total_err_*``."""

    correctable: int | Missing
    nonfatal: int | Missing
    fatal: int | Missing


class AerDevice(Record):
    """A GPU, NVSwitch or HCA, or a bridge above one."""

    bdf: str
    correctable: AerErrors | Missing
    nonfatal: AerErrors | Missing
    fatal: AerErrors | Missing
    root_port: RootPortErrors | None
    """None for a device that is not a bridge on a root bus."""


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


class Control(Record):
    """What the control words of a PCI function enable: Command, and Device and Link Control of PCI Express.

    Names as in ``linux/pci_regs.h``; the fields of Control 2 are Missing on capabilities of version 1.
    """

    memory_space: bool
    """Does it answer to accesses of its BARs, or of those behind a bridge?"""
    bus_master: bool
    """May it, or what is behind a bridge, start transactions (DMA, MSI)?"""
    relaxed_ordering: bool | Missing
    extended_tag: bool | Missing
    no_snoop: bool | Missing
    aspm: int | Missing
    """0 off, 1 L0s, 2 L1, 3 both."""
    link_disabled: bool | Missing
    target_gen: int | Missing
    """Upper bound of the link's generation (Target Link Speed); the port above the link decides."""
    completion_timeout: int | Missing
    """Code of the range: 0 is the default, 50 us to 50 ms."""
    completion_timeout_disabled: bool | Missing
    ari_forwarding: bool | Missing
    atomics: bool | Missing
    """May it request AtomicOps?"""
    ten_bit_tag: bool | Missing


class ConfigSpace(Record):
    """A GPU, NVSwitch or HCA, or a bridge above one, from ``/sys/bus/pci/devices/<bdf>/config``."""

    bdf: str
    power_state: str | Missing
    express: Express | Missing
    acs: Acs | Missing | None
    """None for a function without the capability."""
    control: Control | Missing


class IommuGroup(Record):
    """One ``/sys/kernel/iommu_groups/<number>``."""

    number: int
    type: str | Missing
    """``DMA``, ``DMA-FQ``, ``identity``; the file is absent on older kernels."""


class IommuFunction(Record):
    """A GPU, NVSwitch or HCA, or a bridge above one."""

    bdf: str
    group: IommuGroup | Missing | None
    """None where the function has no ``iommu_group`` link: no IOMMU translates for it."""


class Iommu(Record):
    """The machine's IOMMUs."""

    units: tuple[str, ...] | Missing
    """Names in ``/sys/class/iommu``: ``dmar0``, ``ivhd0``; empty means that there is none in use."""
    functions: tuple[IommuFunction, ...] | Missing
