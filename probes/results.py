"""What was measured of a machine, and what other tools found, as a recording states it."""

from __future__ import annotations

from typing import get_args

from dgxcheck.facts.faults import BY_WORD, Fault
from dgxcheck.facts.measurement import How, Measurement, NotMeasured
from dgxcheck.facts.missing import GAPS_BY_VALUE, Gap, Json, Missing, items_of, members_of, need, or_gap, text_of
from dgxcheck.facts.tool_outputs import Outcome, ToolReport
from dgxcheck.source.protocol import Source

MOST = 1e15
"""No figure of any kind is larger: bytes checked in a day at 10 TB/s."""
MOST_SAMPLES = 256

_HOWS: dict[str, How] = {how: how for how in get_args(How)}
_OWN = ("value", "unit", "method", "tool", "how", "samples", "runs")


@or_gap
def measurement(source: Source) -> tuple[Measurement, ...]:
    """Every measurement, in the order of its key."""
    return tuple(_measurement(key, fact) for key, fact in sorted(need(source.measured()).items()))


def _measurement(key: str, fact: Json) -> Measurement:
    _, kind, a, *rest = [*key.split(" "), "", ""]
    members = members_of(fact)
    unit, method, tool, how = (text_of(members.get(name)) for name in ("unit", "method", "tool", "how"))
    return Measurement(
        kind=kind, a=a, b=" ".join(filter(None, rest)), value=_value(key, fact), unit=unit, method=method, tool=tool,
        how=_HOWS.get(how, "imported"), samples=_numbers(members.get("samples")), runs=_runs(members.get("runs")),
        more={name: value for name, value in members.items() if name not in _OWN},
    )  # fmt: skip


def _value(key: str, fact: Json) -> int | float | bool | Missing | NotMeasured | None:
    if not isinstance(fact, dict):
        return Missing(Gap.GARBLED, key, "no object in the recording")
    if "missing" in fact:
        gap = GAPS_BY_VALUE.get(text_of(fact.get("missing")), Gap.GARBLED)
        return Missing(gap, key, text_of(fact.get("detail")))
    code = fact.get("code")
    code = code if isinstance(code, int) else None
    if "skipped" in fact:
        return NotMeasured(text_of(fact.get("skipped")), text_of(fact.get("detail")), code)
    if "failed" in fact:
        return NotMeasured("failed", text_of(fact.get("detail")), code, text_of(fact.get("failed")))
    if (value := fact.get("value")) is None and "value" in fact:
        return None
    if isinstance(value, int | float) and abs(value) <= MOST:
        return value
    return Missing(Gap.GARBLED, key, "no figure in the recording")


def _numbers(value: Json) -> tuple[float, ...]:
    found = items_of(value)[:MOST_SAMPLES]
    return tuple(float(each) for each in found if isinstance(each, int | float) and abs(each) <= MOST)


def _runs(value: Json) -> tuple[float, ...]:
    """Of ``[{"value": .., "from": ..}, ..]`` the values."""
    return _numbers([each.get("value") for each in map(members_of, items_of(value))])


KIND = "report"
_MOST_TEXT = 240
_OUTCOMES: dict[str, Outcome] = {outcome: outcome for outcome in get_args(Outcome)}


@or_gap
def tool_reports(source: Source) -> tuple[ToolReport, ...]:
    """Everything under ``stated report SUBJECT TOPIC``; a result that is none of the known ones is left out."""
    facts = sorted(need(source.stated()).items())
    found = [_report(key.split(" "), fact) for key, fact in facts if key.split(" ")[1:2] == [KIND]]
    return tuple(report for report in found if report is not None)


def _report(words: list[str], fact: Json) -> ToolReport | None:
    members = members_of(fact)
    outcome = _OUTCOMES.get(str(members.get("outcome")))
    if outcome is None or len(words) < 4:
        return None
    tool, word, text = (text_of(members.get(name))[:_MOST_TEXT] for name in ("tool", "fault", "text"))
    count = members.get("count")
    is_word = not word or word in BY_WORD
    return ToolReport(
        subject=words[2],
        tool=tool,
        topic=" ".join(words[3:]),
        outcome=outcome,
        fault=BY_WORD.get(word) if is_word else Fault.TEST_FAILED,
        text=text if is_word else f"unknown fault {word}: {text}"[:_MOST_TEXT],
        count=count if isinstance(count, int) and 0 < count < 10**9 else 1,
    )
