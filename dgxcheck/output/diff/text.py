"""Differences for people: the worst first, in 80 columns."""

from __future__ import annotations

from collections import Counter
from textwrap import fill

from dgxcheck.difference.model import Difference
from dgxcheck.output import provenance
from dgxcheck.output.diff.report import Report
from dgxcheck.output.plain_text import lines, visible

COLUMNS = 80
_INDENT = " " * 9


def render(report: Report) -> str:
    """A paragraph per difference, then what could not be compared, then the result."""
    told = [_difference(each) for each in report.differences]
    seen = Counter(each.kind for each in report.differences)
    notes = [_wrapped(f"Note: {note}.", "", "  ") for note in report.notes]
    return lines([
        f"Old: {provenance.said(report.old.origin)}.",
        f"New: {provenance.said(report.new.origin)}.",
        *(["", *told] if told else []),
        *(["", *notes] if notes else []),
        "",
        *_score(report),
        f"Result: {report.verdict}; {seen['worse']} worse, {seen['better']} better, {seen['neutral']} neutral.",
    ])  # fmt: skip


def _difference(each: Difference) -> str:
    place = f" {each.bdf}" if each.bdf and each.bdf not in each.device else ""
    return _wrapped(f"{each.device}{place}: {each.message}", each.kind.upper().ljust(len(_INDENT)), _INDENT)


def _score(report: Report) -> list[str]:
    old, new = report.old, report.new
    if old.score is None or new.score is None or any(each.area == "score" for each in report.differences):
        return []
    against = visible(new.against) if old.against == new.against else f"{visible(old.against)}, {visible(new.against)}"
    return [f"Score: {old.score:g} -> {new.score:g} of 100 against {against}."]


def _wrapped(text: str, first: str, indent: str) -> str:
    return fill(visible(text), COLUMNS, initial_indent=first, subsequent_indent=indent,
                break_long_words=False, break_on_hyphens=False)  # fmt: skip
