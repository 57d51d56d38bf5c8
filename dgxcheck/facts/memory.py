"""The memory of a host: NUMA nodes, memory controllers and modules."""

from __future__ import annotations

from dgxcheck.facts import nature
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import SMBIOS


class NumaNode(Record, where="/sys/devices/system/node/node{node}"):
    """One ``/sys/devices/system/node/nodeN``."""

    node: int = nature.key()
    cpulist: str | Missing = nature.place("CPUs of the node", kept=True)


class NumaMemory(Record, where="/sys/devices/system/node/node{node}"):
    """The memory of one node."""

    node: int = nature.key()
    memory_kb: int | Missing = nature.inventory(
        "memory", "kB", tolerance="consistency.memory", slack=5 << 19, file="meminfo"
    )
    """``MemTotal`` of the node's ``meminfo``."""
    distances: tuple[int, ...] | Missing = nature.capability("NUMA distances", any_order=True, file="distance")
    """To each online node in ascending order; 10 is the node itself."""


class MemoryController(Record, where="/sys/devices/system/edac/mc/{name}"):
    """One ``/sys/devices/system/edac/mc/mcN``; counts since the driver was loaded."""

    name: str = nature.key()
    mc_name: str | Missing = nature.identity(
        "name of the memory controller", shared="drivers that do not number sockets"
    )
    corrected: int | Missing = nature.counter(
        "corrected memory errors", limit="host.edac-corrected", per="day", file="ce_count"
    )
    uncorrected: int | Missing = nature.counter("uncorrected memory errors", limit=0, file="ue_count")
    size_mb: int | Missing = nature.inventory("memory", "MiB")


class Dimm(Record, where=SMBIOS):
    """A memory slot with something in it, as firmware lists it in SMBIOS, for root only."""

    slot: str = nature.key()
    """Printed on the board, ``P1-DIMMA2``; with the bank before it where several slots have one name."""
    bank: str | Missing = nature.place("memory bank")
    size_mib: int | Missing = nature.inventory("memory", "MiB", better="more")
    maker: str | Missing = nature.inventory("maker of the memory")
    model: str | Missing = nature.inventory("part number of the memory")
    serial: str | Missing = nature.identity("serial number", any="not every maker numbers its memory")
