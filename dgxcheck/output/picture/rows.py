"""Which NUMA nodes stand side by side."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.facts.record import replace
from dgxcheck.output.picture.tree_layout import BETWEEN, Tree
from dgxcheck.output.picture.wiring import Node, Panel

WIDEST = 1280.0
"""Of one row, where that is possible: wider pictures are unreadable in a page."""


def in_rows(found: Sequence[Panel], tree: Tree, most: int | None) -> list[list[Panel]]:
    """Panels in order, in as few rows as are not too wide, of about the same width.

    ``most`` rows at the most, however wide: where NVLinks join GPUs of all of them.
    """
    parts = [part for panel in found for part in _parts(panel, tree)]
    widths = [tree.width(panel) for panel in parts]
    if not parts:
        return []
    limit = WIDEST
    while most is not None and len(_filled(widths, limit)) > most:
        limit += 40
    fewest = len(_filled(widths, limit))
    while limit - 20 >= max(widths) and len(_filled(widths, limit - 20)) == fewest:
        limit -= 20
    return [[parts[number] for number in row] for row in _filled(widths, limit)]


def _filled(widths: Sequence[float], limit: float) -> list[list[int]]:
    rows: list[list[int]] = []
    room = 0.0
    for number, width in enumerate(widths):
        if rows and width <= room:
            rows[-1].append(number)
        else:
            rows.append([number])
            room = limit
        room -= width + BETWEEN
    return rows


def _parts(panel: Panel, tree: Tree) -> list[Panel]:
    """A NUMA node too wide for one row in parts, of whole host bridges where it has several."""
    total = tree.width(panel)
    bridge = panel.children[0]
    units = bridge.children if len(panel.children) == 1 else panel.children
    if total <= WIDEST or len(units) < 2:
        return [panel]

    def part(of: Sequence[Node]) -> Panel:
        children = (replace(bridge, children=tuple(of)),) if units is bridge.children else tuple(of)
        return replace(panel, children=children)

    most = total / -(-total // WIDEST) + BETWEEN
    parts: list[list[Node]] = [[]]
    for unit in units:
        if parts[-1] and tree.width(part([*parts[-1], unit])) > most:
            parts.append([])
        parts[-1].append(unit)
    return [_continued(part(of), number) if number else part(of) for number, of in enumerate(parts)]


def _continued(panel: Panel, number: int) -> Panel:
    children = tuple(replace(child, key=f"{child.key} ({number + 1})") for child in panel.children)
    return replace(panel, title=f"{panel.title} (continued)", children=children)
