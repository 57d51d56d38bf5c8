"""Why pairs of devices are not as good as they could be: each reason once, with the pairs that it holds for."""

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
    """What the matrix shows of it."""
    reasons: tuple[tuple[str, str, str], ...]
    """Id of the check, what it says, what lifts it (may be empty)."""


def text_of(precondition: Precondition) -> str:
    """What it means for one pair: its summary, else the message of its judgement."""
    return precondition.summary or precondition.judgement.message


def reasons(pairs: Sequence[Reasons]) -> list[str]:
    """Paragraphs: reason, remedy, pairs."""
    found: dict[tuple[str, str], list[Reasons]] = {}
    for pair in pairs:
        for id_, words, remedy in pair.reasons:
            found.setdefault((f"{pair.cell}: {id_}: {visible(words)}", remedy), []).append(pair)
    told = [""] if found else []
    for (line, remedy), held in found.items():
        who = "all pairs" if len(held) == len(pairs) else visible(_grouped(held))
        told += [line, *([f"  {visible(remedy)}"] if remedy else []), f"  {who}"]
    return told


def _grouped(pairs: Iterable[Reasons]) -> str:
    """``GPU0, GPU1 with mlx5_1; GPU2 with mlx5_0, mlx5_3``."""
    others: dict[str, list[str]] = {}
    for pair in pairs:
        others.setdefault(pair.a, []).append(pair.b)
    alike: dict[str, list[str]] = {}
    for name, names in others.items():
        alike.setdefault(", ".join(names), []).append(name)
    return "; ".join(f"{', '.join(each)} with {names}" for names, each in alike.items())
