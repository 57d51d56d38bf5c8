"""Node Health Check (LBNL NHC): what it logs of a check that failed (https://github.com/mej/nhc), and the figures of
Azure's checks that run nvbandwidth and ib_write_bw (https://github.com/Azure/azurehpc-health-checks).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.readers import values
from dgxcheck.readers.dcgm.faults import fault_of
from dgxcheck.readers.merge import merge_runs
from dgxcheck.readers.model import Imported
from dgxcheck.readers.network.files import NAME
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import MOST_GBS, bounded, imported

TOOL = "nhc"
_FAILED = re.compile(
    r"ERROR: {1,2}nhc: {1,2}Health check failed: {1,2}(?:(?P<check>check_\w{2,60}): {1,2})?(?P<text>\S.{0,600})"
)
_OTHER = re.compile(r"Healthy|ERROR: {1,2}No results reported")
_GPU = re.compile(r"\b(?:GPU (?:id )?|device )(?P<gpu>\d{1,2})\b(?!:\d)", re.IGNORECASE)
_COPIES = re.compile(
    r"Device (?P<gpu>\d{1,3}) (?P<way>Host to Device|Device to Host) reported bandwidth is (?P<rate>[\d.]{1,12}) GB/s"
)
_BETWEEN = re.compile(
    rf"IB devices= ?(?P<names>{NAME}(?:, ?{NAME}){{0,15}}): .{{0,80}}Measured IB BW (?P<rate>[\d.]{{1,12}}) Gbps"
)
_PORT = re.compile(rf"No IB port (?P<device>{NAME}):(?P<port>\d{{1,2}}) is ACTIVE", re.ASCII)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Each check that failed, of the GPU or port that its message names; the kernel log cited in it is read as such."""
    reports = Reports(TOOL)
    figures: list[tuple[str, Json]] = []
    understood: set[int] = set()
    rest: set[int] = set()
    for number, line in enumerate(bounded(lines)):
        if match := _FAILED.fullmatch(line.strip()):
            _add(reports, match["check"] or "check", match["text"].rstrip("."))
            understood.add(number)
        elif found := [*_figures(line.strip(), number)] if "andwidth is" in line or "IB BW" in line else []:
            figures += found
            understood.add(number)
        elif _OTHER.fullmatch(line.strip()):
            rest.add(number)
    if not understood:
        return ()
    facts = reports.facts() | merge_runs(figures)
    return (Imported(tool=TOOL, facts=facts, understood=frozenset(understood | rest)),)


def _figures(line: str, number: int) -> Iterator[tuple[str, Json]]:
    """Host copies of one GPU, or a transfer between HCAs of the host with the same figure for each HCA."""
    if copies := _COPIES.fullmatch(line):
        kind = copies["way"].lower().replace(" ", "-")
        value, index = values.number(copies["rate"], MOST_GBS), values.gpu(copies["gpu"])
        if value is not None and index is not None:
            yield f"measure {kind} {index}", imported(value, "GB/s", tool=TOOL, line=number, method="check of NHC")
    elif between := _BETWEEN.fullmatch(line):
        value = values.number(between["rate"], 8 * MOST_GBS)
        for name in between["names"].split(",") if value is not None else ():
            fact = imported(round((value or 0) / 8, 3), "GB/s", tool=TOOL, line=number,
                            method="check of NHC, between HCAs of one host")  # fmt: skip
            yield f"measure rdma-write {name.strip()}", fact


def _add(reports: Reports, check: str, text: str) -> None:
    if port := _PORT.search(text):
        reports.add(f"{port['device']}/{port['port']}", check, "fail", Fault.PORT_DOWN, f"{check}: {text}")
        return
    if named := _GPU.search(text):
        reports.add(f"GPU{int(named['gpu'])}", check, "fail", fault_of(text), f"{check}: {text}")
    else:
        reports.add(HOST, check, "fail", fault_of(text), f"{check}: {text}")
