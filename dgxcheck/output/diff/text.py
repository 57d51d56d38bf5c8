"""Differences as text: the worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from dgxcheck.assessment.compare import Comparison
from dgxcheck.checks.engine.finding import first_of
from dgxcheck.difference.model import Difference
from dgxcheck.facts.typical import gathered
from dgxcheck.output.origin import source_text
from dgxcheck.output.plain_text import lines, visible
from dgxcheck.output.report import DiffReport

FEW = 4
"""So many devices are named each; more that changed in the same way together."""


def render(report: DiffReport) -> str:
    """A paragraph per difference, then what could not be compared, then the result."""
    comparison = report.comparison
    paragraphs = [
        f"{alike[0].kind.upper():<7}  {visible(f'{device_of(alike)}: {alike[0].message}')}"
        for alike in grouped(comparison.differences)
    ]
    notes = [visible(f"Note: {note}.") for note in comparison.notes]
    only_neutral = comparison.verdict == "same" and paragraphs
    return lines([
        f"Old: {source_text(comparison.old.origin)}.",
        f"New: {source_text(comparison.new.origin)}.",
        *kinds_of(comparison),
        *(["", *paragraphs] if paragraphs else []),
        *(["", *notes] if notes else []),
        "",
        *_score(comparison),
        f"Result: {'neither worse nor better' if only_neutral else comparison.verdict}; {totals_of(comparison)}.",
    ])  # fmt: skip


def totals_of(comparison: Comparison) -> str:
    """``1 worse, 0 better, 2 neutral``"""
    counts = Counter(difference.kind for difference in comparison.differences)
    return ", ".join(f"{counts[kind]} {kind}" for kind in ("worse", "better", "neutral"))


def kinds_of(comparison: Comparison) -> list[str]:
    """A sentence where the two are of different kinds; else nothing."""
    old, new = comparison.old.report.against, comparison.new.report.against
    return [f"Two kinds of machine: {visible(old)} and {visible(new)}."] if old and new and old != new else []


def grouped(differences: Iterable[Difference]) -> list[list[Difference]]:
    """Those that many devices have in common together, at the place of the first; the others alone."""
    alike = gathered(((difference.kind, difference.message), difference) for difference in differences)
    return [group for those in alike.values() for group in ([those] if len(those) > FEW else [[one] for one in those])]


def device_of(alike: Sequence[Difference]) -> str:
    """``GPU3 0000:0b:00.0``; of many the first."""
    if len(alike) > 1:
        return first_of([difference.device for difference in alike])
    bdf = alike[0].bdf
    return f"{alike[0].device} {bdf}" if bdf and bdf not in alike[0].device else alike[0].device


def _score(comparison: Comparison) -> list[str]:
    old, new = comparison.old.report, comparison.new.report
    if old.score is None or new.score is None or any(each.area == "score" for each in comparison.differences):
        return []
    against = visible(new.against) if old.against == new.against else f"{visible(old.against)}, {visible(new.against)}"
    return [f"Score: {old.score:g} -> {new.score:g} of 100 against {against}."]
