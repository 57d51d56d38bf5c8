"""Logs of DCGM: nv-hostengine.log, nvvs.log (``TIME LEVEL [PID:TID] TEXT [FILE:LINE] [FUNCTION]``).

https://github.com/NVIDIA/DCGM, common/DcgmLogging.h. Most of what these call an error is a module or a file that this
machine does not have: only messages of a GPU that name a fault count.
"""

from __future__ import annotations

import re

from dgxcheck.facts.faults import Fault
from dgxcheck.readers.dcgm.faults import fault_of
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import Reports
from dgxcheck.readers.values import bounded

TOOL = "dcgm log"
_LINE = re.compile(
    r"(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} )?(?P<level>FATAL|ERROR|WARN|INFO|DEBUG|VERB) {1,3}\[\d{1,10}:\d{1,10}\]"
    r" (?P<text>.{0,1500}?)(?: \[[/\w.@+-]{1,300}:\d{1,6}\](?: \[.{0,300})?)?"
)
_GPU = re.compile(r"\b(?:GPU|gpuId|gpu_id|gpu) ?[:=]?(?P<gpu>\d{1,2})\b(?![.:]\d)")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Errors that name a GPU and a fault; every line of the log counts as understood."""
    reports = Reports(TOOL)
    understood: set[int] = set()
    for number, line in enumerate(bounded(lines)):
        text = line.strip()
        match = _LINE.fullmatch(text) if "[" in text[:60] else None
        if match is None:
            continue
        understood.add(number)
        named = _GPU.search(match["text"])
        fault = fault_of(match["text"])
        if match["level"] in ("ERROR", "FATAL") and named and fault is not Fault.TEST_FAILED:
            reports.add(f"GPU{int(named['gpu'])}", fault.word, "warn", fault, match["text"])
    if not understood:
        return ()
    return (Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(understood)),)
