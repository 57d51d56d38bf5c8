"""``dgxcheck import --show``: which outputs were recognised, and which lines were left and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from dgxcheck.assessment.importing.bundle import Opened
from dgxcheck.assessment.importing.recording import TextsRead
from dgxcheck.assessment.importing.texts import InputText
from dgxcheck.checks.engine.finding import counted
from dgxcheck.facts.sysfs import cpulist, runs_of
from dgxcheck.output.plain_text import at_most
from dgxcheck.readers.alarming import alarming
from dgxcheck.readers.bundles.sections import Section

SHOWN = 60
"""Characters of a title."""
CONTRADICTS = "contradicts earlier output"
AGAIN = "shows GPUs of earlier output another time"
MOST_ALARMS = 20
"""Unread lines of a text that are shown."""
LONGEST = 160
_LEFT = "not needed"
_UNKNOWN = "no output of a supported tool"
"""In a directory: its files were put there to be read."""
_HEAD = ("line", "lines", "facts", "output")


def recognised(reading: TextsRead) -> list[str]:
    """A table per file; lines are counted from 1."""
    found = [] if reading.bundle is None else [*_bundle(reading.bundle)]
    for text in reading.texts:
        found += [*([""] if found else []), *_text(text, reading)]
    return found


def _text(text: InputText, reading: TextsRead) -> Iterator[str]:
    yield f"{text.name}: {counted(len(text.lines) - (text.lines[-1:] == ('',)), 'line')}"
    if text.selection:
        yield text.selection
    found = (part.found for part in reading.parts if part.file == text.name)
    yield from _table([(min(each.understood, default=0) + 1, len(each.understood), len(each.facts), each.tool)
                       for each in found])
    for why, parts in ((CONTRADICTS, reading.combined.refused), (AGAIN, reading.combined.again)):
        left = [f"{part.found.tool} (line {min(part.found.understood, default=0) + 1})" for part in parts
                if part.file == text.name]  # fmt: skip
        if left:
            yield f"left out, because it {why}: {', '.join(left)}"
    beside = reading.beside(text.name)
    unread = [number for number in reading.unread[text.name] if number not in beside]
    if beside:
        yield f"beside the outputs: {_lines(sorted(beside))}"
    if unread:
        yield f"not recognised: {_lines(unread)}"
        yield from _alarms(text.lines, unread)
    for host, count in reading.of_others(text.name).items():
        yield f"of another host, {host}: {counted(count, 'line')} not recognised"


def _bundle(opened: Opened) -> Iterator[str]:
    bundle = opened.bundle
    yield f"{bundle.name}: {bundle.kind}, {len(bundle.sections)} outputs"
    yield from (f"note: {note}" for note in bundle.notes)
    yield from _table([
        (output.first + 1, output.lines, len(output.found.facts), f"{output.found.tool}: {output.title[:SHOWN]}")
        for output in sorted(opened.outputs, key=lambda output: output.first)
    ])  # fmt: skip
    for file, unread in opened.found.unread.items():
        yield f"not recognised in {file}: {_lines(unread)}"
        yield from _alarms(opened.found.texts[file], unread)
    nothing = frozenset(opened.found.nothing)

    def why_left(section: Section) -> str:
        why = _why(section)
        unknown = section.file in nothing or (why == _LEFT and bundle.kind == "directory")
        return _UNKNOWN if unknown else why

    for why, sections in groupby(sorted(bundle.sections, key=why_left), why_left):
        left = [*sections]
        if why:
            yield f"left, {why}: {', '.join(dict.fromkeys(map(_title, left)))}"
    if opened.unowned:
        yield f"left, because their host is unknown: {', '.join(opened.unowned)}"


def _alarms(lines: Sequence[str], unread: Sequence[int]) -> Iterator[str]:
    """The unread lines that mention an error."""
    rows = [f"{number + 1:>8}  mentions an error: {' '.join(lines[number].split())[:LONGEST]}"
            for number in alarming(lines, unread)]  # fmt: skip
    yield from at_most(rows, MOST_ALARMS, "          and {} more")


def _why(section: Section) -> str:
    """Empty for a section that was read."""
    if section.absent:
        return "not there on the machine"
    if section.title.startswith("Skipping"):
        return "skipped by the script"
    if section.lines:
        return ""
    return "without content" if not section.size else _LEFT


def _title(section: Section) -> str:
    """The end of a file's path, or the beginning of a section's title."""
    return section.file[-SHOWN:] if section.loose else section.title.strip()[:SHOWN]


def _table(rows: Sequence[tuple[int, int, int, str]]) -> Iterator[str]:
    if rows:
        yield f"{_HEAD[0]:>8} {_HEAD[1]:>7} {_HEAD[2]:>6}  {_HEAD[3]}"
    for first, lines, facts, name in rows:
        yield f"{first:>8} {lines:>7} {facts:>6}  {name}"


def _lines(numbers: Sequence[int]) -> str:
    """``lines 3, 5-9`` of numbers from 0."""
    spans = cpulist(runs_of(number + 1 for number in numbers)).replace(",", ", ")
    return f"{'line' if len(numbers) == 1 else 'lines'} {spans}"
