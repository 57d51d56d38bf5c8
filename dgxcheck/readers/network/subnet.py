"""``sminfo`` and the summary of ``ibdiagnet``: the subnet manager, and the errors found in the fabric."""

from __future__ import annotations

import re

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.tool_report import Outcome
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bare, bounded

SMINFO, IBDIAGNET = "sminfo", "ibdiagnet"
_MASTER = re.compile(
    r"sminfo: sm lid \d{1,5} sm guid 0x[0-9a-f]{1,16}, activity count \d{1,12} priority \d{1,3} state \d"
    r" SMINFO_(?P<state>[A-Z]{3,12})"
)
_NONE = re.compile(r"(?:.{0,40}sminfo: )?iberror: .{0,20}failed: query.{0,40}|sminfo: iberror: .{1,80}")
_TIMEOUT = re.compile(r"ibwarn: \[\d{1,10}\] \w{2,40}: .{1,200}")
_HEAD = re.compile(r"(?:-I- )?Stage\s{1,40}Warnings\s{1,12}Errors(?:\s{1,20}Comment)?")
_STAGE = re.compile(
    r"(?:-[IWE]- )?(?P<stage>[A-Z][\w /().-]{2,40}?)\s{2,60}(?P<warnings>\d{1,9})\s{2,14}(?P<errors>\d{1,9})"
    r"(?:\s{1,20}\S.{0,120})?"
)
_LINE = re.compile(r"-(?P<kind>[EW])- (?P<text>\S.{2,300})")
_CHATTER = re.compile(r"-I- .{1,300}|-{10,120}|Summary|[A-Z][\w /()-]{2,40}|Loading IBDIAGNET from: .{0,120}")
_STAGES: tuple[tuple[str, FaultKind], ...] = (
    ("speed", Fault.PORT_SLOW), ("width", Fault.PORT_SLOW), ("subnet manager", Fault.NO_SUBNET_MANAGER),
    ("port counters", Fault.PORT_ERRORS), ("cable", Fault.PORT_MODULE), ("ber", Fault.PORT_ERRORS),
    ("link", Fault.PORT_DOWN),
)  # fmt: skip
"""Words of a stage's name, and what an error in it stands for."""


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Both tools."""
    return (*_sminfo(lines), *_ibdiagnet(lines))


def _sminfo(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    reports = Reports(SMINFO)
    understood: set[int] = set()
    warnings: set[int] = set()
    for number, raw in enumerate(bounded(lines)):
        line = bare(raw)
        if answer := _MASTER.fullmatch(line):
            master = answer["state"] == "MASTER"
            text = "" if master else f"the subnet manager that answers is {answer['state']}"
            reports.add(HOST, "state", "pass" if master else "warn", None if master else Fault.NO_SUBNET_MANAGER, text)
        elif _NONE.fullmatch(line):
            reports.add(HOST, "state", "warn", Fault.NO_SUBNET_MANAGER, "no subnet manager answers")
        elif _TIMEOUT.fullmatch(line):
            warnings.add(number)
            continue
        else:
            continue
        understood.add(number)
    if not understood:
        return ()
    return (Imported(tool=SMINFO, facts=reports.facts(), understood=frozenset(understood | warnings)),)


def _ibdiagnet(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The stages of its summary; where the summary is cut off, the errors and warnings that are logged above it."""
    reports = Reports(IBDIAGNET)
    understood: set[int] = set()
    chatter: set[int] = set()
    logged: list[tuple[str, str]] = []
    below = False
    for number, raw in enumerate(bounded(lines)):
        line = raw.strip()
        if _HEAD.fullmatch(line):
            below = True
        elif below and (stage := _STAGE.fullmatch(line)):
            _judge(reports, stage["stage"].strip(), int(stage["warnings"]), int(stage["errors"]))
        elif row := _LINE.fullmatch(line):
            logged.append((row["kind"], row["text"]))
        else:
            chatter |= {number} if _CHATTER.fullmatch(line) else set()
            below = below and bool(line)
            continue
        understood.add(number)
    if not reports:
        begun = any(raw.strip().startswith("-I- ") for raw in lines)
        for kind, text in logged if begun else ():
            reports.add(HOST, "line", "warn" if kind == "E" else "note", _fault(text) if kind == "E" else None, text)
    if not reports:
        return ()
    return (Imported(tool=IBDIAGNET, facts=reports.facts(), understood=frozenset(understood | chatter)),)


def _judge(reports: Reports, stage: str, warnings: int, errors: int) -> None:
    topic = re.sub(r"\W+", "-", stage.lower()).strip("-")
    outcome: Outcome = "warn" if errors else "note" if warnings else "pass"
    text = f"{stage}: {errors} errors, {warnings} warnings" if errors or warnings else ""
    reports.add(HOST, topic, outcome, _fault(stage) if errors else None, text)


def _fault(words: str) -> FaultKind:
    lower = words.lower()
    return next((fault for word, fault in _STAGES if word in lower), Fault.TEST_FAILED)
