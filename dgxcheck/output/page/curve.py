"""A curve over time as a small SVG; the figures beside it say in words what it shows."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from dgxcheck.output.page.element import Markup
from dgxcheck.output.plain_text import visible

WIDTH, HEIGHT, EDGE = 180.0, 34.0, 2.0


def curve(points: Sequence[tuple[float, float]], words: str) -> Markup:
    """From the first time to the last, from the lowest value to the highest."""
    times, values = [x for x, _ in points], [y for _, y in points]
    first, long = min(times), max(times) - min(times) or 1.0
    low, high = min(values), max(values)
    scale = high - low or 1.0
    middle = HEIGHT / 2

    def place(x: float, y: float) -> str:
        across = EDGE + (WIDTH - 2 * EDGE) * (x - first) / long
        down = middle if high == low else EDGE + (HEIGHT - 2 * EDGE) * (high - y) / scale
        return f"{across:.0f},{down:.1f}"

    line = " ".join(place(x, y) for x, y in points)
    return Markup(
        f'<svg class="curve" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" width="{WIDTH:g}" height="{HEIGHT:g}" role="img">'
        f'<title>{escape(visible(words))}</title><polyline points="{line}"/></svg>'
    )
