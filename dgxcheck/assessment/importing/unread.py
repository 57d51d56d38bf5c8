"""Unread lines of a text: the tool that they look most like, and those that belong to no known output.

A pattern matches only what that tool alone prints: naming no tool is better than naming the wrong one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.package_files import table
from dgxcheck.readers.alarming import mentions_trouble

NEAREST = tuple(
    (row["tool"], LazyPattern(row["pattern"], *json.loads(row["literals"] or "[]")), row["lacks"])
    for row in table("assessment/importing/nearest.tsv")
)
LONGEST = 400
MOST_LINES = 10_000


def nearest(lines: Sequence[str]) -> str:
    """``most like the output of nvidia-smi topo -m, but without ..``; empty where it is like none."""
    hits: dict[int, int] = {}
    for line in lines[:MOST_LINES]:
        for number, (_, pattern, _) in enumerate(NEAREST):
            if pattern.search(line[:LONGEST]):
                hits[number] = hits.get(number, 0) + 1
    if not hits:
        return ""
    tool, _, lacking = NEAREST[max(hits, key=lambda number: (hits[number], -number))]
    return f"most like the output of {tool}, but without {lacking}"


MOST_UNREAD = 10_000
"""More unread lines than that are no words about an output."""


def beside(lines: Sequence[str], unread: Sequence[int], outputs: Iterable[frozenset[int]]) -> frozenset[int]:
    """Those of the unread lines that are part of no known output, by their numbers from 0.

    ``outputs`` are the lines of each output that was read. A paragraph is beside them if it touches none, stands within
    none, resembles the output of no known tool and mentions no error.
    """
    spans = {(min(of_one) - 1, max(of_one) + 1) for of_one in outputs if of_one}
    if not spans or len(unread) > MOST_UNREAD:
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
