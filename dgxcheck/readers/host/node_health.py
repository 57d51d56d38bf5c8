"""Node Health Check (LBNL NHC): what it logs of a check that failed (https://github.com/mej/nhc)."""

from __future__ import annotations

import re

from dgxcheck.readers.dcgm.faults import fault_of
from dgxcheck.readers.model import Imported
from dgxcheck.readers.network.files import NAME
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bounded

TOOL = "nhc"
_FAILED = re.compile(
    r"ERROR: {1,2}nhc: {1,2}Health check failed: {1,2}(?:(?P<check>check_\w{2,60}): {1,2})?(?P<text>\S.{0,600})"
)
_OTHER = re.compile(r"Healthy|ERROR: {1,2}No results reported")
_GPU = re.compile(r"\b(?:GPU (?:id )?|device )(?P<gpu>\d{1,2})\b(?!:\d)", re.IGNORECASE)
_PORT = re.compile(rf"No IB port (?P<device>{NAME}):(?P<port>\d{{1,2}}) is ACTIVE", re.ASCII)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Each check that failed, of the GPU or port that its message names; the kernel log cited in it is read as such."""
    reports = Reports(TOOL)
    understood: set[int] = set()
    rest: set[int] = set()
    for number, line in enumerate(bounded(lines)):
        if match := _FAILED.fullmatch(line.strip()):
            _add(reports, match["check"] or "check", match["text"].rstrip("."))
            understood.add(number)
        elif _OTHER.fullmatch(line.strip()):
            rest.add(number)
    if not understood:
        return ()
    return (Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(understood | rest)),)


def _add(reports: Reports, check: str, text: str) -> None:
    if port := _PORT.search(text):
        reports.add(f"{port['device']}/{port['port']}", check, "fail", "port-down", f"{check}: {text}")
        return
    if named := _GPU.search(text):
        reports.add(f"GPU{int(named['gpu'])}", check, "fail", fault_of(text), f"{check}: {text}")
    else:
        reports.add(HOST, check, "fail", fault_of(text), f"{check}: {text}")
