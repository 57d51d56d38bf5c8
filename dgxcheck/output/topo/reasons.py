"""Reasons for the verdicts of pairs of devices: each reason once, with the pairs it applies to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dgxcheck.checks.engine.precondition import Precondition
from dgxcheck.facts.record import Record
from dgxcheck.output.plain_text import visible


class Reasons(Record, kw_only=False):
    """One pair."""

    a: str
    b: str
    cell: str
    """The pair's cell in the matrix."""
    reasons: tuple[tuple[str, str, str], ...]
    """Id of the check, its text, its remedy (may be empty)."""


def text_of(precondition: Precondition) -> str:
    """The precondition's summary for one pair, else the message of its judgement."""
    return precondition.summary or precondition.judgement.message


def reasons(pairs: Sequence[Reasons]) -> list[str]:
    """Paragraphs: reason, remedy, pairs."""
    pairs_by_reason: dict[tuple[str, str], list[Reasons]] = {}
    for pair in pairs:
        for id_, words, remedy in pair.reasons:
            pairs_by_reason.setdefault((f"{pair.cell}: {id_}: {visible(words)}", remedy), []).append(pair)
    paragraphs = [""] if pairs_by_reason else []
    for (line, remedy), affected in pairs_by_reason.items():
        names = "all pairs" if len(affected) == len(pairs) else visible(_grouped(affected))
        paragraphs += [line, *([f"  {visible(remedy)}"] if remedy else []), f"  {names}"]
    return paragraphs


def _grouped(pairs: Iterable[Reasons]) -> str:
    """``GPU0, GPU1 with mlx5_1; GPU2 with mlx5_0, mlx5_3``."""
    targets: dict[str, list[str]] = {}
    for pair in pairs:
        targets.setdefault(pair.a, []).append(pair.b)
    sources: dict[str, list[str]] = {}
    for name, names in targets.items():
        sources.setdefault(", ".join(names), []).append(name)
    return "; ".join(f"{', '.join(group)} with {names}" for names, group in sources.items())
