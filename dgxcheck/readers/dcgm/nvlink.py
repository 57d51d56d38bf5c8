"""``dcgmi nvlink -s``: a letter for every NVLink of every GPU and NVSwitch."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bare, bounded, gpu

TOOL = "dcgmi nvlink -s"
_GPU = re.compile(r"gpuId (\d{1,3}):?", re.ASCII)
_SWITCH = re.compile(r"(?:physicalId|switchId|nvSwitchId) \d{1,3}:?", re.IGNORECASE | re.ASCII)
_STATES = re.compile(r"[UDX_](?:\s{1,4}[UDX_]){0,71}", re.ASCII)
_CHATTER = re.compile(
    r"NvLink Link Status|GPUs:|NvSwitches:|No NvSwitches found\.|Key: Up=U, Down=D, Disabled=X, Not Supported=_"
)
_FRAME = re.compile(r"\+-{4,80}\+")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
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
