"""``dcgmi topo --gpuid N``: how one GPU is connected with each of the others."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.readers.dcgm.cells import is_rule
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bounded

TOOL = "dcgmi topo"
_HEAD = re.compile(r"\| (?:GPU ID: (?P<gpu>\d{1,3})|[\w .-]{1,40}?) {0,40}\| Topology Information {0,80}\|?", re.ASCII)
_ROW = re.compile(r"\| To GPU (?P<to>\d{1,3}) {0,40}\| (?P<how>[A-Z].{3,80}?) {0,80}\|?", re.ASCII)
_MORE = re.compile(r"\| {1,40}\| (?P<how>[A-Z].{3,80}?) {0,80}\|?", re.ASCII)
_REST = re.compile(r"\| (?:CPU Core Affinity|NUMA Optimal|Worst Path) {0,40}\| .{0,80}")
_PCI = {
    "Connected via an on-board PCIe switch": "PIX", "Connected via a single PCIe switch": "PIX",
    "Connected via multiple PCIe switches": "PXB", "Connected via a PCIe host bridge": "PHB",
}  # fmt: skip
"""A CPU-level link is NODE or SYS."""
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NVLINK = re.compile(rf"Connected via (?P<number>{'|'.join(_NUMBERS)}) NVLINKs? {{0,2}}\(Links?: .{{0,60}}\)")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``stated label-pci GPUn GPUm`` of the PCI paths that its words tell apart, ``stated label`` of NVLinks."""
    facts: dict[str, Json] = {}
    understood: set[int] = set()
    gpu = to = ""
    inside = False
    for number, raw in enumerate(bounded(lines)):
        line = raw.strip()
        if head := _HEAD.fullmatch(line):
            inside, gpu, to = True, f"GPU{int(head['gpu'])}" if head["gpu"] else "", ""
        elif inside and (row := _ROW.fullmatch(line)):
            to = f"GPU{int(row['to'])}"
            facts |= _label(gpu, to, row["how"])
        elif inside and (more := _MORE.fullmatch(line)):
            facts |= _label(gpu, to, more["how"])
        elif not (inside and (_REST.fullmatch(line) or is_rule(line))):
            inside = inside and not line
            continue
        understood.add(number)
    frame = {number - 1 for number in understood if number and is_rule(lines[number - 1])}
    return (Imported(tool=TOOL, facts=facts, understood=frozenset(understood | frame)),) if understood else ()


def _label(gpu: str, to: str, how: str) -> dict[str, Json]:
    if not (gpu and to):
        return {}
    if nvlink := _NVLINK.fullmatch(how):
        return {f"stated label {gpu} {to}": f"NV{_NUMBERS.index(nvlink['number']) + 1}"}
    return {f"stated label-pci {gpu} {to}": _PCI[how]} if how in _PCI else {}
