"""Differences as text: the worst first."""

from __future__ import annotations

from collections import Counter

from dgxcheck.assessment.compare import Comparison
from dgxcheck.difference.model import Difference
from dgxcheck.output import provenance
from dgxcheck.output.plain_text import lines, visible
from dgxcheck.output.report import DiffReport


def render(report: DiffReport) -> str:
    """A paragraph per difference, then what could not be compared, then the result."""
    comparison = report.comparison
    paragraphs = [_difference(difference) for difference in comparison.differences]
    counts = Counter(difference.kind for difference in comparison.differences)
    totals = ", ".join(f"{counts[kind]} {kind}" for kind in ("worse", "better", "neutral"))
    notes = [visible(f"Note: {note}.") for note in comparison.notes]
    return lines([
        f"Old: {provenance.describe(comparison.old.origin)}.",
        f"New: {provenance.describe(comparison.new.origin)}.",
        *(["", *paragraphs] if paragraphs else []),
        *(["", *notes] if notes else []),
        "",
        *_score(comparison),
        f"Result: {comparison.verdict}; {totals}.",
    ])  # fmt: skip


def _difference(difference: Difference) -> str:
    place = f" {difference.bdf}" if difference.bdf and difference.bdf not in difference.device else ""
    return f"{difference.kind.upper():<7}  {visible(f'{difference.device}{place}: {difference.message}')}"


def _score(comparison: Comparison) -> list[str]:
    old, new = comparison.old, comparison.new
    if (
        old.score is None
        or new.score is None
        or any(difference.area == "score" for difference in comparison.differences)
    ):
        return []
    against = visible(new.against) if old.against == new.against else f"{visible(old.against)}, {visible(new.against)}"
    return [f"Score: {old.score:g} -> {new.score:g} of 100 against {against}."]
