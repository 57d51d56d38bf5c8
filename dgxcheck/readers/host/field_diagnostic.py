"""The vendor's field diagnostic and what runs on MODS beneath it: the result, and the code of an error."""

from __future__ import annotations

import re

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.tool_report import Outcome
from dgxcheck.readers.dcgm.faults import fault_of
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bounded

TOOL = "field diagnostic"
_BEGIN = re.compile(
    r"(?:NVIDIA )?(?:\(R\) )?(?:field ?diag(?:nostics?)?|partner ?diag|nvqual|MODS)\b.{0,200}", re.IGNORECASE
)
_CODE = re.compile(r"(?:Error|Exit) Code\s?[=:]?\s?(?P<code>[0-9A-F]{3,16})(?: ?[:(] ?(?P<text>[^()]{1,120})\)?)?",
                   re.IGNORECASE)  # fmt: skip
_RESULT = re.compile(r"(?:Final |Overall |Test )?(?:Result|Status)s?\s?[:=]\s?(?P<word>PASS|FAIL|RETEST|CONFIG)(?:ED)?",
                     re.IGNORECASE)  # fmt: skip
_REST = re.compile(r"(?:MODS end|Driver|Package|Version|Command line|Start time|End time)\s{0,20}: .{1,160}")
_OUTCOMES: dict[str, Outcome] = {"pass": "pass", "fail": "fail", "retest": "unknown", "config": "unknown"}


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Results below a line that names the tool; a code of zeros is a pass."""
    reports = Reports(TOOL)
    understood: set[int] = set()
    begun: set[int] = set()
    for number, line in enumerate(bounded(lines)):
        text = line.strip(" \t*#=|")
        if _BEGIN.fullmatch(text):
            begun.add(number)
        elif not begun:
            continue
        elif code := _CODE.fullmatch(text):
            if code["code"].strip("0"):
                detail = f"error code {code['code']}" + (f": {code['text'].strip()}" if code["text"] else "")
                reports.add(HOST, "result", "fail", fault_of(code["text"] or ""), detail)
            else:
                reports.add(HOST, "result", "pass")
            understood.add(number)
        elif result := _RESULT.fullmatch(text):
            outcome = _OUTCOMES[result["word"].lower()]
            fault, shown = (None, "") if outcome == "pass" else (Fault.TEST_FAILED, f"result {result['word'].upper()}")
            if outcome != "fail" or not reports.has_fault(Fault.TEST_FAILED):
                reports.add(HOST, "result", outcome, fault, shown)
            understood.add(number)
        elif _REST.fullmatch(text):
            begun.add(number)
    if not reports:
        return ()
    return (Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(understood | begun)),)
