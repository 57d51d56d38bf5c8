"""Unread lines of a text that belong to no known output: remarks of its author, and output of unknown tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dgxcheck.assessment.import_nearest import nearest
from dgxcheck.readers.alarming import mentions_trouble

MOST_LINES = 10_000
"""More unread lines than that are no words about an output."""


def beside(lines: Sequence[str], unread: Sequence[int], outputs: Iterable[frozenset[int]]) -> frozenset[int]:
    """Those of the unread lines that are part of no known output, by their numbers from 0.

    ``outputs`` are the lines of each output that was read. A paragraph is beside them if it touches none, stands within
    none, resembles the output of no known tool and mentions no error.
    """
    spans = [(min(of_one) - 1, max(of_one) + 1) for of_one in outputs if of_one]
    if not spans or len(unread) > MOST_LINES:
        return frozenset()
    aside: set[int] = set()
    for paragraph in _paragraphs(lines, unread):
        touches = any(first <= paragraph[-1] and paragraph[0] <= last for first, last in spans)
        words = [lines[at] for at in paragraph]
        if not touches and not nearest(words) and not mentions_trouble(words):
            aside.update(paragraph)
    return frozenset(aside)


def _paragraphs(lines: Sequence[str], unread: Sequence[int]) -> Iterator[list[int]]:
    """Runs of unread lines without a blank one between them."""
    run: list[int] = []
    for at in unread:
        if run and (at != run[-1] + 1 or not lines[at].strip()):
            yield run
            run = []
        run.append(at)
    if run:
        yield run
