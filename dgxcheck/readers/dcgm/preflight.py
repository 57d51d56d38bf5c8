"""The preflight checks of NVSentinel: results of DCGM's tests as JSON log records, each on one line or laid out by jq.

Source: https://github.com/NVIDIA/NVSentinel (preflight-checks): ``event``, ``level``, ``gpu``, ``test``, ``detail``,
``error_code``; the summary has the counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json, members_of
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.dcgm.messages import OUTCOMES, fault_of
from dgxcheck.readers.model import HOST, Imported, Reports, ToolPart, topic_of
from dgxcheck.readers.values import bounded

TOOL = "preflight"
_MEMBER = LazyPattern(r"\"(?P<name>[\w-]{1,40})\": ?(?P<value>\".{0,2000}\"|-?[\d.]{1,20}|true|false|null),?")
_OF_TEST = frozenset(("test", "level"))
_OF_SUMMARY = frozenset(("passed", "failed", "total"))
_GPU = LazyPattern(r"\bGPU (\d{1,2})\b")
Entry = dict[str, Json]


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every test that warned or failed, of the GPU that its text names; failed ones that the text does not show."""
    part = ToolPart(TOOL)
    shown = failed = 0
    for entry, where in _entries(bounded(lines)):
        if not str(entry.get("module", "")).startswith("preflight"):
            continue
        part.lines |= where
        if entry.keys() >= _OF_TEST:
            shown += _add(part, entry) == "fail"
        elif entry.keys() >= _OF_SUMMARY:
            failed += _count(entry, "failed")
            if _count(entry, "passed") == _count(entry, "total"):
                part.add(HOST, "summary", "pass")
    if failed > shown:
        text = f"{failed} of its tests failed, of which the text shows {shown}"
        part.add(HOST, "summary", "fail", Fault.TEST_FAILED, text)
    return part.imported()


def _add(reports: Reports, entry: Entry) -> Outcome:
    outcome = OUTCOMES.get(str(entry["level"]).lower(), "pass")
    test, detail = str(entry["test"])[:60], str(entry.get("detail", entry.get("message", "")))
    named = _GPU.search(detail)
    subject = f"GPU{int(named[1])}" if named else HOST
    if outcome == "pass":
        reports.add(subject, topic_of(test), outcome)
    else:
        text = f"test {test}: {detail}" if detail else f"test {test}"
        reports.add(subject, topic_of(test), outcome, fault_of(detail), text)
    return outcome


def _count(entry: Entry, name: str) -> int:
    value = entry.get(name)
    return value if isinstance(value, int) else 0


def _entries(lines: tuple[str, ...]) -> Iterator[tuple[Entry, set[int]]]:
    """Objects without objects in them, with their lines; one that the text cuts ends there, and tells its module.

    A record that was cut before ``module`` has that of the record before it.
    """
    entry: Entry = {}
    where: set[int] = set()
    module: Json = None
    for number, line in enumerate((*lines, "}")):
        text = line.strip()
        if text.startswith("{") and text.endswith("}"):
            yield _whole(text), {number}
        elif text == "{":
            entry, where = {}, {number}
        elif where and (member := _MEMBER.fullmatch(text)):
            entry[member["name"]] = _whole(f'{{"value": {member["value"]}}}').get("value")
            where.add(number)
        elif where:
            ends = {number} if text in ("}", "},") and number < len(lines) else set()
            module = entry.setdefault("module", module)
            yield entry, where | ends
            entry, where = {}, set()


def _whole(text: str) -> Entry:
    try:
        return members_of(json.loads(text))
    except (ValueError, RecursionError):
        return {}
