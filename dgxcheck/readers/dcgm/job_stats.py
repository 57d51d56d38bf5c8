"""``dcgmi stats``, errors during a job by GPU, and the violations that ``dcgmi policy --reg`` reports as they come."""

from __future__ import annotations

import re

from dgxcheck.facts.faults import Fault
from dgxcheck.readers.dcgm.cells import cells, is_rule
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bounded

STATS, POLICY = "dcgmi stats", "dcgmi policy"
_GPU = re.compile(r"\|\s{0,4}(?:GPU ID: (?P<gpu>\d{1,2})|Summary)\s{1,100}\|")
_ERRORS = {"Double Bit ECC Errors": (Fault.ECC_UNCORRECTED, "double-bit ECC errors"),
           "Critical XID Errors": (Fault.XID, "critical Xids")}  # fmt: skip
_ROWS = re.compile(
    r"(?:Start Time|End Time|Total Execution Time \(sec\)|No\. of (?:Conflicting )?Processes|Energy Consumed \(Joules\)"
    r"|Power Usage \(Watts\)|Max GPU Memory Used \(bytes\)|(?:SM|Memory) (?:Clock \(MHz\)|Utilization \(%\))"
    r"|PCIe (?:Rx|Tx) Bandwidth \(megabytes\)|(?:Single|Double) Bit ECC Errors|PCIe Replay Warnings|Critical XID Errors"
    r"|Due to - Power \(%\)|- (?:Thermal|Reliability|Board Limit|Low Utilization|Sync Boost) \(%\)|PID|Overall Health"
    r"|Avg (?:SM|Memory) Utilization \(%\)|XID \(Hr:Min:Sec since start\)|Clocks and PCIe Performance"
    r"|Conflicting (?:Compute|Graphics) PID)\s{0,40}\*?"
)
_TITLE = re.compile(r"Successfully retrieved (?:statistics for job|process info for PID): .{1,80}")
_FIRST = frozenset(("Start Time", "End Time", "Energy Consumed (Joules)"))
_LISTENING = re.compile(r"Listening for violations\.?")
_EVENT = re.compile(
    r"(?:A (?P<dbe>double-bit ECC error)|A (?P<pcie>PCIe replay event)|The maximum number of (?P<pages>retired pages)"
    r"|The maximum (?P<thermal>thermal) limit|The maximum (?P<power>power) limit|(?P<nvlink>NVLink) Counter .{1,60})"
    r" has violated policy manager values\.|XID error (?P<xid>\d{1,4}) detected\."
)
_FAULTS = {
    "dbe": Fault.ECC_UNCORRECTED, "pcie": Fault.PCIE_REPLAYS, "pages": Fault.PAGES_MANY, "nvlink": Fault.NVLINK_ERRORS,
    "thermal": Fault.THERMAL_SLOWDOWN, "power": Fault.POWER_VIOLATION, "xid": Fault.XID,
}  # fmt: skip
_VALUE = re.compile(r"(?:Timestamp|DBE error count|PCIe replay count|[SD]BE page retirement count|Temperature|Power"
                    r"|NVLink Counter value): .{1,60}")  # fmt: skip


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Errors that were counted; a job without any passes. A violation is of the host: its lines name no GPU."""
    lines = bounded(lines)
    return (*_stats(lines), *_policy(lines))


def _stats(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    reports = Reports(STATS)
    understood: set[int] = set()
    subject = HOST
    known = False
    heads = {n: match["gpu"] for n, line in enumerate(lines) if (match := _GPU.fullmatch(line.strip()))}
    for cell in cells(lines, 0, len(lines)):
        above = [number for number in heads if number < cell.lines[0]]
        subject = HOST if not above or heads[max(above)] is None else f"GPU{int(heads[max(above)] or 0)}"
        if not _ROWS.fullmatch(cell.left):
            continue
        understood.update(cell.lines)
        known = known or cell.left.rstrip(" *") in _FIRST
        fault, words = _ERRORS.get(cell.left, (None, ""))
        if words and cell.right.isdecimal():
            count = int(cell.right)
            topic = words.replace(" ", "-").lower()
            if count:
                reports.add(subject, topic, "warn", fault, f"{words} during a job: {count}")
            else:
                reports.add(subject, topic, "pass")
    if not known or not understood:
        return ()
    first, last = min({*understood, *heads}), max(understood)
    frame = {n for n in range(max(first - 2, 0), min(last + 2, len(lines)))
             if is_rule(lines[n]) or _TITLE.fullmatch(lines[n].strip())}  # fmt: skip
    return (Imported(tool=STATS, facts=reports.facts(), understood=frozenset(understood | frame | heads.keys())),)


def _policy(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    reports = Reports(POLICY)
    understood: set[int] = set()
    listening = False
    for number, line in enumerate(lines):
        text = line.strip()
        if _LISTENING.fullmatch(text):
            listening = True
            understood.add(number)
        elif listening and (event := _EVENT.fullmatch(text)):
            kind = event.lastgroup or ""
            what = f"Xid {event['xid']}" if event["xid"] else event[kind]
            reports.add(HOST, f"violation-{kind}", "warn", _FAULTS[kind], f"{what} violates the policy")
            understood.add(number)
        elif listening and _VALUE.fullmatch(text):
            understood.add(number)
    if listening and not reports:
        reports.add(HOST, "violations", "pass")
    return (Imported(tool=POLICY, facts=reports.facts(), understood=frozenset(understood)),) if listening else ()
