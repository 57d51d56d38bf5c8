"""A fabric as a picture: spines above the leaves that share them, what is wrong marked, numbered, and named below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dgxcheck.checks.engine.finding import counted
from dgxcheck.fabric.capacity import Leaf, leaves_of
from dgxcheck.fabric.finding import FabricFinding
from dgxcheck.fabric.judge import Judged
from dgxcheck.fabric.tiers import groups
from dgxcheck.fleet.node_names import folded
from dgxcheck.output.fabric.text import fault_counts, ratio, sizes
from dgxcheck.output.picture import svg
from dgxcheck.output.picture.marks import MarkTone
from dgxcheck.output.picture.shapes import (
    LINE,
    NORMAL,
    SMALL,
    Picture,
    Rect,
    TextBox,
    TextLine,
    shortened,
    text_width,
    wrapped,
)
from dgxcheck.output.plain_text import visible
from dgxcheck.output.report import FabricReport

_WIDTH, _EDGE, _GAP = 1240.0, 12.0, 6.0
_WIDEST = 190.0
_MOST = 40
"""Findings that are listed below."""


def render(report: FabricReport) -> str:
    """One SVG file."""
    return svg.render([drawn(report.judged)])


def drawn(judged: Judged) -> Picture:
    """A panel per group of leaves with the switches above them; no lines: what all leaves have is given as a number."""
    marks = _marks(judged)
    leaves = {leaf.guid: leaf for leaf in leaves_of(judged)}
    title = f"{judged.verdict.upper()}: {sizes(judged)}: {fault_counts(judged)}"
    boxes = [_text("title", Rect(_EDGE, _EDGE, _WIDTH - 2 * _EDGE, 22), [title], NORMAL + 2)]
    y = 44.0
    tiers = judged.tiers
    for group in sorted(groups(tiers.uplinks, leaves), key=lambda group: min(leaves[guid].name for guid in group)):
        above = sorted({far[0] for guid in group for far in tiers.uplinks[guid].values()}, key=judged.fabric.switch)
        below = sorted((leaves[guid] for guid in group), key=lambda leaf: leaf.name)
        made, height = _panel(judged, below, above, marks, y)
        boxes += made
        y += height + _EDGE
    for text, tone in _worst_findings(judged.findings):
        boxes.append(_text("caption", Rect(_EDGE, y, _WIDTH - 2 * _EDGE, SMALL * LINE), [text], SMALL, tone))
        y += SMALL * LINE + 2
    about = "; ".join(finding.message for finding in judged.findings[:_MOST]) or "nothing found"
    return Picture(width=_WIDTH, height=y + _EDGE, boxes=tuple(boxes), lines=(), arcs=(), title=title,
                   description=about)  # fmt: skip


def _marks(judged: Judged) -> Mapping[str, list[int]]:
    """Numbers of findings, from 1, by the name of each switch and system that they name."""
    names = sorted({switch.name for switch in judged.fabric.switches.values()} | {*judged.places}, key=len)
    nodes_drawn = {*names}
    found: dict[str, list[int]] = {}
    for number, finding in enumerate(judged.findings[:_MOST], 1):
        for end in finding.ends:
            words = end.split()
            name = end if end in nodes_drawn else next((" ".join(words[:n]) for n in range(len(words), 0, -1)
                                                  if " ".join(words[:n]) in nodes_drawn), "")  # fmt: skip
            if name and number not in found.setdefault(name, []):
                found[name].append(number)
    return found


def _panel(
    judged: Judged, leaves: Sequence[Leaf], above: Sequence[str], marks: Mapping[str, list[int]], top: float
) -> tuple[list[TextBox], float]:
    label = f"{counted(len(leaves), 'leaf', 'leaves')}, {counted(len(above), 'switch', 'switches')} above"
    rows = [[(name, "", "") for name in map(judged.fabric.switch, above)],
            [(leaf.name, folded(leaf.systems), f"{leaf.uplinks} up, {ratio(leaf)}") for leaf in leaves]]  # fmt: skip
    inside = [_text("caption", Rect(2 * _EDGE, top + 6, 400, 18), [label], SMALL)]
    y = top + 28
    for row in rows:
        y += _GAP
        width = max((text_width(visible(word), SMALL, True) for words in row for word in words), default=0.0)
        width = min(max(width + 34, 70.0), _WIDEST)
        height = 10 + SMALL * LINE * (3 if row and row[0][2] else 1)
        each = int((_WIDTH - 4 * _EDGE + _GAP) // (width + _GAP))
        for number, words in enumerate(row):
            at = Rect(2 * _EDGE + number % each * (width + _GAP), y + number // each * (height + _GAP), width, height)
            inside.append(_switch(words, at, judged, marks))
        y += -(-len(row) // each) * (height + _GAP)
    panel = TextBox(kind="panel", rect=Rect(_EDGE, top, _WIDTH - 2 * _EDGE, y - top + _GAP))
    return [panel, *inside], y - top + _GAP


def _switch(words: tuple[str, str, str], at: Rect, judged: Judged, marks: Mapping[str, list[int]]) -> TextBox:
    """Its name with the numbers of what is wrong with it, its systems, its uplinks."""
    numbers = marks.get(words[0], [])
    tone: MarkTone | None = None
    if numbers:
        tone = "fail" if any(judged.findings[number - 1].status == "fail" for number in numbers) else "warn"
    shown = f"{words[0]} ({', '.join(map(str, numbers))})" if numbers else words[0]
    lines = [TextLine(shortened(visible(text), at.w - 8, SMALL, not line), SMALL, not line)
             for line, text in enumerate((shown, *words[1:])) if text]  # fmt: skip
    hint = "; ".join([words[0], *filter(None, words[1:]), *(judged.findings[n - 1].message for n in numbers)])
    return TextBox(kind="switch", rect=at, lines=tuple(lines), tone=tone, hint=hint, key=words[0])


def _worst_findings(findings: Sequence[FabricFinding]) -> Iterator[tuple[str, MarkTone]]:
    for number, finding in enumerate(findings[:_MOST], 1):
        tone: MarkTone = "fail" if finding.status == "fail" else "warn"
        text = visible(f"{number}. {finding.message}; do: {finding.action}")
        yield from ((line, tone) for line in wrapped(text, _WIDTH - 2 * _EDGE, SMALL))
    if findings[_MOST:]:
        yield f"and {len(findings) - _MOST} more", "warn"


def _text(kind: str, rect: Rect, texts: Sequence[str], size: float, tone: MarkTone | None = None) -> TextBox:
    lines = tuple(TextLine(shortened(visible(text), rect.w, size), size, kind == "title", tone) for text in texts)
    return TextBox(kind="title" if kind == "title" else "caption", rect=rect, lines=lines)
