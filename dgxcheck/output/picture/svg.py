"""A picture as SVG: no script, no font and nothing else to load, in light or dark as the reader's page is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from xml.sax.saxutils import escape, quoteattr

from dgxcheck.output.picture.shapes import (
    DARK,
    LIGHT,
    LINE,
    Arc,
    Colours,
    Picture,
    Polyline,
    TextBox,
    TextLine,
)
from dgxcheck.output.plain_text import visible
from dgxcheck.package_files import table

_GAP = 18.0
"""Between two pictures in one file."""


def render(pictures: Sequence[Picture]) -> str:
    """One document: the pictures below each other."""
    return f"{document(pictures, 'dgxcheck')}\n"


def document(pictures: Sequence[Picture], name: str) -> str:
    """The element ``svg``; ``name`` makes the ids of its title and description unique in a page."""
    width = max(picture.width for picture in pictures)
    height = sum(picture.height for picture in pictures) + _GAP * (len(pictures) - 1)
    title = "; ".join(picture.title for picture in pictures)
    about = " ".join(picture.description for picture in pictures)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dgx" viewBox="0 0 {px(width)} {px(height)}"'
        f' width="{px(width)}" height="{px(height)}" role="img" aria-labelledby="{name}-title {name}-desc">',
        f'<title id="{name}-title">{escaped(title)}</title>',
        f'<desc id="{name}-desc">{escaped(about)}</desc>',
        f"<style>{style()}</style>",
        f'<rect class="page" width="{px(width)}" height="{px(height)}"/>',
    ]
    y = 0.0
    for picture in pictures:
        inner = "\n".join(_shapes(picture))
        parts.append(f'<g transform="translate(0 {px(y)})">\n{inner}\n</g>' if y else inner)
        y += picture.height + _GAP
    return "\n".join([*parts, "</svg>"])


def style() -> str:
    """Rules for light, and for a dark screen; paper is light. Explicit colours: librsvg knows no variables."""
    dark = _rules(DARK)
    return f"{_rules(LIGHT)}@media screen and (prefers-color-scheme:dark){{{dark}}}"


def _rules(colours: Colours) -> str:
    rules = table("output/picture/rules.tsv")
    return "".join(f".dgx {row['selector']}{{{row['rule'].format_map(colours)}}}" for row in rules)


def _shapes(picture: Picture) -> Iterable[str]:
    yield from (_box(box) for box in picture.boxes if box.kind == "panel")
    yield from map(_line, sorted(picture.lines, key=lambda line: line.tone is not None))
    yield from map(_arc, sorted(picture.arcs, key=lambda arc: arc.tone is not None))
    yield from (_box(box) for box in picture.boxes if box.kind != "panel")


def _box(box: TextBox) -> str:
    rect = box.rect
    kind = box.kind
    if kind in ("title", "caption"):
        return "".join(_lines(box, rect.x, "start"))
    in_panel = kind == "label" and bool(box.hint)
    classes: str = kind if kind != "label" or in_panel else "floating"
    if box.tone and kind != "label":
        classes += f" {box.tone}" + (f" {box.tone}-fill" if kind != "panel" else "")
    classes += " gone" if box.gone else ""
    radius = 2 if kind == "label" else 6
    shape = (
        f'<rect class="{classes}" x="{px(rect.x)}" y="{px(rect.y)}" width="{px(rect.w)}" height="{px(rect.h)}"'
        f' rx="{radius}"/>'
    )
    return f"<g>{_title(box.hint)}{shape}{''.join(_lines(box, rect.x + rect.w / 2, ''))}</g>"


def _lines(box: TextBox, x: float, anchor: str) -> Iterable[str]:
    """The texts, centred from top to bottom."""
    total = sum(line.size * LINE for line in box.lines)
    y = box.rect.y + (box.rect.h - total) / 2
    for line in box.lines:
        baseline = y + line.size * (LINE / 2 + 0.36)
        yield _written(line, x, baseline, anchor)
        y += line.size * LINE


def _written(line: TextLine, x: float, y: float, anchor: str) -> str:
    classes = " ".join(filter(None, (anchor, line.tone or ("" if line.bold or line.size > 12 else "small"))))
    weight = ' font-weight="bold"' if line.bold else ""
    named = f' class="{classes}"' if classes else ""
    return f'<text{named} x="{px(x)}" y="{px(y)}" font-size="{px(line.size)}"{weight}>{escaped(line.text)}</text>'


def _line(line: Polyline) -> str:
    points = [point for number, point in enumerate(line.points) if not number or point != line.points[number - 1]]
    path = " ".join(f"{'L' if number else 'M'}{px(x)} {px(y)}" for number, (x, y) in enumerate(points))
    classes = " ".join(filter(None, (line.kind, "down" if line.down else "", line.tone)))
    width = ' stroke-width="2.6"' if line.kind == "nvlink" and not line.tone else ""
    return f"<path class={quoteattr(classes)} d={quoteattr(path)}{width}>{_title(line.hint)}</path>"


def _arc(arc: Arc) -> str:
    (x1, y1), (x2, y2), (b1, b2) = arc.start, arc.end, arc.bend
    path = f"M{px(x1)} {px(y1)}C{px(x1)} {px(b1)} {px(x2)} {px(b2)} {px(x2)} {px(y2)}"
    classes = " ".join(filter(None, ("nvlink", "down" if arc.down else "", arc.tone)))
    return f'<path class="{classes}" d="{path}" stroke-width="{px(arc.width)}">{_title(arc.hint)}</path>'


def _title(hint: str) -> str:
    return f"<title>{escaped(hint)}</title>" if hint else ""


def escaped(text: str) -> str:
    return escape(visible(text))


def px(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
