"""``nvidia-smi nvlink``, ``c2c``, ``pci`` and ``-L``: links of each GPU, their errors, and the list of GPUs."""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import nameless, unplaced
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import NVLINK5_BER, NVLINK5_ERRORS
from dgxcheck.facts.missing import Json
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern, caseless_pattern
from dgxcheck.readers.layout.lines import is_cut
from dgxcheck.readers.model import Imported, Reports, ToolPart
from dgxcheck.readers.nvidia_smi.topo import bare
from dgxcheck.readers.values import gpu, integer, numbered
from dgxcheck.readers.wording import any_of, rows

TOOL = "nvidia-smi -L"
_LIST_GPU = LazyPattern(
    r"GPU {1,3}(\d{1,3}): {0,3}([^()]{1,80}?)(?: {0,3}\(UUID: {0,2}(GPU-[0-9A-Za-z.-]{1,60}|[^)]{1,80})\))?"
)
_UUID = caseless_pattern(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LIST_MIG = LazyPattern(r"MIG \d{1,2}[cg][\w.+]{1,24} {1,12}Device {1,4}\d{1,3}: {0,3}\(UUID: MIG-[^)]{1,120}\)")


def read_list(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The GPUs of a text by number; one that comes again under another name ends the list."""
    names: dict[int, str] = {}
    uuids: dict[int, str] = {}
    part = ToolPart(TOOL)
    for at, text in numbered(lines, lambda line: line.strip()[:240]):
        match = _LIST_GPU.fullmatch(text) if text.startswith("GPU") else None
        number = gpu(match[1]) if match else None
        if match is not None and number is not None and _is_name(match[2], match[3] is not None):
            if names.get(number, match[2]) != match[2]:
                break
            names[number] = match[2]
            part.lines.add(at)
            if match[3] and _UUID.fullmatch(match[3]):
                uuids[number] = match[3]
        elif names and text.startswith("MIG ") and _LIST_MIG.fullmatch(text):
            part.lines.add(at)
    part.found |= {f"nvml nvmlDeviceGetHandleByIndex {n}": unplaced(n) for n in sorted(names)}
    part.found |= {f"nvml nvmlDeviceGetName {unplaced(n)}": name for n, name in names.items()}
    part.found |= {f"nvml nvmlDeviceGetUUID {unplaced(n)}": uuid for n, uuid in uuids.items()
                   if [*uuids.values()].count(uuid) == 1}  # fmt: skip
    return part.imported() if names else ()


def _is_name(text: str, listed: bool) -> bool:
    """A model, not a sentence about a GPU: with its UUID behind it, or as NVIDIA spells its models."""
    return listed or text.startswith(("NVIDIA ", "Tesla ", "GeForce ", "Quadro ", "TITAN ", "GRID "))


_NVLINK_GPU = ascii_pattern(r"GPU {1,3}(\d{1,3}): {0,3}[^:]{1,80}(?:\(UUID:.{1,80})?")
_STATE = LazyPattern(
    r"(?:NVML: Unable to retrieve NVLink information for )?Link (\d{1,2})(?:: | - )(\d{1,4}(?:\.\d{1,6})? ?GB/s"
    r"|<?inactive>?)",
    flags=re.IGNORECASE | re.ASCII,
)
"""The longer one of ``-l`` with a link that is down."""
_REMOTE = LazyPattern(
    r"Link (\d{1,2}): (?:Remote Device )?([0-9A-F]{4,8}:[0-9A-F]{2}:[0-9A-F]{2}\.\d)(?:: Link \d+)?",
    flags=re.IGNORECASE | re.ASCII,
)
"""Of ``-R``, and of ``-p``, which has the bus id alone."""
_CAPABILITY = caseless_pattern(r"Link \d{1,2}, [\w ]{4,60} (?:is )?supported: (?:true|false)")
_OF_ALL = {words: caseless_pattern(any_of("nvidia_smi/lines", f"nvlink, {words}"))
           for words in ("none", "all inactive", "MIG")}  # fmt: skip
"""What stands for the links of a GPU together, by the words of the fact."""
_LINK = LazyPattern(r"Link (\d{1,2})[:,] ", flags=re.IGNORECASE | re.ASCII)
_COMMAND = LazyPattern(r"nvidia-smi\s+nvlink\b.*")


class _Gpu:
    """The GPU that is open; rows below a cut mark are its own as long as their link numbers go on rising."""

    def __init__(self) -> None:
        self.name, self.at = "", -1
        self._cut, self._last = False, -1

    def begins(self, number: int, line: str, text: str) -> bool:
        """Does a line name a GPU, or only say that others were left out?"""
        if match := _NVLINK_GPU.fullmatch(text):
            self.name, self.at = f"GPU{int(match[1])}", number
            self._cut, self._last = False, -1
        elif is_cut(line):
            self._cut = True
        else:
            return False
        return True

    def goes_on(self, link: int) -> bool:
        """Is the row of this link of the same GPU as the rows before? Where nothing was left out it always is."""
        if self._cut and link < self._last:
            return False
        self._last = max(self._last, link)
        return True


def read_nvlink(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The NVLinks of all GPUs in a text; capabilities give no facts, and lines above the first GPU are ignored."""
    facts: dict[str, Json] = {}
    understood: set[int] = set()
    tools: dict[str, None] = {}
    gpu, alone = _Gpu(), Reports("nvidia-smi nvlink")
    for number, line in enumerate(lines):
        text = bare(line).strip()
        if gpu.begins(number, line, text):
            continue
        if gpu.name and (link := _LINK.match(text)) and not gpu.goes_on(int(link[1])):
            gpu.name = ""
        if gpu.name and (match := _STATE.fullmatch(text)):
            facts[f"stated nvlink {gpu.name} {int(match[1])}"] = match[2] if match[2][0].isdigit() else "<inactive>"
            tools["nvidia-smi nvlink -s"] = None
        elif gpu.name and (match := _REMOTE.fullmatch(text)):
            facts[f"stated nvlink-remote {gpu.name} {int(match[1])}"] = match[2].lower()
            tools[f"nvidia-smi nvlink -{'R' if 'Remote' in text else 'p'}"] = None
        elif gpu.name and (of_all := next((words for words, form in _OF_ALL.items() if form.fullmatch(text)), "")):
            facts[f"stated nvlink {gpu.name}"] = of_all
            tools["nvidia-smi nvlink -s"] = None
        elif gpu.name and _CAPABILITY.fullmatch(text):  # whether a link is there and up is what nvlink -s tells
            tools["nvidia-smi nvlink -c"] = None
        elif _OF_ALL["all inactive"].fullmatch(text):
            alone.add(nameless(0), "links", "unknown", Fault.NVLINK_REPORTED, "all NVLinks are inactive")
            tools["nvidia-smi nvlink -s"] = None
            understood.add(number)
            continue
        elif not text or _COMMAND.search(text):
            understood |= {number} if text else set()
            continue
        else:
            gpu.name = ""
            continue
        understood |= {number, gpu.at}
    facts |= alone.facts()
    return (Imported(tool=", ".join(tools), facts=facts, understood=frozenset(understood)),) if tools else ()


KIND = "nvlink-errors"
_COUNT = ascii_pattern(r"Link (\d{1,2}): (Replay|Recovery|CRC) Errors: (\d{1,20})")
_COUNTERS = {"Replay": 0, "Recovery": 1, "CRC": 2}
"""``nvmlNvLinkErrorCounter_t``: DL_REPLAY, DL_RECOVERY, DL_CRC_FLIT."""
_COUNT_5 = ascii_pattern(r"Link (\d{1,2}): ([A-Z][\w -]{3,40}): (\d{1,20}|\d{1,2}e-\d{1,3})")
_NAMES_5 = {row["label"]: row["counter"] for row in rows("nvidia_smi/nvlink5")}
"""From NVLink 5 on. Other lines are no errors: traffic, what forward error correction put right (``FEC Errors - 0``
counts the good code words), rates and errors before it (``Raw BER``)."""
_TRAFFIC_5 = LazyPattern(
    r"[TR]x (?:packets|bytes)|Total link recovery events|FEC Errors - \d{1,2}|Raw [\w ]{3,20}|PLR [\w ]{3,30}"
)


def read_errors(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``stated nvlink-errors GPU0 LINK COUNTER`` for the counters of all GPUs in a text."""
    part = ToolPart("nvidia-smi nvlink -e")
    gpu = _Gpu()
    for number, line in enumerate(lines):
        text = bare(line).strip()
        if gpu.begins(number, line, text):
            continue
        if gpu.name and (match := _COUNT.fullmatch(text)) and gpu.goes_on(int(match[1])):
            part.found[f"stated {KIND} {gpu.name} {int(match[1])} {_COUNTERS[match[2]]}"] = int(match[3])
            part.lines |= {number, gpu.at}
        elif gpu.name and (match := _COUNT_5.fullmatch(text)) and gpu.goes_on(int(match[1])):
            if (name := _NAMES_5.get(match[2])) is not None:
                field = (NVLINK5_ERRORS | NVLINK5_BER)[name]
                part.found[f"stated {KIND} {gpu.name} {int(match[1])} {field}"] = _packed(match[3])
            part.lines |= {number, gpu.at} if name is not None or _TRAFFIC_5.fullmatch(match[2]) else set()
        elif text:
            gpu.name = ""
    return part.imported() if part.found else ()


_C2C = caseless_pattern(
    r"(?:GPU (?P<gpu>\d{1,2}): .{1,120}\(UUID: .{1,60}\)\s{1,4})?C2C Link (?P<link>\d{1,2}): (?P<is>.{1,60})"
    r"|NVML: Unable to retr\w{4} C2C link information (?:for link (?P<one>\d{1,2}) -|as (?P<all>all) links are)"
    r" inactive|No Devices support C2C\."
)


def read_c2c(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``nvidia-smi c2c -s``: links between a GPU and its CPU that are off; of ``-e`` nothing, replays lose no data."""
    part = ToolPart("nvidia-smi c2c")
    whose = _Gpu()
    off: dict[str, dict[str, None]] = {}
    for number, line in numbered(lines, bare):
        if match := _C2C.fullmatch(line):
            part.lines |= {number, whose.at} - {-1}
            whose.name = f"GPU{int(match['gpu'])}" if match["gpu"] else whose.name
            if match["one"] or match["all"] or (match["is"] or "").strip("<>").lower() == "inactive":
                off.setdefault(whose.name or nameless(0), {})[match["link"] or match["one"] or match["all"]] = None
        else:
            whose.begins(number, line, line)
    for name, links in off.items():
        whole = [*links] == ["all"]
        text = "no C2C link is active" if whole else f"inactive C2C links: {', '.join(links)}"
        part.add(name, "links", "fail" if whole else "warn", Fault.C2C_DOWN, text)
    return part.imported()


_PCI = LazyPattern(
    r"(?P<name>(?:REPLAY(?:_ROLLOVER)?|L0_TO_RECOVERY)_COUNTER|CORRECTABLE_ERRORS|NAKS_(?:RECEIVED|SENT)|RECEIVER_ERROR"
    r"|BAD_[TD]LP|(?:NON_)?FATAL_ERROR|UNSUPPORTED_REQ|LCRC_ERROR|LANE_ERROR|[TR]X_BYTES): {0,30}(?P<count>\d{0,20})"
    r"|lane {1,3}\d{1,2}: {0,4}\d{1,20}"
)


def read_pci(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``nvidia-smi pci -gErrCnt``: replays as NVML counts them, and fatal errors; probing at boot makes the others."""
    part = ToolPart("nvidia-smi pci")
    whose = _Gpu()
    for number, line in numbered(lines, bare):
        if whose.begins(number, line, line) or not (match := _PCI.fullmatch(line)):
            continue
        part.lines |= {number, whose.at} - {-1}
        count = integer(match["count"] or "", 1 << 32)
        if match["name"] == "REPLAY_COUNTER" and count is not None and (index := gpu(whose.name[3:])) is not None:
            part.found[f"nvml nvmlDeviceGetPcieReplayCounter {unplaced(index)}"] = count
        elif match["name"] == "FATAL_ERROR" and count:
            part.add(whose.name or nameless(0), "fatal", "warn", Fault.AER_UNCORRECTABLE, f"fatal PCIe errors: {count}")
    return part.imported()


def _packed(text: str) -> Json:
    """A count, or a rate as NVML packs it: ``15e-255`` -> 0xfff."""
    mantissa, e, exponent = text.partition("e-")
    if not e:
        return int(text)
    packed = int(mantissa) << 8 | int(exponent)
    return packed if packed <= 0xFFF and int(exponent) <= 0xFF else {"missing": "garbled", "detail": text}
