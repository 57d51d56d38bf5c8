"""``nvidia-smi nvlink -s`` and ``-R``: which NVLinks of each GPU are up, and what they lead to."""

from __future__ import annotations

import re

from dgxcheck.facts.missing import Json
from dgxcheck.readers.layout.cuts import is_cut
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi.matrix import bare

_GPU = re.compile(r"GPU {1,3}(\d{1,3}): {0,3}[^:]{1,80}(?:\(UUID:.{1,80})?", re.ASCII)
_STATE = re.compile(r"Link (\d{1,2}): (\d{1,4}(?:\.\d{1,6})? ?GB/s|<?inactive>?)", re.IGNORECASE | re.ASCII)
_REMOTE = re.compile(r"Link (\d{1,2}): Remote Device ([0-9A-Fa-f:.]{12,16}): Link \d+", re.IGNORECASE | re.ASCII)
_NONE = re.compile(r"Device does not have or support Nvlink\.?", re.IGNORECASE | re.ASCII)
_DOWN = re.compile(
    r"(?:NVML: )?Unable to retrieve Nvlink information as all links are inactive\.?", re.IGNORECASE | re.ASCII
)
_MIG = re.compile(r"Nvlink queries are not supported for Devices in MIG mode\.?", re.IGNORECASE | re.ASCII)
_CAPABILITY = re.compile(r"Link \d{1,2}, [\w ]{4,60} (?:is )?supported: (?:true|false)", re.IGNORECASE | re.ASCII)
_LINK = re.compile(r"Link (\d{1,2})[:,] ", re.IGNORECASE | re.ASCII)
_COMMAND = re.compile(r"nvidia-smi\s+nvlink\b.*")


class LinkOrder:
    """Tells whether rows below a cut mark belong to the GPU above it: its link numbers go on rising."""

    def __init__(self) -> None:
        self.cut = False
        self._last = -1

    def goes_on(self, link: int) -> bool:
        """Is the row of this link of the same GPU as the rows before? Where nothing was left out it always is."""
        if self.cut and link < self._last:
            return False
        self._last = max(self._last, link)
        return True


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The NVLinks of all GPUs in a text; capabilities give no facts, and lines above the first GPU are ignored."""
    facts: dict[str, Json] = {}
    understood: set[int] = set()
    tools: dict[str, None] = {}
    gpu, at = "", -1
    order = LinkOrder()
    for number, line in enumerate(lines):
        text = bare(line[:400]).strip()
        if match := _GPU.fullmatch(text):
            gpu, at = f"GPU{int(match[1])}", number
            order = LinkOrder()
            continue
        if is_cut(line):
            order.cut = True
            continue
        if gpu and (link := _LINK.match(text)) and not order.goes_on(int(link[1])):
            gpu = ""
        if gpu and (match := _STATE.fullmatch(text)):
            facts[f"stated nvlink {gpu} {int(match[1])}"] = match[2] if match[2][0].isdigit() else "<inactive>"
            tools["nvidia-smi nvlink -s"] = None
        elif gpu and (match := _REMOTE.fullmatch(text)):
            facts[f"stated nvlink-remote {gpu} {int(match[1])}"] = match[2].lower()
            tools["nvidia-smi nvlink -R"] = None
        elif gpu and (_NONE.fullmatch(text) or _DOWN.fullmatch(text)):
            facts[f"stated nvlink {gpu}"] = "none" if _NONE.fullmatch(text) else "all inactive"
            tools["nvidia-smi nvlink -s"] = None
        elif gpu and _MIG.fullmatch(text):
            facts[f"stated nvlink {gpu}"] = "MIG"
            tools["nvidia-smi nvlink -s"] = None
        elif gpu and _CAPABILITY.fullmatch(text):  # whether a link is there and up is what nvlink -s tells
            tools["nvidia-smi nvlink -c"] = None
        elif not text or (match := _COMMAND.search(text)):
            understood |= {number} if text else set()
            continue
        else:
            gpu = ""
            continue
        understood |= {number, at}
    return (Imported(tool=", ".join(tools), facts=facts, understood=frozenset(understood)),) if tools else ()
