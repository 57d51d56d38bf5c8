"""Programs over NCCL without its own log, and the status that ``ncclras`` prints.

What programs print of NCCL's errors: the watchdog and exceptions of PyTorch, those of XLA, and the failures of
nccl-tests.

Their texts: https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp and
https://github.com/NVIDIA/nccl-tests/blob/master/src/common.h.

``ncclras``: what the RAS threads of NCCL (since 2.24) know of a job that runs or hangs.

Its text: https://github.com/NVIDIA/nccl/blob/master/src/ras/client_support.cc.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.nccl.warnings import Gpus, forms_of, report
from dgxcheck.readers.values import numbered
from dgxcheck.readers.wording import any_of, rows, wording

PROGRAMS_TOOL = "PyTorch"
XLA = "XLA"
TESTS = "nccl-tests"
SHOWN = 8
_RANK = r"(?:PG [^\[\]]{0,80}? )?Rank (?P<rank>\d{1,6})\]"
_TIMEOUT = LazyPattern(
    rf"\[{_RANK}.{{0,120}}?Watchdog caught collective operation timeout:\s{{0,4}}"
    r"WorkNCCL\(SeqNum=(?P<number>\d{1,12}), OpType=(?P<operation>\w{1,40})\b.{0,400}"
)
_BEHIND = LazyPattern(rf"\[{_RANK}.{{0,200}}?last completed NCCL work: (?P<number>\d{{1,12}}).{{0,200}}")
_SILENT = LazyPattern(rf"\[{_RANK}.{{0,120}}?(?:[Hh]eartbeat monitor timed out|'s watchdog got stuck for).{{0,400}}")
_DUMP = LazyPattern(r".{0,120}[Rr]eceived a dump signal .{0,40}from (?:this local )?rank .{0,400}")
_RESULT = LazyPattern(
    r".{0,200}?(?P<kind>nccl(?:UnhandledCuda|System|Internal|InvalidUsage|InvalidArgument|Remote)Error): .{0,200}"
)
_LAST = LazyPattern(r"(?:.{0,80}\s)?Last error:\s{0,4}(?P<text>.{0,400})")
_LAST_OF_XLA = LazyPattern(
    r"Last NCCL (?:warning\(error\)|error)[^']{0,60}\(may be unrelated\):? {0,2}'(?P<text>.{1,400})'",
    "may be unrelated",
)
"""xla/stream_executor/cuda/nccl_errors.h"""
_FAILED = LazyPattern(r"NCCL operation .{1,80} failed")
_ERROR = LazyPattern(r".{0,160}(?:DistBackendError|NCCL error in:|NCCL operation .{1,80} failed).{0,400}")
_TEST = LazyPattern(
    r".{0,120}?: (?:Test )?(?P<kind>NCCL|CUDA) failure \S{1,80}:\d{1,6} '(?P<text>[^']{1,200})'.{0,200}"
)
_MULTICAST = LazyPattern(r"Failed to bind NVLink SHARP \(NVLS\) Multicast memory of size \d{1,15} ?:.{0,200}")
"""The first line of a message of several, without what NCCL puts before it."""
_LOGGED = "NCCL WARN "
_PROGRAMS_CHATTER = LazyPattern(any_of("nccl/lines", "programs"))
_TABLE = (*rows("nccl/results"),)
_RESULTS = {row["result"]: wording(row) for row in _TABLE}
_WORDS = {row["words"]: row["result"] for row in _TABLE}
"""``ncclGetErrorString``."""


def read_programs(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Ranks that timed out, ranks that did not report or are behind, and the last errors of NCCL and CUDA."""
    job = _Job()
    understood: set[int] = set()
    chatter: set[int] = set()
    below = False
    for number, line in numbered(lines):
        if below and line and not _ERROR.fullmatch(line):
            job.warnings.append(line)
            understood.add(number)
            below = False
        elif job.take(line):
            understood.add(number)
            last = _LAST.fullmatch(line)
            below = last is not None and not last["text"].strip()
        elif _PROGRAMS_CHATTER.fullmatch(line):
            chatter.add(number)
    part = job.reports([line.partition(_LOGGED)[2] for line in lines if _LOGGED in line])
    part.lines, part.beside = understood, chatter
    return part.imported()


class _Job:
    """The ranks of one job, and the errors that they report."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        self.of_tests = False
        self._of_xla = False
        self._unrelated: list[str] = []
        """Words of NCCL that XLA repeats where no operation of NCCL failed."""
        self._waits: dict[int, tuple[int, str]] = {}
        self._completed: dict[int, int] = {}
        self._silent: set[int] = set()
        self._kinds: dict[str, None] = {}

    def take(self, line: str) -> bool:
        """True for a line that reports an error or a timeout."""
        if wait := _TIMEOUT.search(line) if "Watchdog" in line else None:
            self._waits.setdefault(int(wait["rank"]), (int(wait["number"]), wait["operation"]))
        elif done := _BEHIND.search(line) if "NCCL work" in line else None:
            self._completed.setdefault(int(done["rank"]), int(done["number"]))
        elif silent := _SILENT.search(line) if "eartbeat" in line or "watchdog" in line else None:
            self._silent.add(int(silent["rank"]))
        elif test := _TEST.fullmatch(line) if " failure " in line else None:
            self.of_tests = True
            if test["kind"] == "CUDA":
                self.warnings.append(f"Cuda failure '{test['text']}'")
            else:
                self._kinds[_WORDS.get(re.split(r" [(/]", test["text"])[0], "ncclInternalError")] = None
        elif _MULTICAST.fullmatch(line):
            self.warnings.append(line)
        elif last := _LAST.fullmatch(line):
            if last["text"].strip():
                self.warnings.append(last["text"])
        elif within := _LAST_OF_XLA.search(line):
            words = within["text"].rstrip(".")
            (self.warnings if _FAILED.search(line) else self._unrelated).append(words)
            self._of_xla = True
        elif kind := _RESULT.fullmatch(line) if "nccl" in line else None:
            self._kinds[kind["kind"]] = None
        else:
            return bool(_DUMP.fullmatch(line) or _ERROR.fullmatch(line))
        return True

    def reports(self, logged: Collection[str]) -> ToolPart:
        """One report on all ranks that timed out, then the errors of NCCL and CUDA; result codes only without those,
        and without such errors in ``logged``, NCCL's own lines."""
        found = ToolPart(self._tool())
        report(forms_of((None, text) for text in self.warnings), Gpus(), found)
        if self._waits or self._silent:
            found.add(HOST, "timeout", "warn", Fault.COLLECTIVE_TIMEOUT, self._text())
        kinds = () if self.warnings else self._kinds
        named = any(form.fault for _, form in forms_of((None, text) for text in logged if kinds))
        for kind in kinds:
            result = _RESULTS[kind]
            outcome, fault = ("note", None) if named else (result.outcome, result.fault)
            found.add(HOST, result.topic, outcome, fault, result.text)
        for text in dict.fromkeys(self._unrelated) if not found else ():
            found.add(HOST, "error", "note", None, text)
        return found

    def _tool(self) -> str:
        """Who prints them: XLA only where nothing is PyTorch's."""
        if self.of_tests:
            return TESTS
        of_pytorch = self._waits or self._silent or self._kinds
        return XLA if self._of_xla and not of_pytorch else PROGRAMS_TOOL

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


MOST_NAMED = 4
_SECTION = LazyPattern(r"(?P<of>#\d{1,6}-\d{1,6} \([0-9a-f]{1,16}\) )?(?P<kind>INCOMPLETE|DEAD|ERROR|MISMATCH|TIMEOUT)")
_WHO = LazyPattern(
    r"(?:Process \d{1,10} on node (?P<node>[\w.:%-]{1,80}) managing GPUs? (?P<gpus>[\d ,-]{1,60})"
    r"|Rank (?P<rank>\d{1,7})(?: (?P<state>(?:has|reported) .{1,60}?))? -- (?:GPU (?P<gpu>[\w:, -]{1,40}) managed by"
    r" process \d{1,10} on node (?P<home>[\w.:%-]{1,80})|\[.{1,80}\]))"
)
_WHAT = LazyPattern(any_of("nccl/lines", "ncclras, titles"))
_GROUP = LazyPattern(
    r"\d{1,6}(?: {1,12}\d{1,7}){2} {1,12}[\d-]{1,12}(?: {1,12}[\d-]{1,12}){2} {1,12}[A-Z]{2,12}"
    r" {1,12}(?P<errors>[A-Z]{2,12}(?:,[A-Z]{2,12}){0,3})"
)
_RAS_CHATTER = LazyPattern(any_of("nccl/lines", "ncclras"))
_FOUND: dict[str, tuple[Outcome, FaultKind]] = {
    "DEAD": ("fail", Fault.COLLECTIVE_TIMEOUT), "INCOMPLETE": ("warn", Fault.COLLECTIVE_TIMEOUT),
    "ERROR": ("fail", Fault.TOOL_ERROR), "MISMATCH": ("unknown", Fault.COLLECTIVE_TIMEOUT),
}  # fmt: skip
"""A running job shows ranks at different operations for a moment: ask again whether the same ones stay behind."""


def read_ras(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Processes that are dead or do not respond, ranks with errors, and ranks that are behind."""
    part = ToolPart("ncclras")
    kind, what, of, who = "", "", "", list[str]()
    shown, listed = set[str](), set[str]()

    def close() -> None:
        listed.add(kind)
        if kind in _FOUND and (what or who or of):
            more = f" and {len(who) - MOST_NAMED} more" if len(who) > MOST_NAMED else ""
            named = f": {', '.join(who[:MOST_NAMED])}{more}" if who else ""
            said = f"{what[:1].lower()}{what[1:]}" if what else f"communicators are {kind}"
            part.add(HOST, kind.lower(), *_FOUND[kind], f"{said}{named}")

    begun = False
    for number, line in numbered(lines):
        if section := _SECTION.fullmatch(line):
            close()
            kind, what, who, of, begun = section["kind"], "", [], section["of"] or "", True
        elif kind and (title := _WHAT.fullmatch(line)):
            what = what or title[0]
        elif kind and (match := _WHO.fullmatch(line)):
            who.append(_name(match))
        elif group := _GROUP.fullmatch(line):
            begun = True
            if group["errors"] == "OK":
                part.add(HOST, "communicators", "pass")
            else:
                shown.update(group["errors"].split(","))
        elif not (line and _RAS_CHATTER.fullmatch(line)):
            continue
        part.lines.add(number)
    close()
    for kind in sorted(shown - listed):  # the list below the table was cut off
        what, who = f"communicators are {kind}", []
        close()
    return part.imported() if begun and part else ()


def _name(match: re.Match[str]) -> str:
    """``rank 21, GPU 5 on node 10.0.0.3``"""
    if match["rank"] is None:
        return f"GPU {match['gpus'].strip()} on node {match['node']}"
    where = f", GPU {match['gpu']} on node {match['home']}" if match["home"] else ""
    state = f" {match['state']}" if match["state"] else ""
    return f"rank {match['rank']}{state}{where}"
