"""``dcgmi discovery -l``: the GPUs with their bus ids."""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.missing import Json
from dgxcheck.readers.dcgm.cells import cells, is_rule
from dgxcheck.readers.listing import INDEX
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bounded, gpu

TOOL = "dcgmi discovery"
_NAME = re.compile(r"Name: (\S.{0,80})")
_BUS = re.compile(r"PCI Bus ID: ([0-9A-Fa-f:.]{7,16})")
_COUNT = re.compile(r"\d{1,3} (?:GPUs?|NvSwitch(?:es)?|ConnectX|CPUs?) found\.")
_HEAD = re.compile(r"\| (?:GPU|Switch|CPU) ID \| {0,4}Device Information {0,80}\|")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """NVML's list, where the numbers shown leave none out."""
    lines = bounded(lines)
    found: dict[int, str] = {}
    facts: dict[str, Json] = {}
    understood: set[int] = set()
    for cell in cells(lines, 0, len(lines)):
        index = gpu(cell.left)
        texts = [part.strip() for part in cell.parts]
        bdf = next((as_bdf(match[1]) for text in texts if (match := _BUS.fullmatch(text))), None)
        if index is None or bdf is None:
            continue
        found[index] = bdf
        if name := next((match[1] for text in texts if (match := _NAME.fullmatch(text))), None):
            facts[f"nvml nvmlDeviceGetName {bdf}"] = name
        understood.update(cell.lines)
    if not found:
        return ()
    if [*sorted(found)] == [*range(len(found))]:
        facts |= {f"{INDEX} {index}": bdf for index, bdf in sorted(found.items())}
    frame = {n for n, line in enumerate(lines) if _COUNT.fullmatch(line.strip()) or _HEAD.fullmatch(line.strip())
             or (is_rule(line) and {n - 1, n + 1} & understood)}  # fmt: skip
    return (Imported(tool=TOOL, facts=facts, understood=frozenset(understood | frame)),)
