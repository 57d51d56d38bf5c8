"""``nvidia-healthmon`` of the Tesla Deployment Kit, which DCGM and dgxcheck replace: its tests of host and GPUs."""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.facts.tool_report import Outcome
from dgxcheck.readers.dcgm.faults import fault_of
from dgxcheck.readers.listing import INDEX
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bounded, gpu

TOOL = "nvidia-healthmon"
_OUTCOMES: dict[str, Outcome | None] = {
    "SUCCESS": "pass", "SKIPPED": None, "WARNING": "warn", "ERROR": "fail", "CRITICAL ERROR": "fail",
}  # fmt: skip
_WORDS = "|".join(_OUTCOMES)
_BEGIN = re.compile(rf"Loading Config: (?:{_WORDS})|Global Tests")
_GPU = re.compile(r"GPU (?P<bdf>[0-9A-Fa-f:.]{7,16}) #(?P<index>\d{1,3}) : .{1,100}")
_TEST = re.compile(rf"(?P<name>[A-Z][\w /-]{{2,60}}?)(?:(?:: ?| )\[?(?P<word>{_WORDS})\]?)?")
_RESULT = re.compile(rf"Result: \[?(?P<word>{_WORDS})\]?")
_OF_TEST = (
    (Fault.SLOW, "bandwidth"), (Fault.LINK_NARROW, "width"), (Fault.LINK_SLOW, "generation"),
    (Fault.OVERHEATING, "temperature"), (Fault.INFOROM, "inforom"), (Fault.NOUVEAU, "blacklist"),
    (Fault.GPU_MISSING, "count"), (Fault.ECC_UNCORRECTED, "ecc"),
)  # fmt: skip
"""Fault by a word of the test's name, if its message names none."""
_SUM = re.compile(
    r"(?:Global Test|Device|System) Results: \d{1,6} success, .{1,80}|-{20,100}|One or more tests didn't run\."
)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Results of every test that ran; the text of one that did not succeed says what is wrong."""
    reports = Reports(TOOL)
    order: dict[int, str] = {}
    understood: set[int] = set()
    subject, test, text = "", "", ""
    for number, raw in enumerate(bounded(lines)):
        line = raw.strip()
        if _BEGIN.fullmatch(line):
            subject, test = HOST, ""
        elif match := _GPU.fullmatch(line):
            bdf, index = as_bdf(match["bdf"]), gpu(match["index"])
            if bdf is None or index is None:
                continue
            subject, test, order[index] = f"GPU{index}", "", bdf
        elif not subject:
            continue
        elif _SUM.fullmatch(line):
            test = ""
        elif result := _RESULT.fullmatch(line) if test else None:
            _add(reports, subject, test, result["word"], text)
            test = ""
        elif not test and (one := _TEST.fullmatch(line)):
            test, text = ("", "") if one["word"] else (one["name"], "")
            if one["word"]:
                _add(reports, subject, one["name"], one["word"], "")
        elif test and line:
            text = f"{text} {line}".strip()
        elif line:
            subject = ""
            continue
        understood.add(number)
    if not reports:
        return ()
    facts: dict[str, Json] = dict(reports.facts())
    if [*sorted(order)] == [*range(len(order))]:
        facts |= {f"{INDEX} {index}": bdf for index, bdf in sorted(order.items())}
    return (Imported(tool=TOOL, facts=facts, understood=frozenset(understood)),)


def _add(reports: Reports, subject: str, test: str, word: str, text: str) -> None:
    outcome = _OUTCOMES[word]
    topic = re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-")
    if outcome == "pass":
        reports.add(subject, topic, outcome)
    elif outcome is not None:
        fault = fault_of(text)
        if fault is Fault.TEST_FAILED:
            fault = next((fault for fault, part in _OF_TEST if part in topic.replace("-", "")), fault)
        reports.add(subject, topic, outcome, fault, f"test {test}: {text or word}")
