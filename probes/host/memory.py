"""NUMA nodes, their memory, its controllers and modules."""

from __future__ import annotations

from collections import Counter

from dgxcheck.facts import firmware
from dgxcheck.facts.memory import Dimm, MemoryController, NumaMemory, NumaNode
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.sysfs import EDAC, NODES, SMBIOS
from dgxcheck.source.protocol import Source
from probes.ask import cpulist, decimal, files, garbled, is_decimal, line, mapped, numbered


def numa(source: Source) -> tuple[NumaNode, ...] | Missing:
    """``/sys/devices/system/node``, by number."""
    return mapped(
        node_numbers(source), lambda n: NumaNode(node=n, **files(source, NumaNode, f"{NODES}/node{n}", cpulist=cpulist))
    )


def node_numbers(source: Source) -> tuple[int, ...] | Missing:
    """The nodes there are, ascending."""
    return numbered(source, NODES, "node")


def numa_memory(source: Source) -> tuple[NumaMemory, ...] | Missing:
    """``meminfo`` and ``distance`` of every ``/sys/devices/system/node/nodeN``, by number."""
    return mapped(node_numbers(source), lambda node: _node(source, node))


def distances(text: str, where: str) -> tuple[int, ...] | Missing:
    """``10 21``, from the ACPI SLIT table."""
    fields = text.split()
    return tuple(map(int, fields)) if fields and all(map(is_decimal, fields)) else garbled(text, where)


def _node(source: Source, node: int) -> NumaMemory:
    facts = files(source, NumaMemory, f"{NODES}/node{node}", memory_kb=mem_total_kb, distances=distances)
    return NumaMemory(node=node, **facts)


def edac(source: Source) -> tuple[MemoryController, ...] | Missing:
    """``/sys/devices/system/edac/mc``, by number."""
    return mapped(numbered(source, EDAC, "mc"), lambda number: _memory_controller(source, f"mc{number}"))


def _memory_controller(source: Source, name: str) -> MemoryController:
    facts = files(source, MemoryController, f"{EDAC}/{name}", mc_name=line, corrected=decimal, uncorrected=decimal,
                  size_mb=decimal)  # fmt: skip
    return MemoryController(name=name, **facts)


def dimms(source: Source) -> tuple[Dimm, ...] | Missing:
    """The filled slots of the SMBIOS table, in its order."""
    if isinstance(table := source.data(SMBIOS), Missing):
        return table
    filled = [device for device in firmware.memory_devices(table) if firmware.size_mib(device[0]) != 0]
    names = [firmware.string(*each, firmware.LOCATOR) for each in filled]
    counts = Counter(names)
    return tuple(
        _dimm(each, name if counts[name] == 1 else f"{firmware.string(*each, firmware.BANK)} {name}".strip())
        for each, name in zip(filled, names, strict=True)
    )


def _dimm(device: tuple[bytes, tuple[bytes, ...]], slot: str) -> Dimm:
    size, serial = firmware.size_mib(device[0]), firmware.string(*device, firmware.SERIAL)
    return Dimm(
        slot=slot,
        bank=_string(device, firmware.BANK),
        size_mib=Missing(Gap.UNSUPPORTED, SMBIOS, "size not known") if size is None else size,
        maker=_string(device, firmware.MAKER),
        model=_string(device, firmware.PART_NUMBER),
        serial=serial if firmware.is_number(serial) else Missing(Gap.UNSUPPORTED, SMBIOS, f"serial number {serial!r}"),
    )


def _string(device: tuple[bytes, tuple[bytes, ...]], at: int) -> str | Missing:
    return firmware.string(*device, at) or Missing(Gap.ABSENT, SMBIOS, "empty")


def mem_total_kb(text: str, where: str) -> int | Missing:
    """``MemTotal:  528278540 kB``; a node's file puts ``Node 0`` before it."""
    for row in text.splitlines():
        name, found, value = row.partition("MemTotal:")
        if found and (not name or name.startswith("Node ")):
            number, _, unit = value.strip().partition(" ")
            return int(number) if is_decimal(number) and unit == "kB" else garbled(row, where)
    return Missing(Gap.GARBLED, where, "no MemTotal line")
