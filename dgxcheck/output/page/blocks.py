"""What a report is made of, in no format: a head, and sections of paragraphs, steps, tables, pictures and curves."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Literal, TypeAlias

from dgxcheck import __version__
from dgxcheck.facts.record import Record
from dgxcheck.output.picture.shapes import Picture

Tone = Literal["pass", "warn", "fail", "unknown", "skip"]


class Cell(Record, kw_only=False):
    """Of a table."""

    text: str
    tone: Tone | None = None
    note: str = ""
    """A second line: a percentage, a reason."""
    share: float | None = None
    """Measured value divided by the expected one: it sets the colour of the cell in a heat map."""
    curve: tuple[tuple[float, float], ...] = ()
    """Points over time, drawn in place of the text, which says the same in figures."""
    spread: Spread | None = None
    """Drawn in place of the text, which says the same in figures."""


class Spread(Record):
    """One figure of many machines: how many have which value, and which are off."""

    low: float
    high: float
    counts: tuple[int, ...]
    """Machines by value, in intervals of equal width from ``low`` to ``high``."""
    median: float
    bound: float
    """How far from the median a value may be."""
    off: tuple[float, ...]
    """Values that are farther."""


class Table(Record):
    """Cells by row; the first of a row is its name."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    note: str = ""
    """A sentence below it: the unit, what the colours mean."""
    heat: bool = False


class Paragraph(Record, kw_only=False):
    """A paragraph."""

    text: str
    tone: Tone | None = None
    code: bool = False
    """To be typed, or shown as it is, line by line."""


class ListItem(Record):
    """Of a numbered list: what to do, how, and what that means for others."""

    name: str
    commands: tuple[str, ...]
    """What to type."""
    how: str
    """What to do by hand, or to know."""
    note: str


class OrderedList(Record):
    steps: tuple[ListItem, ...]


class Bars(Record):
    """Shares of 100."""

    rows: tuple[tuple[str, float], ...]
    caption: str


class Drawing(Record):
    """A picture, and the same as text for formats without pictures."""

    pictures: tuple[Picture, ...]
    text: str
    tall: tuple[Picture, ...] = ()
    """The same for a narrow screen."""


class Tile(Record, kw_only=False):
    """One of many things of one kind, with its state; ``skip`` where there is none."""

    name: str
    tone: Tone
    hint: str = ""
    """What a tooltip says of it, after its name and state."""


class Mosaic(Record):
    """Tiles by group, to be seen at one glance."""

    groups: tuple[tuple[str, tuple[Tile, ...]], ...]
    words: tuple[tuple[Tone, str], ...]
    """What each state is called, in the order of the legend."""
    title: str
    text: str
    """The same in words, for formats without pictures and for screen readers."""


class Fold(Record):
    """What is shown on request."""

    title: str
    blocks: tuple[Block, ...]


class ProblemBlock(Record):
    """A cause, or a finding without one."""

    title: str
    tone: Tone
    blocks: tuple[Block, ...]


Block: TypeAlias = "Paragraph | Table | OrderedList | Bars | Drawing | Mosaic | Fold | ProblemBlock"


class PageSection(Record):
    title: str
    blocks: tuple[Block, ...]


class Page(Record):
    """The whole report."""

    title: str
    status: str
    """One word: ``FAIL``."""
    tone: Tone
    lead: str
    """The first sentence: what is wrong, where, what to do."""
    facts: tuple[tuple[str, str], ...]
    """Where it comes from: name and value."""
    sections: tuple[PageSection, ...]


def sections(*titled: tuple[str, Iterable[Block]]) -> tuple[PageSection, ...]:
    """Those in which something stands."""
    return tuple(PageSection(title=title, blocks=found) for title, blocks in titled if (found := (*blocks,)))


def written() -> tuple[str, str]:
    """The last fact of a page."""
    return "Written", f"{time.strftime('%Y-%m-%d %H:%M:%S UTC', time.gmtime())} by dgxcheck {__version__}"
