"""PCI functions: wiring, slots, BARs, error counters, configuration space and IOMMU groups."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from typing import Any

from dgxcheck.facts import nature
from dgxcheck.facts.ids import DATA_DIRECT, MELLANOX
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.package_files import table


class PciFunction(Record, where="/sys/bus/pci/devices/{bdf}"):
    """One PCI function's wiring, from ``/sys/bus/pci/devices/<bdf>``."""

    bdf: str = nature.key()
    path: tuple[str, ...] | Missing = nature.place("path from the root bus", unique=True, kept=True)
    """Root bus (``pci0000:00``), then every bridge's bdf, then the own bdf."""
    class_code: int | Missing = nature.inventory(
        "class code", "hex", file="class", differs_in=dict.fromkeys(("hca", "function"), "follows the link layer")
    )
    vendor: int | Missing = nature.inventory("vendor", "hex")
    device: int | Missing = nature.inventory(
        "device", "hex", differs_in={"bridge": "each root port of a host bridge has an id of its own"}
    )
    subsystem_vendor: int | Missing = nature.inventory("subsystem vendor", "hex")
    subsystem_device: int | Missing = nature.inventory("subsystem device", "hex")
    link_gen: int | Missing = nature.state(
        "link gen", among="place", most="max_link_gen", file="current_link_speed", by="pcie.path",
        differs_in=dict.fromkeys(("gpu", "bridge"), "the link to an idle GPU slows down: pcie.generation"),
    )  # fmt: skip
    link_width: int | Missing = nature.state(
        "link width", among="place", most="max_link_width", file="current_link_width", kept=True
    )
    max_link_gen: int | Missing = nature.capability("max link gen", among="model", file="max_link_speed")
    max_link_width: int | Missing = nature.capability("max link width")
    numa_node: int | Missing = nature.place("NUMA node", kept=True)
    """As the kernel gives it; -1 means that the firmware did not say."""
    local_cpulist: str | Missing = nature.place("local CPUs")
    driver: str | Missing | None = nature.setting(
        "kernel driver", better="more",
        differs="a guest may have the function; without its driver a GPU or HCA is not listed",
    )  # fmt: skip
    """Name of the bound driver, None where none is bound."""

    @property
    def subclass(self) -> int:
        """Base class and subclass, ``0x0302`` of a 3D controller; -1 where they are not known."""
        return -1 if isinstance(self.class_code, Missing) else self.class_code >> 8

    @property
    def is_data_direct(self) -> bool:
        """Is it the DMA function of an HCA?"""
        return self.vendor == MELLANOX and self.device == DATA_DIRECT

    @property
    def ids(self) -> str:
        """``10de:1db1``, vendor and device, as pci.ids has them; empty where one of the two is not known."""
        if isinstance(self.vendor, Missing) or isinstance(self.device, Missing):
            return ""
        return f"{self.vendor:04x}:{self.device:04x}"


class Slot(Record):
    """One ``/sys/bus/pci/slots/<name>``."""

    name: str = nature.key()
    address: str | Missing = nature.identity("slot address")
    """``0000:06:00``: domain, bus and device in the slot, without a function."""


FEW_LANES = 4
"""A GPU with no more than this part of its lanes is not in a slot that was made for it, or not well."""
ROM = 6
"""``Bar.line`` of the expansion ROM."""


class Vpd(Record, where="/sys/bus/pci/devices/{bdf}/vpd"):
    """Vital product data of an adapter's function."""

    bdf: str = nature.key()
    uuid: str | Missing = nature.place("adapter UUID", any="all functions of one adapter share it")
    """Keyword ``V3``."""
    manages_nvswitches: bool | Missing = nature.place("leads to NVSwitches", any="follows from where the adapter sits")
    """``SMDL=SW_MNG``: through it the NVLink Subnet Manager reaches NVSwitches that are not on PCI."""


class Bar(Record):
    """One line of ``/sys/bus/pci/devices/<bdf>/resource``."""

    line: int = nature.key()
    """0 to 5 as the kernel counts (a 64-bit one takes two), 6 the expansion ROM."""
    assigned: bool = nature.state("BAR assigned")
    """False where the firmware and the kernel found no room for it."""
    start: int = nature.place("BAR start", "hex", unique=True, card=True)
    size: int | Missing = nature.setting("BAR size", "bytes")
    is_io: bool = nature.capability("BAR of I/O space")
    is_64bit: bool = nature.capability("64-bit BAR")
    is_prefetchable: bool = nature.capability("prefetchable BAR")


class PciBars(Record, where="/sys/bus/pci/devices/{bdf}/resource"):
    """The BARs of a GPU, HCA or NVSwitch; lines that are all zeros are left out; () if nothing is assigned."""

    bdf: str = nature.key()
    bars: tuple[Bar, ...] | Missing = nature.holder("BARs")
    bar1: Bar | Missing = nature.holder("BAR1")
    """The largest 64-bit prefetchable one: NVIDIA's BAR1 has line 1 before Hopper, line 2 since."""


BY_NAME: Mapping[str, Any] = {
    "UnsupReq": nature.counter(any="probing at boot leaves some; their growth is judged with the others", grown=True),
    "SDES": nature.counter(any="a reset takes the link down", grown=True),
}
"""Counters of ``aer_dev_*`` of which a total says nothing; of all others one is too many."""


@cache
def counter_row(name: str) -> nature.Fact:
    """The row of a counter of ``aer_dev_*``."""
    return nature.by_name(BY_NAME, name) or nature.Fact(AerErrors, name, nature.counter(limit=0))


@cache
def aer_names() -> dict[str, str]:
    """The short names of PCI Express errors by those that kernels before 5.7 print."""
    return {row["name"]: row["short"] for row in table("facts/aer.tsv")}


class AerErrors(Record, many=True):
    """One ``aer_dev_*`` file."""

    counts: Mapping[str, int] = nature.counter("PCIe errors by name", most="total", names=counter_row)
    """By the short name of newer kernels (``RxErr``, ``BadTLP``), whichever the kernel prints."""
    total: int | Missing = nature.counter("PCIe errors")
    """The ``TOTAL_ERR_*`` line; it may differ from the sum."""


class RootPortErrors(Record):
    """Messages that a root port received from below, ``aer_rootport_total_err_*``."""

    correctable: int | Missing = nature.counter(
        "corrected errors from below", limit="kernel.corrected-pcie", per="day", file="aer_rootport_total_err_cor"
    )
    nonfatal: int | Missing = nature.counter(
        "nonfatal errors from below", limit=0, file="aer_rootport_total_err_nonfatal"
    )
    fatal: int | Missing = nature.counter("fatal errors from below", limit=0, file="aer_rootport_total_err_fatal")


class AerDevice(Record, where="/sys/bus/pci/devices/{bdf}"):
    """A GPU, NVSwitch or HCA, or a bridge above one."""

    bdf: str = nature.key()
    correctable: AerErrors | Missing = nature.counter(
        "corrected PCIe errors", prefix="corrected", limit="kernel.corrected-pcie", per="day",
        file="aer_dev_correctable",
    )  # fmt: skip
    nonfatal: AerErrors | Missing = nature.counter(
        "nonfatal PCIe errors", prefix="nonfatal", limit=0, file="aer_dev_nonfatal")
    fatal: AerErrors | Missing = nature.counter("fatal PCIe errors", prefix="fatal", limit=0, file="aer_dev_fatal")
    root_port: RootPortErrors | None = nature.holder()
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

    port_type: PortType | Missing = nature.capability("port type")
    max_payload_supported: int | Missing = nature.capability("largest MaxPayload", "bytes")
    max_payload: int | Missing = nature.setting("MaxPayload", "bytes", among="place", kept=True)
    max_read_request: int | Missing = nature.setting("MaxReadReq", "bytes", kept=True)


class Acs(Record):
    """Access Control Services: the capability and control words.

    Bits: 0x01 source validation, 0x02 translation blocking, 0x04 request redirect, 0x08 completion redirect,
    0x10 upstream forwarding, 0x20 egress control, 0x40 direct translated P2P.
    """

    capability: int = nature.capability("ACS capability", "hex")
    control: int = nature.setting("ACS control", "hex", kept=True)


class Control(Record):
    """What the control words of a PCI function enable: Command, and Device and Link Control of PCI Express.

    Names as in ``linux/pci_regs.h``; the fields of Control 2 are Missing on capabilities of version 1.
    """

    memory_space: bool = nature.setting("memory space")
    """Does it answer to accesses of its BARs, or of those behind a bridge?"""
    bus_master: bool = nature.setting("bus mastering")
    """May it, or what is behind a bridge, start transactions (DMA, MSI)?"""
    relaxed_ordering: bool | Missing = nature.setting("relaxed ordering", kept=True)
    extended_tag: bool | Missing = nature.setting("extended tags", among="place", kept=True)
    no_snoop: bool | Missing = nature.setting("no snoop", kept=True)
    aspm: int | Missing = nature.setting("ASPM", among="place", words=("off", "L0s", "L1", "L0s and L1"), kept=True)
    """0 off, 1 L0s, 2 L1, 3 both."""
    link_disabled: bool | Missing = nature.setting("link disable", kept=True)
    target_gen: int | Missing = nature.setting("target link generation", among="place", kept=True)
    """Upper bound of the link's generation (Target Link Speed); the port above the link decides."""
    completion_timeout: int | Missing = nature.setting("completion timeout range", kept=True)
    """Code of the range: 0 is the default, 50 us to 50 ms."""
    completion_timeout_disabled: bool | Missing = nature.setting("completion timeout disable", kept=True)
    ari_forwarding: bool | Missing = nature.setting("ARI forwarding", kept=True)
    atomics: bool | Missing = nature.setting("AtomicOps", kept=True)
    """May it request AtomicOps?"""
    ten_bit_tag: bool | Missing = nature.setting("10-bit tags", among="place", kept=True)


class ConfigSpace(Record, where="/sys/bus/pci/devices/{bdf}/config"):
    """A GPU, NVSwitch or HCA, or a bridge above one, from ``/sys/bus/pci/devices/<bdf>/config``."""

    bdf: str = nature.key()
    power_state: str | Missing = nature.load("power state")
    express: Express | Missing = nature.holder("PCI Express capability")
    acs: Acs | Missing | None = nature.holder("ACS capability")
    """None for a function without the capability."""
    ats: bool | Missing = nature.capability("ATS capability")
    """Can it ask the IOMMU for translations and send translated addresses?"""
    control: Control | Missing = nature.holder("control words")


class IommuGroup(Record):
    """One ``/sys/kernel/iommu_groups/<number>``."""

    number: int = nature.place("IOMMU group", any="groups follow ACS, which gdr.acs judges")
    type: str | Missing = nature.setting("IOMMU mode", kept=True)
    """``DMA``, ``DMA-FQ``, ``identity``; the file is absent on older kernels."""


class IommuFunction(Record, where="/sys/bus/pci/devices/{bdf}/iommu_group"):
    """A GPU, NVSwitch or HCA, or a bridge above one."""

    bdf: str = nature.key()
    group: IommuGroup | Missing | None = nature.holder("IOMMU group")
    """None where the function has no ``iommu_group`` link: no IOMMU translates for it."""


class Iommu(Record):
    """The machine's IOMMUs."""

    units: tuple[str, ...] | Missing = nature.inventory("IOMMUs")
    """Names in ``/sys/class/iommu``: ``dmar0``, ``ivhd0``; empty means that there is none in use."""
    functions: tuple[IommuFunction, ...] | Missing = nature.holder()
