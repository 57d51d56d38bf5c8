"""``dcgmi discovery -l``, ``topo`` and ``nvlink``: GPUs, how they are connected, and their NVLinks."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.facts.tool_outputs import LISTED_NVSWITCHES
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.readers.dcgm.cells import cells, is_rule
from dgxcheck.readers.formats import documents
from dgxcheck.readers.listing import whole_list
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import bare, bounded, gpu, numbered
from dgxcheck.readers.wording import any_of

_NAME = LazyPattern(r"Name: (\S.{0,80})")
_BUS = LazyPattern(r"PCI Bus ID: ([0-9A-Fa-f:.]{7,16})")
_DISCOVERY_COUNT = LazyPattern(r"(?P<number>\d{1,3}) (?:GPUs?|(?P<switches>NvSwitch(?:es)?)|ConnectX|CPUs?) found\.")
_DISCOVERY_HEAD = LazyPattern(
    r"\| ConnectX \||\| (?:GPU|Switch|CPU) ID \|(?: {0,4}Device Information {0,80}\|)?"
    r"|\| .{0,6} \| (?:Name: Grace|Cores: )[\w .,-]{1,200}\|"
)
"""And rows of CPUs."""


def read_discovery(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """NVML's list, where the numbers shown leave none out."""
    lines = bounded(lines)
    found: dict[int, str] = {}
    part = ToolPart("dcgmi discovery")
    for cell in cells(lines):
        index = gpu(cell.left)
        texts = [part.strip() for part in cell.parts]
        bdf = next((as_bdf(match[1]) for text in texts if (match := _BUS.fullmatch(text))), None)
        if index is None or bdf is None:
            continue
        found[index] = bdf
        if name := next((match[1] for text in texts if (match := _NAME.fullmatch(text))), None):
            part.found[f"nvml nvmlDeviceGetName {bdf}"] = name
        part.lines.update(cell.lines)
    part.found |= whole_list(found)
    for match in filter(None, (_DISCOVERY_COUNT.fullmatch(line.strip()) for line in lines)):
        for _ in range(int(match["number"]) if match["switches"] else 0):
            part.add(HOST, LISTED_NVSWITCHES.removeprefix("dcgmi-discovery-"), "note", None, "an NVSwitch is listed")
    part.beside = {
        n for n, line in enumerate(lines)
        if _DISCOVERY_COUNT.fullmatch(line.strip()) or _DISCOVERY_HEAD.fullmatch(line.strip())
        or (part.lines and is_rule(line))
    }  # fmt: skip
    return part.imported() if found else ()


_TOPO_HEAD = ascii_pattern(r"\| (?:GPU ID: (?P<gpu>\d{1,3})|[\w .-]{1,40}?) {0,40}\| Topology Information {0,80}\|?")
_ROW = ascii_pattern(r"\| (?:To GPU (?P<to>\d{1,3}))? {0,40}\| (?P<how>[A-Z].{3,80}?) {0,80}\|?")
"""Without a number it is of the GPU of the row above."""
_REST = LazyPattern(r"\| (?:CPU Core Affinity|NUMA Optimal|Worst Path) {0,40}\| .{0,80}")
_PCI = {
    "Connected via an on-board PCIe switch": "PIX", "Connected via a single PCIe switch": "PIX",
    "Connected via multiple PCIe switches": "PXB", "Connected via a PCIe host bridge": "PHB",
}  # fmt: skip
"""A CPU-level link is NODE or SYS."""
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NVLINK = LazyPattern(rf"Connected via (?P<number>{'|'.join(_NUMBERS)}) NVLINKs? {{0,2}}\(Links?: .{{0,60}}\)")


def read_topo(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``stated label-pci GPUn GPUm`` of the PCI paths that its words tell apart, ``stated label`` of NVLinks."""
    part = ToolPart("dcgmi topo")
    gpu = to = ""
    inside = False
    for number, line in numbered(lines):
        if head := _TOPO_HEAD.fullmatch(line):
            inside, gpu, to = True, f"GPU{int(head['gpu'])}" if head["gpu"] else "", ""
        elif inside and (row := _ROW.fullmatch(line)):
            to = f"GPU{int(row['to'])}" if row["to"] else to
            part.found |= _label(gpu, to, row["how"])
        elif not (inside and (_REST.fullmatch(line) or is_rule(line))):
            inside = inside and not line
            continue
        part.lines.add(number)
    part.beside = {number - 1 for number in part.lines if number and is_rule(lines[number - 1])}
    return part.imported()


def _label(gpu: str, to: str, how: str) -> dict[str, Json]:
    if not (gpu and to):
        return {}
    if nvlink := _NVLINK.fullmatch(how):
        return {f"stated label {gpu} {to}": f"NV{_NUMBERS.index(nvlink['number']) + 1}"}
    return {f"stated label-pci {gpu} {to}": _PCI[how]} if how in _PCI else {}


ERRORS = "dcgmi nvlink -e"
_OF_GPU = ascii_pattern(r"\| ?GPU (\d{1,3}) {0,80}\|?")
_LINK = ascii_pattern(r"\| ?Link (\d{1,2}) {0,80}\|.{0,80}")
_NVLINK_COUNT = ascii_pattern(
    r"\| ?-> (CRC FLIT|CRC Data|Replay|Recovery) Error {0,40}\| (\d{1,20}|N/A|Error|Not Supported) {0,80}\|?"
)
_COUNTERS = {"Replay": 0, "Recovery": 1, "CRC FLIT": 2}
"""``nvmlNvLinkErrorCounter_t``: DL_REPLAY, DL_RECOVERY, DL_CRC_FLIT."""
_OF_ALL_LINKS = LazyPattern(
    r"\| ?(?:Error Detail {1,80}\|.{0,80}"
    r"|-> (?P<name>[A-Z][A-Za-z ]{3,40}?) {0,40}\| (?P<value>\d{1,20}(?:\.\d{1,20})?(?:e-\d{1,3})?) {0,80}\|?)"
)
"""Of GPUs from Blackwell on, sums over their NVLinks (DCGM, dcgmi/Nvlink.cpp)."""
_MOST_BIT_ERRORS = 1e-12
"""Of a link that DCGM's health watch takes for sound."""
_GPU = ascii_pattern(r"gpuId (\d{1,3}):?")
_SWITCH = LazyPattern(r"(?:physicalId|switchId|nvSwitchId) \d{1,3}:?", flags=re.IGNORECASE | re.ASCII)
_STATES = ascii_pattern(r"[UDX_](?:\s{1,4}[UDX_]){0,71}")
_CHATTER = LazyPattern(any_of("dcgm/lines", "dcgmi nvlink -s"))
_FRAME = LazyPattern(r"\+-{4,80}\+")


def read_nvlink(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Both forms."""
    return (*_states(lines), *_errors(lines))


def _errors(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``stated nvlink-errors GPUn LINK COUNTER`` as of ``nvidia-smi nvlink -e``."""
    part = ToolPart(ERRORS)
    name = link = ""
    for number, line in numbered(lines):
        if line.startswith("| NVLINK Error Counts"):
            name = link = ""
            part.lines.add(number)
        elif not part.lines:
            continue
        elif match := _OF_GPU.fullmatch(line):
            name = f"GPU{int(match[1])}"
        elif match := _LINK.fullmatch(line):
            link = str(int(match[1]))
        elif match := _NVLINK_COUNT.fullmatch(line):
            if name and link and match[1] in _COUNTERS and match[2].isdigit():
                part.found[f"stated nvlink-errors {name} {link} {_COUNTERS[match[1]]}"] = int(match[2])
        elif name and (match := _OF_ALL_LINKS.fullmatch(line)):
            rate = float(match["value"]) if (match["name"] or "").endswith("BER") else None
            if rate is not None and rate > _MOST_BIT_ERRORS:
                text = f"{match['name']} of its NVLinks is {rate:g}, {_MOST_BIT_ERRORS:g} at most is sound"
                part.add(name, "bit-errors", "fail", Fault.NVLINK_ERRORS, text)
            elif rate is not None:
                part.add(name, "bit-errors", "pass")
        elif not is_rule(line):
            continue
        part.lines.add(number)
    part.beside = {number - 1 for number in part.lines if number and is_rule(lines[number - 1])}
    return part.imported() if part.found or part else ()


def _states(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``stated nvlink GPUn LINK`` as ``nvidia-smi nvlink -s`` says it; a GPU of which no link is supported has none."""
    part = ToolPart("dcgmi nvlink -s")
    name: str | None = None
    for number, raw in enumerate(bounded(lines)):
        line = bare(raw)
        if match := _GPU.fullmatch(line):
            index = gpu(match[1])
            name = None if index is None else f"GPU{index}"
        elif _SWITCH.fullmatch(line):
            name = ""
        elif name is not None and _STATES.fullmatch(line):
            part.found |= _links(name, line.split()) if name else {}
        else:
            part.beside |= {number} if _CHATTER.fullmatch(line) or _FRAME.fullmatch(raw.strip()) else set()
            continue
        part.lines.add(number)
    return part.imported() if part.found else ()


def _links(name: str, states: list[str]) -> dict[str, Json]:
    if set(states) == {"_"}:
        return {f"stated nvlink {name}": "none"}
    words = {"U": "up", "D": "<inactive>", "X": "<inactive>"}
    return {f"stated nvlink {name} {link}": words[state] for link, state in enumerate(states) if state in words}


def read_unused(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """JSON by its two members, whose facts are not used; the health as JSON is read by another reader."""
    part = ToolPart("dcgmi -j (not used)")
    for _, where in documents(bounded(lines), _is_other):
        part.lines.update(where)
    return part.imported()


def _is_other(found: Mapping[str, Json]) -> bool:
    body = found.get("body")
    return found.keys() == {"body", "header"} and isinstance(body, dict) and "Overall Health" not in body
