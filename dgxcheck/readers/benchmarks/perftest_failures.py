"""What perftest prints where it does not finish: work requests that failed, memory that cannot be registered."""

from __future__ import annotations

import re

from dgxcheck.facts.faults import Fault
from dgxcheck.readers.completions import completion
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bare, bounded

TOOL = "perftest"
_STATUS = re.compile(r"Failed status (?P<code>\d{1,3}): wr_id \d{1,20} syndrom 0x[0-9a-f]{1,8}", re.ASCII)
_NO_MEMORY = re.compile(r"Couldn't allocate MR\b.{0,80}|failed to create mr\b.{0,80}", re.IGNORECASE)
_CHATTER = re.compile(
    r"Completion with error at (?:client|server)|scnt=\d{1,12}, ccnt=\d{1,12}"
    r"|Failed to complete run_iter_\w{2,12} function successfully|Failed to exchange data between server and clients"
    r"|Unable to (?:read|write) (?:to|from) socket/rdma_cm"
    r"|(?:ethernet|rdma)_(?:read|write)_keys: Couldn't (?:read|write) remote address"
)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Failed transfers of the host; which HCA they are of stands nowhere."""
    reports = Reports(TOOL)
    understood: set[int] = set()
    chatter: set[int] = set()
    for number, raw in enumerate(bounded(lines)):
        line = bare(raw)
        if match := _STATUS.fullmatch(line):
            ended, text = completion(int(match["code"]))
            reports.add(HOST, "status", ended.outcome, ended.fault, text)
        elif _NO_MEMORY.fullmatch(line):
            reports.add(HOST, "memory", "fail", Fault.RDMA_ACCESS, "memory cannot be registered with the HCA")
        elif _CHATTER.fullmatch(line):
            chatter.add(number)
            continue
        else:
            continue
        understood.add(number)
    return (Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(understood | chatter)),) if reports else ()
