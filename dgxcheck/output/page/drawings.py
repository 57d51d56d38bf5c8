"""Small SVGs in a page: a curve over time, the spread of a figure over many machines, a mosaic of machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered
from dgxcheck.output.page.blocks import Mosaic, Spread, Tile, Tone
from dgxcheck.output.picture.shapes import shortened, text_width
from dgxcheck.output.picture.svg import escaped, px
from dgxcheck.output.plain_text import visible

_VOID = ("meta", "br")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, /, *inside: str, **attributes: str | None) -> Markup:
    """``element("td", "5 < 6", class_="fail")``; an attribute that is None or empty is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(visible(value))}"' for key, value in attributes.items() if value
    )
    return Markup(f"<{name}{given}>") if name in _VOID else Markup(f"<{name}{given}>{joined(*inside)}</{name}>")


def joined(*parts: str) -> Markup:
    """Parts after each other."""
    return Markup("".join(part if isinstance(part, Markup) else escape(visible(part), quote=False) for part in parts))


_HEIGHT = 34.0
_CURVE_WIDTH, _CURVE_EDGE = 180.0, 2.0


def curve(points: Sequence[tuple[float, float]], words: str) -> Markup:
    """From the first time to the last, from the lowest value to the highest."""
    times, values = [x for x, _ in points], [y for _, y in points]
    first, long = min(times), max(times) - min(times) or 1.0
    low, high = min(values), max(values)
    scale = high - low or 1.0
    middle = _HEIGHT / 2

    def place(x: float, y: float) -> str:
        across = _CURVE_EDGE + (_CURVE_WIDTH - 2 * _CURVE_EDGE) * (x - first) / long
        down = middle if high == low else _CURVE_EDGE + (_HEIGHT - 2 * _CURVE_EDGE) * (high - y) / scale
        return f"{across:.0f},{down:.1f}"

    line = " ".join(place(x, y) for x, y in points)
    return _svg("curve", _CURVE_WIDTH, words, f'<polyline points="{line}"/>')


_SPREAD_WIDTH, _SPREAD_EDGE, _BASE = 240.0, 6.0, 24.0
"""Bars stand on the base; triangles below it point at the values that are off."""


def spread(drawn: Spread, words: str) -> Markup:
    """Bars from the lowest value to the highest, the accepted range shaded, the median as a line."""
    room = _SPREAD_WIDTH - 2 * _SPREAD_EDGE
    long = drawn.high - drawn.low or 1.0

    def place(value: float) -> float:
        return _SPREAD_EDGE + room * min(max((value - drawn.low) / long, 0.0), 1.0)

    first, last, middle = place(drawn.median - drawn.bound), place(drawn.median + drawn.bound), place(drawn.median)
    step, most = room / len(drawn.counts), max(drawn.counts)
    bars = "".join(
        f"M{_SPREAD_EDGE + at * step:.1f} {_BASE:g}h{step:.1f}v-{max(1.5, (_BASE - 2) * many / most):.1f}h-{step:.1f}z"
        for at, many in enumerate(drawn.counts)
        if many
    )
    marks = "".join(f"M{at} {_BASE + 1:g}l4 7h-8z" for at in sorted({f"{place(value):.0f}" for value in drawn.off}))
    return _svg(
        "spread", _SPREAD_WIDTH, words,
        f'<path class="range" d="M{first:.1f} 0H{last:.1f}V{_BASE:g}H{first:.1f}z"/><path class="counts" d="{bars}"/>'
        f'<path class="median" d="M{middle:.1f} 0V{_BASE:g}"/><path class="off" d="{marks}"/>',
    )  # fmt: skip


def _svg(kind: str, width: float, words: str, inside: str) -> Markup:
    return Markup(
        f'<svg class="{kind}" viewBox="0 0 {width:g} {_HEIGHT:g}" width="{width:g}" height="{_HEIGHT:g}" role="img">'
        f"<title>{escaped(words)}</title>{inside}</svg>"
    )


WIDTH = 1190.0
_NAMED = 200
"""The most tiles that show their names."""
_LABEL, _SMALL, _PAD, _GAP = 12.0, 10.5, 8.0, 10.0
_INSET = 5, 4
"""Of the square in a tile with a name."""
_COLUMNS = (1, 2, 4, 5, 8, 10, 20, 25, 50, 100)


class _Size(Record, kw_only=False):
    """Of a tile, in px; the step to the next includes the gap."""

    mark: float
    width: float
    step: float
    down: float
    names: bool


def mosaic(drawn: Mosaic, name: str) -> Markup:
    """Many things of one kind and their states: up to 200 with their names, more as small squares.

    Colour shows the state, and so does a mark: fail is solid with a cross, warn has a bar, unknown a stroke, and
    what has no state is an empty dashed outline. ``name`` makes the ids unique in a page.
    """
    tiles = [tile for _, members in drawn.groups for tile in members]
    size = _size(tiles)
    legend, height = _legend(drawn, tiles)
    parts, bottom = [legend], height
    x = y = 0.0
    for label, members in drawn.groups:
        shown, wide, high = _group(label, members, size, len(drawn.groups))
        if x and x + wide > WIDTH:
            x, y = 0.0, bottom - height + _GAP
        parts.append(f'<g transform="translate({px(x)} {px(y + height)})">{shown}</g>')
        x, bottom = x + wide + _GAP, max(bottom, y + height + high)
    return Markup(
        f'<svg class="mosaic" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {px(WIDTH)} {px(bottom + 1)}"'
        f' width="{px(WIDTH)}" height="{px(bottom + 1)}" role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escaped(drawn.title)}</title><desc id="{name}-desc">{escaped(drawn.text)}</desc>'
        + "\n".join(parts)
        + "</svg>"
    )


def _size(tiles: Sequence[Tile]) -> _Size:
    if len(tiles) <= _NAMED:
        widest = max((text_width(visible(tile.name), _SMALL) for tile in tiles), default=0.0)
        width = min(max(widest + 28, 60.0), 200.0)
        return _Size(12, width, width + 5, 25, True)
    mark = 14.0 if len(tiles) <= 2000 else 8.0
    return _Size(mark, mark, mark + 3, mark + 3, False)


def _legend(drawn: Mosaic, tiles: Sequence[Tile]) -> tuple[str, float]:
    """A square, word and number of each state that occurs."""
    parts, x = [], 0.5
    for tone, word in drawn.words:
        if count := sum(tile.tone == tone for tile in tiles):
            text = f"{word}: {count}"
            parts.append(f"{_square(tone, x, 2, 14)}{_mark(tone, x, 2, 14)}{_written(text, x + 20, 13.5, _LABEL)}")
            x += 20 + text_width(text, _LABEL) + 22
    return "".join(parts), 26.0


def _group(label: str, members: Sequence[Tile], size: _Size, groups: int) -> tuple[str, float, float]:
    """A panel with its label above the tiles; its width and height."""
    shown = visible(label)
    edge = 0.0
    if size.names:
        least = -(-len(members) // int((WIDTH - 2 * _PAD) // size.step))
        columns = -(-len(members) // least) if groups == 1 else _columns(len(members))
    else:
        columns = _columns(len(members))
        edge = max(text_width(visible(tile.name), _SMALL) for tile in members[::columns]) + _PAD
        edge = edge if len(members) > 4 * columns else 0.0
    columns = max(1, min(columns, int((WIDTH - 2 * _PAD - edge) // size.step)))
    rows = -(-len(members) // columns)
    wide = 2 * _PAD + edge + columns * size.step - (size.step - size.width)
    wide = max(wide, min(text_width(shown, _LABEL) + 2 * _PAD, WIDTH / 4))
    high = 24 + rows * size.down + _PAD
    parts = [
        f'<rect class="group" x=".5" y=".5" width="{px(wide)}" height="{px(high)}" rx="5"/>',
        _written(shortened(shown, wide - 2 * _PAD, _LABEL), _PAD, 17, _LABEL),
    ]
    places = [
        (tile, _PAD + edge + number % columns * size.step + 0.5, 26.5 + number // columns * size.down)
        for number, tile in enumerate(members)
    ]
    every = columns if size.down >= 15 else 5 * columns
    for tile, _, y in places[::every] if edge else ():
        parts.append(_written(visible(tile.name), _PAD, y + size.mark / 2 + 4, _SMALL))
    parts += [_tile(tile, x, y, size) for tile, x, y in places]
    return "".join([*parts, *_marks(places, size)]), wide, high


def _columns(count: int) -> int:
    """About twice as many as rows, and a number that is easily counted in."""
    return next((columns for columns in _COLUMNS if columns * columns >= 2 * count), _COLUMNS[-1])


def _tile(tile: Tile, x: float, y: float, size: _Size) -> str:
    hint = f"<title>{escaped(f'{tile.name}: {tile.hint}' if tile.hint else tile.name)}</title>"
    if not size.names:
        return _square(tile.tone, x, y, size.mark, hint)
    name = shortened(visible(tile.name), size.width - 26, _SMALL)
    return (
        f'<g>{hint}<rect class="{tile.tone if tile.tone != "fail" else "fails"}" x="{px(x)}" y="{px(y)}"'
        f' width="{px(size.width)}" height="20" rx="3"/>'
        f"{_square(tile.tone, x + _INSET[0], y + _INSET[1], size.mark)}{_written(name, x + 23, y + 14, _SMALL)}</g>"
    )


def _square(tone: Tone, x: float, y: float, side: float, inside: str = "") -> str:
    ends = f">{inside}</path>" if inside else "/>"
    return f'<path class="{tone}" d="M{px(x)} {px(y)}h{px(side)}v{px(side)}h-{px(side)}z"{ends}'


def _marks(places: Sequence[tuple[Tile, float, float]], size: _Size) -> Iterator[str]:
    """One path for all marks of a state."""
    right, down = _INSET if size.names else (0, 0)
    found = gathered((each.tone, _strokes(each.tone, x + right, y + down, size.mark)) for each, x, y in places)
    for tone, strokes in found.items():
        if any(strokes):
            yield f'<path class="mark mark-{tone}" d="{"".join(strokes)}"/>'


def _mark(tone: Tone, x: float, y: float, side: float) -> str:
    strokes = _strokes(tone, x, y, side)
    return f'<path class="mark mark-{tone}" d="{strokes}"/>' if strokes else ""


def _strokes(tone: Tone, x: float, y: float, side: float) -> str:
    low, long = side / 4, side / 2
    if tone == "fail":
        return f"M{px(x + low)} {px(y + low)}l{px(long)} {px(long)}m0-{px(long)}l-{px(long)} {px(long)}"
    if tone == "warn":
        return f"M{px(x + low)} {px(y + side / 2)}h{px(long)}"
    return f"M{px(x + low)} {px(y + side - low)}l{px(long)}-{px(long)}" if tone == "unknown" else ""


def _written(text: str, x: float, y: float, size: float) -> str:
    return f'<text x="{px(x)}" y="{px(y)}" font-size="{px(size)}">{escaped(text)}</text>'
