"""``nvidia-smi -L``, whose lines also stand above each GPU of ``nvidia-smi nvlink``: number, name and UUID."""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import unplaced
from dgxcheck.facts.missing import Json
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bounded, gpu

TOOL = "nvidia-smi -L"
_GPU = re.compile(
    r"GPU {1,3}(\d{1,3}): {0,3}([^()]{1,80}?)(?: {0,3}\(UUID: {0,2}(GPU-[0-9A-Za-z.-]{1,60}|[^)]{1,80})\))?"
)
_UUID = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_MIG = re.compile(r"MIG \d{1,2}[cg][\w.+]{1,24} {1,12}Device {1,4}\d{1,3}: {0,3}\(UUID: MIG-[^)]{1,120}\)")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The GPUs of a text by number; one that comes again under another name ends the list."""
    names: dict[int, str] = {}
    uuids: dict[int, str] = {}
    understood: set[int] = set()
    for at, line in enumerate(bounded(lines)):
        text = line.strip()[:240]
        match = _GPU.fullmatch(text) if text.startswith("GPU") else None
        number = gpu(match[1]) if match else None
        if match is not None and number is not None and _is_name(match[2], match[3] is not None):
            if names.get(number, match[2]) != match[2]:
                break
            names[number] = match[2]
            understood.add(at)
            if match[3] and _UUID.fullmatch(match[3]):
                uuids[number] = match[3]
        elif names and text.startswith("MIG ") and _MIG.fullmatch(text):
            understood.add(at)
    if not names:
        return ()
    facts: dict[str, Json] = {f"nvml nvmlDeviceGetHandleByIndex {n}": unplaced(n) for n in sorted(names)}
    facts |= {f"nvml nvmlDeviceGetName {unplaced(n)}": name for n, name in names.items()}
    facts |= {f"nvml nvmlDeviceGetUUID {unplaced(n)}": uuid for n, uuid in uuids.items()
              if [*uuids.values()].count(uuid) == 1}  # fmt: skip
    return (Imported(tool=TOOL, facts=facts, understood=frozenset(understood)),)


def _is_name(text: str, listed: bool) -> bool:
    """A model, not a sentence about a GPU: with its UUID behind it, or as NVIDIA spells its models."""
    return listed or text.startswith(("NVIDIA ", "Tesla ", "GeForce ", "Quadro ", "TITAN ", "GRID "))
