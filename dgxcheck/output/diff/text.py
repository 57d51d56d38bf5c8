"""Differences for people: the worst first, in 80 columns."""

from __future__ import annotations

from collections import Counter
from textwrap import fill

from dgxcheck.assessment.compare import Comparison
from dgxcheck.difference.model import Difference
from dgxcheck.output import provenance
from dgxcheck.output.diff.report import Report
from dgxcheck.output.plain_text import lines, visible

COLUMNS = 80
_INDENT = " " * 9


def render(report: Report) -> str:
    """A paragraph per difference, then what could not be compared, then the result."""
    comparison = report.comparison
    told = [_difference(each) for each in comparison.differences]
    seen = Counter(each.kind for each in comparison.differences)
    notes = [_wrapped(f"Note: {note}.", "", "  ") for note in comparison.notes]
    return lines([
        f"Old: {provenance.said(comparison.old.origin)}.",
        f"New: {provenance.said(comparison.new.origin)}.",
        *(["", *told] if told else []),
        *(["", *notes] if notes else []),
        "",
        *_score(comparison),
        f"Result: {comparison.verdict}; {seen['worse']} worse, {seen['better']} better, {seen['neutral']} neutral.",
    ])  # fmt: skip


def _difference(each: Difference) -> str:
    place = f" {each.bdf}" if each.bdf and each.bdf not in each.device else ""
    return _wrapped(f"{each.device}{place}: {each.message}", each.kind.upper().ljust(len(_INDENT)), _INDENT)


def _score(comparison: Comparison) -> list[str]:
    old, new = comparison.old, comparison.new
    if old.score is None or new.score is None or any(each.area == "score" for each in comparison.differences):
        return []
    against = visible(new.against) if old.against == new.against else f"{visible(old.against)}, {visible(new.against)}"
    return [f"Score: {old.score:g} -> {new.score:g} of 100 against {against}."]


def _wrapped(text: str, first: str, indent: str) -> str:
    return fill(visible(text), COLUMNS, initial_indent=first, subsequent_indent=indent,
                break_long_words=False, break_on_hyphens=False)  # fmt: skip
