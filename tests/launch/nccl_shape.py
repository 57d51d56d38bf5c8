"""The structure of an NCCL topology file, whatever its ids: ``switch(gpu[1122] gpu[1122] nic)`` for each CPU."""

from __future__ import annotations

from xml.etree.ElementTree import Element

_KINDS = (("0x0604", "switch"), ("0x03", "gpu"), ("0x02", "nic"))


def shape(system: Element) -> list[str]:
    """A line per CPU, by number; NVLinks of a GPU by target, ``*`` behind those to NVSwitches."""
    cpus = sorted(system.findall("cpu"), key=lambda cpu: int(cpu.get("numaid", "")))
    return [_below(cpu) for cpu in cpus]


def _below(parent: Element) -> str:
    """Children alike in a row are one, with their number."""
    found = sorted(map(_device, parent.findall("pci")))
    return " ".join(f"{found.count(each)}x {each}" for each in dict.fromkeys(found))


def _device(pci: Element) -> str:
    kind = next((kind for start, kind in _KINDS if pci.get("class", "").startswith(start)), "other")
    if kind == "switch":
        return f"switch({_below(pci)})"
    links = sorted(link.get("count", "") + "*" * (link.get("tclass") == "0x068000") for link in pci.iter("nvlink"))
    return f"{kind}[{' '.join(links)}]" if links else kind
