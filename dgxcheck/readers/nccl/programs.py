"""What programs print of NCCL's errors: the watchdog and exceptions of PyTorch, and the failures of nccl-tests.

Their texts: https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp and
https://github.com/NVIDIA/nccl-tests/blob/master/src/common.h.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.tool_report import Outcome
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nccl.errors import report
from dgxcheck.readers.nccl.gpus import Gpus
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bounded

TOOL = "PyTorch"
TESTS = "nccl-tests"
SHOWN = 8
_RANK = r"(?:PG [^\[\]]{0,80}? )?Rank (?P<rank>\d{1,6})\]"
_TIMEOUT = re.compile(
    rf"\[{_RANK}.{{0,120}}?Watchdog caught collective operation timeout:\s{{0,4}}"
    r"WorkNCCL\(SeqNum=(?P<number>\d{1,12}), OpType=(?P<operation>\w{1,40})\b.{0,400}"
)
_BEHIND = re.compile(rf"\[{_RANK}.{{0,200}}?last completed NCCL work: (?P<number>\d{{1,12}}).{{0,200}}")
_SILENT = re.compile(rf"\[{_RANK}.{{0,120}}?[Hh]eartbeat monitor timed out.{{0,400}}")
_DUMP = re.compile(r".{0,120}[Rr]eceived a dump signal .{0,40}from (?:this local )?rank .{0,400}")
_RESULT = re.compile(
    r".{0,200}?(?P<kind>nccl(?:UnhandledCuda|System|Internal|InvalidUsage|InvalidArgument|Remote)Error): .{0,200}"
)
_LAST = re.compile(r"(?:.{0,80}\s)?Last error:\s{0,4}(?P<text>.{0,400})")
_ERROR = re.compile(r".{0,160}(?:DistBackendError|NCCL error in:|NCCL operation .{1,80} failed).{0,400}")
_TEST = re.compile(r".{0,120}?: Test (?P<kind>NCCL|CUDA) failure \S{1,80}:\d{1,6} '(?P<text>[^']{1,200})'.{0,200}")
_CHATTER = re.compile(
    r".{0,160}(?:ProcessGroupNCCL\.cpp:\d{1,6}\]|TORCH_NCCL_\w{3,60}|NCCL_ASYNC_ERROR_HANDLING).{0,600}"
    r"|.{0,120}: Test failure \S{1,80}:\d{1,6}"
)
_KINDS: dict[str, tuple[str, Outcome, FaultKind, str]] = {
    "ncclInternalError": ("internal", "warn", Fault.TOOL_ERROR, "an internal check of NCCL failed"),
    "ncclInvalidUsage": ("usage", "warn", Fault.PROGRAM_ERROR, "the program used NCCL in a wrong way"),
    "ncclInvalidArgument": ("usage", "warn", Fault.PROGRAM_ERROR, "the program called NCCL with a wrong argument"),
    "ncclSystemError": ("system", "warn", Fault.TRANSFER_FAILED, "a system call or library that NCCL used failed"),
    "ncclUnhandledCudaError": ("cuda", "warn", Fault.TOOL_ERROR, "a call of CUDA failed in NCCL"),
    "ncclRemoteError": ("peer-gone", "warn", Fault.TRANSFER_FAILED, "another rank ended, or the network to it failed"),
}  # fmt: skip
_WORDS = {
    "unhandled cuda error": "ncclUnhandledCudaError", "unhandled system error": "ncclSystemError",
    "internal error": "ncclInternalError", "invalid usage": "ncclInvalidUsage",
    "invalid argument": "ncclInvalidArgument", "remote process exited or there was a network error": "ncclRemoteError",
}  # fmt: skip
"""``ncclGetErrorString``."""


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Ranks that timed out, ranks that did not report or are behind, and the last errors of NCCL and CUDA."""
    job = _Job()
    understood: set[int] = set()
    chatter: set[int] = set()
    below = False
    for number, raw in enumerate(bounded(lines)):
        line = raw.strip()
        if below and line and not _ERROR.fullmatch(line):
            job.warnings.append(line)
            understood.add(number)
            below = False
        elif job.take(line):
            understood.add(number)
            below = bool(last := _LAST.fullmatch(line)) and not (last and last["text"].strip())
        elif _CHATTER.fullmatch(line):
            chatter.add(number)
    if not understood:
        return ()
    tool = TESTS if job.of_tests else TOOL
    return (Imported(tool=tool, facts=job.reports(tool).facts(), understood=frozenset(understood | chatter)),)


class _Job:
    """The ranks of one job, and the errors that they report."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.of_tests = False
        self._waits: dict[int, tuple[int, str]] = {}
        self._completed: dict[int, int] = {}
        self._silent: set[int] = set()
        self._kinds: Counter[str] = Counter()

    def take(self, line: str) -> bool:
        """True for a line that reports an error or a timeout."""
        if wait := _TIMEOUT.search(line) if "Watchdog" in line else None:
            self._waits.setdefault(int(wait["rank"]), (int(wait["number"]), wait["operation"]))
        elif done := _BEHIND.search(line) if "NCCL work" in line else None:
            self._completed.setdefault(int(done["rank"]), int(done["number"]))
        elif silent := _SILENT.search(line) if "eartbeat" in line else None:
            self._silent.add(int(silent["rank"]))
        elif test := _TEST.fullmatch(line) if ": Test " in line else None:
            self.of_tests = True
            if test["kind"] == "CUDA":
                self.warnings.append(f"Cuda failure '{test['text']}'")
            else:
                self._kinds[_WORDS.get(re.split(r" [(/]", test["text"])[0], "ncclInternalError")] += 1
        elif last := _LAST.fullmatch(line):
            if last["text"].strip():
                self.warnings.append(last["text"])
        elif kind := _RESULT.fullmatch(line) if "nccl" in line else None:
            self._kinds[kind["kind"]] += 1
        else:
            return bool(_DUMP.fullmatch(line) or _ERROR.fullmatch(line))
        return True

    def reports(self, tool: str) -> Reports:
        """One report on all ranks that timed out, then the errors of NCCL and CUDA; result codes only without those."""
        found = Reports(tool)
        report([(None, text) for text in self.warnings], Gpus(), found)
        if self._waits or self._silent:
            found.add(HOST, "timeout", "warn", Fault.COLLECTIVE_TIMEOUT, self._text())
        for kind in self._kinds if not self.warnings else ():
            topic, outcome, fault, text = _KINDS[kind]
            found.add(HOST, topic, outcome, fault, text)
        return found

    def _text(self) -> str:
        """The collective, the ranks that timed out in it and, if the log shows them, those that they waited for."""
        if not self._waits:
            return f"{_ranks(self._silent)} stopped: the watchdog of NCCL got no answer from CUDA or a lock"
        first = min(number for number, _ in self._waits.values())
        latest = max(number for number, _ in self._waits.values())
        operations = {operation for number, operation in self._waits.values() if number == first}
        text = f"{_ranks(self._waits)} timed out in {'/'.join(sorted(operations))} (SeqNum {first})"
        behind = {rank for rank, done in self._completed.items() if done < max(self._completed.values())}
        behind |= {rank for rank, (number, _) in self._waits.items() if number < latest}
        missing = {*range(max(self._waits) + 1)} - {*self._waits}
        if len(operations) > 1:
            return f"{text}: the ranks call different operations"
        if behind and len(behind) < len(self._waits):
            return f"{text}: {_ranks(behind)} {'is' if len(behind) == 1 else 'are'} behind the others"
        if missing and len(missing) <= max(1, len(self._waits)):
            return f"{text}: {_ranks(missing)} did not report"
        return f"{text}: none of them is behind, so the rank at fault is not in this log, or a transfer hangs"


def _ranks(numbers: Collection[int]) -> str:
    """``ranks 0, 1, 2 and 5 more``"""
    listed = sorted(numbers)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return f"rank{'s' if len(listed) > 1 else ''} {', '.join(map(str, listed[:SHOWN]))}{more}"
