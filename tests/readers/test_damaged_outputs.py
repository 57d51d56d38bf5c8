"""What readers make of the texts of their tests where a line is empty or its last word is cut off: what
``golden/readers-damaged.txt`` holds; ``make golden`` accepts it.

A total, a heading, a unit or the other half of a pair is what a paste lacks. A line of the golden file counts the facts
that go, in the order of the lines; the facts that become others stand above it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

import pytest
from golden_text import holds
from test_whole_outputs import read, texts

from dgxcheck.facts.missing import Json

MOST = 30
"""Lines of a text."""


def damaged(lines: Sequence[str], whole: Mapping[str, Json]) -> Iterator[str]:
    gone, cut = [], []
    for number, line in enumerate(lines[:MOST]):
        above, below = lines[:number], lines[number + 1 :]
        without, shorter = _facts([*above, "", *below]), _facts([*above, line.rpartition(" ")[0], *below])
        others = sum(fact != whole[key] for key, fact in shorter.items() if key in whole)
        gone.append(str(len(whole) - len(without)))
        cut.append(f"{len(whole) - len(shorter)}/{others}")
        yield from (f"  without line {number + 1}: {key} = {json.dumps(fact)}" for key, fact in sorted(without.items())
                    if whole.get(key) != fact and fact not in whole.values())  # fmt: skip
    yield f"  gone with a line: {' '.join(gone)}; gone and others with its last word: {' '.join(cut)}"


def _facts(lines: Sequence[str]) -> dict[str, Json]:
    return {key: fact for _, output in read(lines) for key, fact in output.facts.items()}


def rows() -> Iterator[str]:
    for text, module in texts().items():
        lines = text.splitlines()
        if len(lines) > 1 and (facts := _facts(lines)):
            yield f"{module}: {text.strip().splitlines()[0][:100]}"
            yield from damaged(lines, facts)


@pytest.mark.in_ci
def test_damaged_outputs() -> None:
    holds("readers-damaged", rows())
