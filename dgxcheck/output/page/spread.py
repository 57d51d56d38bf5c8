"""How one figure is spread over many machines, as a small SVG; the figures beside it say in words what it shows."""

from __future__ import annotations

from xml.sax.saxutils import escape

from dgxcheck.output.page.blocks import Spread
from dgxcheck.output.page.element import Markup
from dgxcheck.output.plain_text import visible

WIDTH, HEIGHT, EDGE, BASE = 240.0, 34.0, 6.0, 24.0
"""Bars stand on the base; triangles below it point at the values that are off."""


def spread(drawn: Spread, words: str) -> Markup:
    """Bars from the lowest value to the highest, the accepted range shaded, the median as a line."""
    room = WIDTH - 2 * EDGE
    long = drawn.high - drawn.low or 1.0

    def place(value: float) -> float:
        return EDGE + room * min(max((value - drawn.low) / long, 0.0), 1.0)

    first, last, middle = place(drawn.median - drawn.bound), place(drawn.median + drawn.bound), place(drawn.median)
    step, most = room / len(drawn.counts), max(drawn.counts)
    bars = "".join(
        f"M{EDGE + number * step:.1f} {BASE:g}h{step:.1f}v-{max(1.5, (BASE - 2) * count / most):.1f}h-{step:.1f}z"
        for number, count in enumerate(drawn.counts)
        if count
    )
    marks = "".join(f"M{at} {BASE + 1:g}l4 7h-8z" for at in sorted({f"{place(value):.0f}" for value in drawn.off}))
    return Markup(
        f'<svg class="spread" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" width="{WIDTH:g}" height="{HEIGHT:g}" role="img">'
        f"<title>{escape(visible(words))}</title>"
        f'<path class="range" d="M{first:.1f} 0H{last:.1f}V{BASE:g}H{first:.1f}z"/><path class="counts" d="{bars}"/>'
        f'<path class="median" d="M{middle:.1f} 0V{BASE:g}"/><path class="off" d="{marks}"/></svg>'
    )
