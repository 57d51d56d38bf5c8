"""Texts for the tests of ``dgxcheck.readers``, and what is common to reading them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from judging import of_text

from dgxcheck.assessment.importing.texts import lines as lines_of
from dgxcheck.facts.missing import Json
from dgxcheck.readers import any_text
from dgxcheck.readers.any_text import outputs
from dgxcheck.readers.layout.undo import undone
from dgxcheck.readers.model import Imported, Reader


def one(reader: Reader, text: str) -> Imported:
    """The only tool that the reader finds in a text."""
    (found,) = reader(tuple(text.splitlines()))
    return found


def values(found: Imported | Mapping[str, Json]) -> dict[str, Json]:
    """What each fact says, by its key without ``measure``."""
    facts = found.facts if isinstance(found, Imported) else found
    return {
        key.removeprefix("measure "): fact.get("value", fact.get("failed")) if isinstance(fact, dict) else fact
        for key, fact in facts.items()
    }


def member(found: Imported, key: str, name: str) -> Json:
    """A member of one fact; KeyError where it has none."""
    fact = found.facts[f"measure {key}"]
    assert isinstance(fact, dict)
    return fact[name]


def unread(found: Sequence[Imported], text: str) -> list[int]:
    """The numbers, from 1, of the lines that nobody accounts for."""
    understood = {number for part in found for number in part.understood}
    return [number + 1 for number, line in enumerate(text.splitlines()) if line.strip() and number not in understood]


def left_over(text: str) -> list[str]:
    """The lines that no reader accounts for."""
    lines = lines_of(text.encode(), "f")
    layout = undone(lines)
    return [lines[number] for number in any_text.unread(lines, layout, [output for _, output in outputs(layout)])]


def assert_read(case: tuple[str, tuple[str, ...]], folder: Path) -> None:
    """Of a pasted text ``health`` finds these causes, as ``of_text`` has them, and a reader accounts for each line."""
    text, causes = case
    assert of_text(text, folder)[0] == causes
    assert left_over(text) == []


def reported(output: Imported) -> list[tuple[Json, Json, Json]]:
    """Outcome, fault and text of every result."""
    found = [fact for fact in output.facts.values() if isinstance(fact, dict) and "outcome" in fact]
    return [(fact["outcome"], fact["fault"], fact["text"]) for fact in found]


def numbers(fact: Json) -> list[float]:
    """All numbers in a fact, however deep."""
    if isinstance(fact, bool) or fact is None or isinstance(fact, str):
        return []
    if isinstance(fact, int | float):
        return [float(fact)]
    inside = fact.values() if isinstance(fact, dict) else fact
    return [number for part in inside for number in numbers(part)]


def sane(found: Imported) -> bool:
    """No number of any fact is infinite, not a number, negative or beyond what hardware can do."""
    every = [number for fact in found.facts.values() for number in numbers(fact)]
    return all(math.isfinite(number) and 0 <= number <= 1e13 for number in every)


def results(output: Imported) -> dict[str, tuple[Json, Json, Json]]:
    """Subject and topic -> outcome, fault, number."""
    return {key.removeprefix("stated report "): (fact["outcome"], fact["fault"], fact["count"])
            for key, fact in output.facts.items() if isinstance(fact, dict)}  # fmt: skip
