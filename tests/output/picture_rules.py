"""What every picture has to keep: no two boxes overlap, nothing leaves the picture, no line crosses a box."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from dgxcheck.output.picture.shapes import LINE, Picture, Polyline, Rect, TextBox, text_width

SOLID = ("host-bridge", "switch", "gpu", "nic", "other", "bar")
TEXTS = ("label", "title", "caption")
SLACK = 0.01


def faults(picture: Picture) -> list[str]:
    """Every broken rule, in words."""
    return [*_overlapping(picture), *_outside(picture), *_crossed(picture), *_too_long(picture), *_loose(picture)]


def _overlapping(picture: Picture) -> Iterator[str]:
    for a, b in combinations([box for box in picture.boxes if box.kind in (*SOLID, *TEXTS)], 2):
        if _shrunk(a.rect).overlaps(_shrunk(b.rect)):
            yield f"{_named(a)} overlaps {_named(b)}"
    for a, b in combinations([box for box in picture.boxes if box.kind == "panel"], 2):
        if a.rect.overlaps(b.rect):
            yield f"{_named(a)} overlaps {_named(b)}"


def _outside(picture: Picture) -> Iterator[str]:
    whole = Rect(0, 0, picture.width, picture.height)
    panels = [box.rect for box in picture.boxes if box.kind == "panel"]
    for box in picture.boxes:
        if not _contains(whole, box.rect):
            yield f"{_named(box)} is outside of the picture"
        if box.kind in SOLID and box.kind != "bar" and not any(_contains(panel, box.rect) for panel in panels):
            yield f"{_named(box)} is in no panel"
    for arc in picture.arcs:
        low = max(arc.at(share / 20)[1] for share in range(21))
        if low > picture.height or min(arc.start[0], arc.end[0]) < 0 or max(arc.start[0], arc.end[0]) > picture.width:
            yield f"an arc leaves the picture at {low:.0f}"
    for line in picture.lines:
        if any(not (0 <= x <= picture.width and 0 <= y <= picture.height) for x, y in line.points):
            yield f"{line.hint} leaves the picture"


def _contains(outer: Rect, inner: Rect) -> bool:
    across = outer.x <= inner.x and inner.x + inner.w <= outer.x + outer.w
    return across and outer.y <= inner.y and inner.y + inner.h <= outer.y + outer.h


def _crossed(picture: Picture) -> Iterator[str]:
    solid = [box for box in picture.boxes if box.kind in SOLID]
    for line in picture.lines:
        for box in solid:
            if box.key not in line.ends and any(
                _meets(line, number, box.rect) for number in range(len(line.points) - 1)
            ):
                yield f"the line {line.ends} crosses {_named(box)}"
    for arc in picture.arcs:
        points = [arc.at(share / 40) for share in range(1, 40)]
        for box in solid:
            if any(_inside(_shrunk(box.rect), point) for point in points):
                yield f"an arc crosses {_named(box)}"


def _too_long(picture: Picture) -> Iterator[str]:
    for box in picture.boxes:
        height = sum(line.size * LINE for line in box.lines)
        if height > box.rect.h + 1:
            yield f"{_named(box)} is higher than its box"
        for line in box.lines:
            if text_width(line.text, line.size, line.bold) > box.rect.w + 1:
                yield f"{line.text!r} is wider than its box"


def _loose(picture: Picture) -> Iterator[str]:
    """A line ends at the boxes that it joins."""
    at = {box.key: box.rect for box in picture.boxes if box.key}
    for line in picture.lines:
        for key, point in zip(line.ends, (line.points[0], line.points[-1]), strict=True):
            if key in at and not _inside(_grown(at[key]), point):
                yield f"the line {line.ends} does not reach {key}"


def _meets(line: Polyline, number: int, rect: Rect) -> bool:
    (x1, y1), (x2, y2) = line.points[number : number + 2]
    bounds = Rect(min(x1, x2), min(y1, y2), abs(x2 - x1) + SLACK, abs(y2 - y1) + SLACK)
    return bounds.overlaps(_shrunk(rect))


def _shrunk(rect: Rect) -> Rect:
    return Rect(rect.x + 0.5, rect.y + 0.5, rect.w - 1, rect.h - 1)


def _grown(rect: Rect) -> Rect:
    return Rect(rect.x - 0.5, rect.y - 0.5, rect.w + 1, rect.h + 1)


def _inside(rect: Rect, point: tuple[float, float]) -> bool:
    return rect.x <= point[0] <= rect.x + rect.w and rect.y <= point[1] <= rect.y + rect.h


def _named(box: TextBox) -> str:
    return f"{box.kind} {box.key or ' / '.join(line.text for line in box.lines)}"
