"""``dcgmi nvlink -s``: a letter for every NVLink of every GPU and NVSwitch; ``-e``: errors of the NVLinks of a GPU."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.readers.dcgm.cells import is_rule
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bare, bounded, gpu

TOOL = "dcgmi nvlink -s"
ERRORS = "dcgmi nvlink -e"
_COUNTS = "| NVLINK Error Counts"
_OF_GPU = re.compile(r"\| ?GPU (\d{1,3}) {0,80}\|?", re.ASCII)
_LINK = re.compile(r"\| ?Link (\d{1,2}) {0,80}\|.{0,80}", re.ASCII)
_COUNT = re.compile(
    r"\| ?-> (CRC FLIT|CRC Data|Replay|Recovery) Error {0,40}\| (\d{1,20}|N/A|Error|Not Supported) {0,80}\|?", re.ASCII
)
_COUNTERS = {"Replay": 0, "Recovery": 1, "CRC FLIT": 2}
"""``nvmlNvLinkErrorCounter_t``: DL_REPLAY, DL_RECOVERY, DL_CRC_FLIT."""
_GPU = re.compile(r"gpuId (\d{1,3}):?", re.ASCII)
_SWITCH = re.compile(r"(?:physicalId|switchId|nvSwitchId) \d{1,3}:?", re.IGNORECASE | re.ASCII)
_STATES = re.compile(r"[UDX_](?:\s{1,4}[UDX_]){0,71}", re.ASCII)
_CHATTER = re.compile(
    r"NvLink Link Status|GPUs:|NvSwitches:|No NvSwitches found\.|Key: Up=U, Down=D, Disabled=X, Not Supported=_"
)
_FRAME = re.compile(r"\+-{4,80}\+")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Both forms."""
    return (*_states(lines), *_errors(lines))


def _errors(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``stated nvlink-errors GPUn LINK COUNTER`` as of ``nvidia-smi nvlink -e``."""
    facts: dict[str, Json] = {}
    understood: set[int] = set()
    name = link = ""
    for number, raw in enumerate(bounded(lines)):
        line = raw.strip()
        if line.startswith(_COUNTS):
            name = link = ""
            understood.add(number)
        elif not understood:
            continue
        elif match := _OF_GPU.fullmatch(line):
            name = f"GPU{int(match[1])}"
        elif match := _LINK.fullmatch(line):
            link = str(int(match[1]))
        elif match := _COUNT.fullmatch(line):
            if name and link and match[1] in _COUNTERS and match[2].isdigit():
                facts[f"stated nvlink-errors {name} {link} {_COUNTERS[match[1]]}"] = int(match[2])
        elif not is_rule(line):
            continue
        understood.add(number)
    frame = {number - 1 for number in understood if number and is_rule(lines[number - 1])}
    return (Imported(tool=ERRORS, facts=facts, understood=frozenset(understood | frame)),) if facts else ()


def _states(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``stated nvlink GPUn LINK`` as ``nvidia-smi nvlink -s`` says it; a GPU of which no link is supported has none."""
    facts: dict[str, Json] = {}
    understood: set[int] = set()
    chatter: set[int] = set()
    name: str | None = None
    for number, raw in enumerate(bounded(lines)):
        line = bare(raw)
        if match := _GPU.fullmatch(line):
            index = gpu(match[1])
            name = None if index is None else f"GPU{index}"
        elif _SWITCH.fullmatch(line):
            name = ""
        elif name is not None and _STATES.fullmatch(line):
            facts |= _links(name, line.split()) if name else {}
        elif _CHATTER.fullmatch(line) or _FRAME.fullmatch(raw.strip()):
            chatter.add(number)
            continue
        else:
            continue
        understood.add(number)
    return (Imported(tool=TOOL, facts=facts, understood=frozenset(understood | chatter)),) if facts else ()


def _links(name: str, states: list[str]) -> dict[str, Json]:
    if set(states) == {"_"}:
        return {f"stated nvlink {name}": "none"}
    words = {"U": "up", "D": "<inactive>", "X": "<inactive>"}
    return {f"stated nvlink {name} {link}": words[state] for link, state in enumerate(states) if state in words}
