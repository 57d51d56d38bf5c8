"""Many things of one kind and their states as one SVG: up to 200 with their names, more as small squares.

Colour shows the state, and so does a mark: fail is solid with a cross, warn has a bar, unknown a stroke, and
what has no state is an empty dashed outline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from dgxcheck.facts.record import Record
from dgxcheck.output.page.blocks import Mosaic, Tile, Tone
from dgxcheck.output.page.element import Markup
from dgxcheck.output.picture.text_size import shortened, text_width
from dgxcheck.output.plain_text import visible

WIDTH = 1190.0
_NAMED = 200
"""The most tiles that show their names."""
_LABEL, _SMALL, _PAD, _GAP = 12.0, 10.5, 8.0, 10.0
_INSET = 5, 4
"""Of the square in a tile with a name."""
_COLUMNS = (1, 2, 4, 5, 8, 10, 20, 25, 50, 100)


class _Size(Record, kw_only=False):
    """Of a tile, in pixels; the step to the next includes the gap."""

    mark: float
    width: float
    step: float
    down: float
    names: bool


def mosaic(drawn: Mosaic, name: str) -> Markup:
    """The element ``svg``; ``name`` makes its ids unique in a page."""
    tiles = [tile for _, members in drawn.groups for tile in members]
    size = _size(tiles)
    legend, height = _legend(drawn, tiles)
    parts, bottom = [legend], height
    x = y = 0.0
    for label, members in drawn.groups:
        shown, wide, high = _group(label, members, size, len(drawn.groups))
        if x and x + wide > WIDTH:
            x, y = 0.0, bottom - height + _GAP
        parts.append(f'<g transform="translate({_n(x)} {_n(y + height)})">{shown}</g>')
        x, bottom = x + wide + _GAP, max(bottom, y + height + high)
    return Markup(
        f'<svg class="mosaic" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(WIDTH)} {_n(bottom + 1)}"'
        f' width="{_n(WIDTH)}" height="{_n(bottom + 1)}" role="img" aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{_text(drawn.title)}</title><desc id="{name}-desc">{_text(drawn.text)}</desc>'
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
        count = sum(tile.tone == tone for tile in tiles)
        if count:
            told = f"{word}: {count}"
            parts.append(f"{_square(tone, x, 2, 14)}{_mark(tone, x, 2, 14)}{_written(told, x + 20, 13.5, _LABEL)}")
            x += 20 + text_width(told, _LABEL) + 22
    return "".join(parts), 26.0


def _group(label: str, members: Sequence[Tile], size: _Size, groups: int) -> tuple[str, float, float]:
    """A panel with its label above the tiles; its width and height."""
    shown = visible(label)
    edge = 0.0
    if size.names:
        columns = _fitting(len(members), size) if groups == 1 else _columns(len(members))
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
        f'<rect class="group" x=".5" y=".5" width="{_n(wide)}" height="{_n(high)}" rx="5"/>',
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


def _fitting(count: int, size: _Size) -> int:
    """In as few rows as fit, of equal length."""
    rows = -(-count // int((WIDTH - 2 * _PAD) // size.step))
    return -(-count // rows)


def _columns(count: int) -> int:
    """About twice as many as rows, and a number that is easily counted in."""
    return next((columns for columns in _COLUMNS if columns * columns >= 2 * count), _COLUMNS[-1])


def _tile(tile: Tile, x: float, y: float, size: _Size) -> str:
    hint = f"<title>{_text(f'{tile.name}: {tile.hint}' if tile.hint else tile.name)}</title>"
    if not size.names:
        return _square(tile.tone, x, y, size.mark, hint)
    name = shortened(visible(tile.name), size.width - 26, _SMALL)
    return (
        f'<g>{hint}<rect class="{tile.tone if tile.tone != "fail" else "fails"}" x="{_n(x)}" y="{_n(y)}"'
        f' width="{_n(size.width)}" height="20" rx="3"/>'
        f"{_square(tile.tone, x + _INSET[0], y + _INSET[1], size.mark)}{_written(name, x + 23, y + 14, _SMALL)}</g>"
    )


def _square(tone: Tone, x: float, y: float, side: float, inside: str = "") -> str:
    ends = f">{inside}</path>" if inside else "/>"
    return f'<path class="{tone}" d="M{_n(x)} {_n(y)}h{_n(side)}v{_n(side)}h-{_n(side)}z"{ends}'


def _marks(places: Sequence[tuple[Tile, float, float]], size: _Size) -> Iterator[str]:
    """One path for all marks of a state."""
    right, down = _INSET if size.names else (0, 0)
    found: dict[Tone, list[str]] = {}
    for tile, x, y in places:
        found.setdefault(tile.tone, []).append(_strokes(tile.tone, x + right, y + down, size.mark))
    for tone, strokes in found.items():
        if any(strokes):
            yield f'<path class="mark mark-{tone}" d="{"".join(strokes)}"/>'


def _mark(tone: Tone, x: float, y: float, side: float) -> str:
    strokes = _strokes(tone, x, y, side)
    return f'<path class="mark mark-{tone}" d="{strokes}"/>' if strokes else ""


def _strokes(tone: Tone, x: float, y: float, side: float) -> str:
    low, long = side / 4, side / 2
    if tone == "fail":
        return f"M{_n(x + low)} {_n(y + low)}l{_n(long)} {_n(long)}m0-{_n(long)}l-{_n(long)} {_n(long)}"
    if tone == "warn":
        return f"M{_n(x + low)} {_n(y + side / 2)}h{_n(long)}"
    if tone == "unknown":
        return f"M{_n(x + low)} {_n(y + side - low)}l{_n(long)}-{_n(long)}"
    return ""


def _written(text: str, x: float, y: float, size: float) -> str:
    return f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}">{_text(text)}</text>'


def _text(text: str) -> str:
    return escape(visible(text))


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
