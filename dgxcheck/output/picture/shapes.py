"""A picture as data: rectangles with text, lines and arcs, in pixels from the top left."""

from __future__ import annotations

from typing import Literal

from dgxcheck.facts.record import Record, replace
from dgxcheck.output.picture.marks import Tone

BoxKind = Literal[
    "panel", "host-bridge", "switch", "gpu", "nic", "other", "bar", "label", "badge", "title", "caption",
]  # fmt: skip
SMALL, NORMAL = 10.5, 12.5
"""Font sizes."""


class Rect(Record, kw_only=False):
    """Top left corner and size."""

    x: float
    y: float
    w: float
    h: float

    def overlaps(self, other: Rect) -> bool:
        """Do they share more than an edge?"""
        return (
            self.x < other.x + other.w
            and other.x < self.x + self.w
            and self.y < other.y + other.h
            and other.y < self.y + self.h
        )

    def contains(self, other: Rect) -> bool:
        return (
            self.x <= other.x
            and self.y <= other.y
            and other.x + other.w <= self.x + self.w
            and other.y + other.h <= self.y + self.h
        )


class Text(Record, kw_only=False):
    """One line."""

    text: str
    size: float = NORMAL
    bold: bool = False
    tone: Tone | None = None


class Box(Record):
    """A rectangle with lines of text, centred but for captions and titles."""

    kind: BoxKind
    rect: Rect
    lines: tuple[Text, ...] = ()
    tone: Tone | None = None
    hint: str = ""
    """What a tooltip and a screen reader say of it."""
    key: str = ""


class Line(Record):
    """A link of the PCI tree, or the NVLinks from a GPU to the NVSwitches."""

    kind: Literal["pcie", "nvlink"]
    points: tuple[tuple[float, float], ...]
    tone: Tone | None = None
    hint: str = ""
    down: bool = False
    ends: tuple[str, str] = ("", "")
    """Keys of the boxes that it joins."""


class Arc(Record):
    """An NVLink between two GPUs: a cubic curve that leaves both ends vertically, to ``depth`` below or above them."""

    start: tuple[float, float]
    end: tuple[float, float]
    bend: tuple[float, float]
    """The heights of the two control points."""
    width: float = 1.6
    tone: Tone | None = None
    down: bool = False
    hint: str = ""

    def at(self, share: float) -> tuple[float, float]:
        """The point at a share of the curve's parameter."""
        (x1, y1), (x2, y2), (b1, b2), t = self.start, self.end, self.bend, share
        u = 1 - t
        x = x1 * (u**3 + 3 * u * u * t) + x2 * (t**3 + 3 * u * t * t)
        return x, u**3 * y1 + 3 * u * u * t * b1 + 3 * u * t * t * b2 + t**3 * y2


class Picture(Record):
    """All shapes; what comes later is drawn above what came before."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    arcs: tuple[Arc, ...]
    title: str
    description: str

    def texts(self) -> list[Box]:
        """The boxes that hold text alone."""
        return [box for box in self.boxes if box.kind in ("label", "badge", "title", "caption")]


def upside_down(shapes: list[Box], lines: list[Line], height: float) -> tuple[list[Box], list[Line]]:
    """The same, mirrored at the middle of ``height``; texts stay upright."""
    turned = [replace(b, rect=Rect(b.rect.x, height - b.rect.y - b.rect.h, b.rect.w, b.rect.h)) for b in shapes]
    return turned, [replace(line, points=tuple((x, height - y) for x, y in line.points)) for line in lines]


def moved(shapes: list[Box], lines: list[Line], x: float, y: float) -> tuple[list[Box], list[Line]]:
    """The same, at another place."""
    put = [replace(box, rect=Rect(box.rect.x + x, box.rect.y + y, box.rect.w, box.rect.h)) for box in shapes]
    return put, [replace(line, points=tuple((a + x, b + y) for a, b in line.points)) for line in lines]
