"""A picture as data: rectangles with text, lines and arcs, in pixels from the top left; colours, text widths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dgxcheck.facts.record import Record, replace
from dgxcheck.output.picture.marks import MarkTone
from dgxcheck.package_files import table

Colours = Mapping[str, str]
_COLOURS = [*table("output/picture/colours.tsv")]
LIGHT: Colours = {row["name"]: row["light"] for row in _COLOURS}
DARK: Colours = {row["name"]: row["dark"] for row in _COLOURS}
LINE = 1.3
"""Height of a line, in em."""
_EM = {
    **dict.fromkeys("ijl.,:;'|!I", 0.37),
    **dict.fromkeys(" ftr()[]/-", 0.43),
    **dict.fromkeys("mwMW@%_+", 0.97),
    **dict.fromkeys("ABCDEFGHJKLNOPQRSTUVXYZ=&", 0.77),
}
_OTHER, _BOLD = 0.645, 1.12


def text_width(text: str, size: float, bold: bool = False) -> float:
    """Pixels, rather too many than too few; a wide character (CJK) takes one em and more."""
    ems = sum(_EM.get(char, _OTHER if char.isascii() else 1.05) for char in text)
    return ems * size * (_BOLD if bold else 1)


def shortened(text: str, width: float, size: float, bold: bool = False) -> str:
    """The text, or as much of its start as fits, with an ellipsis."""
    if text_width(text, size, bold) <= width:
        return text
    end = len(text)
    while end > 1 and text_width(text[:end] + "…", size, bold) > width:
        end -= 1
    return f"{text[:end].rstrip()}…"


def wrapped(text: str, width: float, size: float) -> list[str]:
    """Lines that fit, broken between words; a longer word stands alone and shortened."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(shortened(word, width, size))
    return lines


BoxKind = Literal["panel", "host-bridge", "switch", "gpu", "nic", "other", "bar", "label", "title", "caption"]
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
        across = self.x < other.x + other.w and other.x < self.x + self.w
        return across and self.y < other.y + other.h and other.y < self.y + self.h


class TextLine(Record, kw_only=False):
    """One line."""

    text: str
    size: float = NORMAL
    bold: bool = False
    tone: MarkTone | None = None


class TextBox(Record):
    """A rectangle with lines of text, centred but for captions and titles."""

    kind: BoxKind
    rect: Rect
    lines: tuple[TextLine, ...] = ()
    tone: MarkTone | None = None
    hint: str = ""
    """What a tooltip and a screen reader say of it."""
    key: str = ""
    gone: bool = False
    """Drawn with a dashed outline."""


class Polyline(Record):
    """A link of the PCI tree, the NVLinks from a GPU to the NVSwitches, or what joins two NUMA nodes."""

    kind: Literal["pcie", "nvlink", "socket"]
    points: tuple[tuple[float, float], ...]
    tone: MarkTone | None = None
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
    tone: MarkTone | None = None
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
    boxes: tuple[TextBox, ...]
    lines: tuple[Polyline, ...]
    arcs: tuple[Arc, ...]
    title: str
    description: str


def upside_down(shapes: list[TextBox], lines: list[Polyline], height: float) -> tuple[list[TextBox], list[Polyline]]:
    """The same, mirrored at the middle of ``height``; texts stay upright."""
    turned = [replace(b, rect=Rect(b.rect.x, height - b.rect.y - b.rect.h, b.rect.w, b.rect.h)) for b in shapes]
    return turned, [replace(line, points=tuple((x, height - y) for x, y in line.points)) for line in lines]


def moved(shapes: list[TextBox], lines: list[Polyline], x: float, y: float) -> tuple[list[TextBox], list[Polyline]]:
    """The same, at another place."""
    put = [replace(box, rect=Rect(box.rect.x + x, box.rect.y + y, box.rect.w, box.rect.h)) for box in shapes]
    return put, [replace(line, points=tuple((a + x, b + y) for a, b in line.points)) for line in lines]
