"""All that readers make of the texts of their tests is what ``golden/readers.txt`` holds; ``make golden`` accepts it.

The texts are found by themselves: in the variables that the test modules define, in the arguments of their tests, and
in their source.
"""

from __future__ import annotations

import ast
import importlib
import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import pytest
from golden_text import holds

from dgxcheck.readers.any_text import outputs
from dgxcheck.readers.derived import completed
from dgxcheck.readers.layout.undo import undone
from dgxcheck.readers.model import Imported

LONGEST = 20_000
FOREIGN = "nobody wrote 12 of these: lines"
MADE = ("test_bug_reports_", "test_smi_")
"""Begin the names of modules whose texts are made from recordings, or are such recordings."""


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for member in value.items():
            yield from strings(member)
    elif isinstance(value, tuple | list):
        for member in value:
            yield from strings(member)


def texts() -> dict[str, str]:
    """By text the module that has it first."""
    found: dict[str, str] = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if not path.stem.startswith(MADE) and path != Path(__file__):
            nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
            written = [node.value for node in nodes if isinstance(node, ast.Constant)]
            imports = [node.names for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
            foreign = {alias.asname or alias.name for names in imports for alias in names}
            members = vars(importlib.import_module(path.stem)).items()
            values = [value for name, value in members if name not in foreign]
            marks = [mark.args for value in values for mark in getattr(value, "pytestmark", ())]
            every = strings([values, marks, written])
            found |= {text: found.get(text, path.stem) for text in every if len(text) < LONGEST}
    return found


def ranges(numbers: frozenset[int]) -> str:
    """``1-3 7``, counted from 1."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(sorted(numbers)), lambda at: at[1] - at[0])]
    return " ".join(f"{run[0] + 1}-{run[-1] + 1}" if len(run) > 1 else str(run[0] + 1) for run in runs)


def facts_of(host: str, output: Imported) -> Iterator[str]:
    of = f" of {output.host or host}" if output.host or host else ""
    yield f"  {output.tool}{of}, lines {ranges(output.understood)}"
    yield from (f"    {key} = {json.dumps(fact)}" for key, fact in sorted(output.facts.items()))


def read(lines: Sequence[str]) -> list[tuple[str, Imported]]:
    return [*outputs(undone((*lines,)))]


def short(found: Sequence[tuple[str, Imported]]) -> str:
    facts = sum(len(output.facts) for _, output in found)
    return f"{facts} facts of lines {ranges(frozenset().union(*(output.understood for _, output in found)))}"


def whole() -> Iterator[str]:
    """And in short what is made of the same lines with one of nobody in place of the first that is understood, and in
    reverse order: rows without their heading, and what ends before it begins."""
    for text, module in texts().items():
        lines = text.splitlines()
        if found := read(lines):
            first = min(min(output.understood) for _, output in found)
            yield f"{module}: {text.strip().splitlines()[0][:100]}"
            yield from (line for each in found for line in facts_of(*each))
            facts = {key: fact for _, output in found for key, fact in output.facts.items()}
            yield from (f"  derived: {key} = {json.dumps(fact)}" for key, fact in sorted(completed(facts).items())
                        if key not in facts)  # fmt: skip
            if len(lines) > 1:
                yield f"  without line {first + 1}: {short(read([*lines[:first], FOREIGN, *lines[first + 1 :]]))}"
                yield f"  reversed: {short(read(lines[::-1]))}"


@pytest.mark.in_ci
def test_whole_outputs() -> None:
    holds("readers", whole())


@pytest.mark.in_ci
def test_what_is_first_in_a_text_is_read_as_below_an_empty_line() -> None:
    """Whichever row of an output it is."""

    def of(lines: Sequence[str], above: int) -> list[tuple[str, str, set[int], str]]:
        return [(host, output.tool, {number - above for number in output.understood},
                 re.sub(r"\bline \d+", "", json.dumps(output.facts))) for host, output in read(lines)]  # fmt: skip

    for number, text in enumerate(texts()):
        lines = text.splitlines()
        if understood := sorted(frozenset().union(*(output.understood for _, output in read(lines)))):
            begun = lines[understood[number % len(understood)] :]
            assert of(begun, 0) == of(["", *begun], 1), begun
