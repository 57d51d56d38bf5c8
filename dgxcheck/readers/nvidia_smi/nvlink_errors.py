"""``nvidia-smi nvlink --errorcounters``: replays, recoveries and CRC errors of each NVLink."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.readers.layout.cuts import is_cut
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi.matrix import bare
from dgxcheck.readers.nvidia_smi.nvlink import LinkOrder

KIND = "nvlink-errors"
_GPU = re.compile(r"GPU {1,3}(\d{1,3}): {0,3}[^:]{1,80}(?:\(UUID:.{1,80})?", re.ASCII)
_COUNT = re.compile(r"Link (\d{1,2}): (Replay|Recovery|CRC) Errors: (\d{1,20})", re.ASCII)
_COUNTERS = {"Replay": 0, "Recovery": 1, "CRC": 2}
"""``nvmlNvLinkErrorCounter_t``: DL_REPLAY, DL_RECOVERY, DL_CRC_FLIT."""


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``stated nvlink-errors GPU0 LINK COUNTER`` for the counters of all GPUs in a text."""
    facts: dict[str, Json] = {}
    understood: set[int] = set()
    gpu, at = "", -1
    order = LinkOrder()
    for number, line in enumerate(lines):
        text = bare(line[:400]).strip()
        if match := _GPU.fullmatch(text):
            gpu, at = f"GPU{int(match[1])}", number
            order = LinkOrder()
        elif is_cut(line):
            order.cut = True
        elif gpu and (match := _COUNT.fullmatch(text)) and order.goes_on(int(match[1])):
            facts[f"stated {KIND} {gpu} {int(match[1])} {_COUNTERS[match[2]]}"] = int(match[3])
            understood |= {number, at}
        elif text:
            gpu = ""
    if not facts:
        return ()
    return (Imported(tool="nvidia-smi nvlink -e", facts=facts, understood=frozenset(understood)),)
