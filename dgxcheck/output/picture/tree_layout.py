"""Where the NUMA nodes, host bridges, switches and devices of one row stand: a tree, its devices at one height."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.facts.record import Record
from dgxcheck.output.picture.marks import At, Mark, box, link, link_lines, node, numbered, with_numbers, worst
from dgxcheck.output.picture.shapes import (
    LINE,
    NORMAL,
    SMALL,
    BoxKind,
    Polyline,
    Rect,
    TextBox,
    TextLine,
    shortened,
    text_width,
)
from dgxcheck.output.picture.wiring import Panel, TreeNode
from dgxcheck.output.plain_text import visible

PADDING, GAP, BETWEEN = 12.0, 10.0, 14.0
"""Inside a panel, between devices, between panels."""
_BRIDGE, _TITLE, _STEP = 26.0, 40.0, 58.0
"""Heights: of a host bridge or switch, of a panel's title, of the links between two levels."""
_BUS = 12.0
"""From a box down to where the links below it part."""
_LEAST, _MOST = 66.0, 128.0
"""Widths of a device."""


class RowOfTrees(Record):
    """The shapes of a row of panels, its size, and where the devices are."""

    boxes: list[TextBox]
    lines: list[Polyline]
    width: float
    height: float


def _switches(node: TreeNode) -> int:
    """Levels of them from here down."""
    return int(node.kind == "switch") + max(map(_switches, node.children), default=0)


class TreeLayout:
    """Lays out the panels of one picture: they share the marks and the height of a device."""

    def __init__(self, marks: Sequence[Mark], whole_bdfs: bool) -> None:
        self.marks = marks
        self._whole = whole_bdfs
        tagged = any(at[0] in ("box", "ghost") and mark.number for mark in marks for at in mark.at)
        self.device_height = 54.0 if tagged else 40.0

    def row(self, panels: Sequence[Panel]) -> RowOfTrees:
        """The panels side by side, as high as the deepest."""
        levels = max((_switches(bridge) for panel in panels for bridge in panel.children), default=0)
        bottom = _TITLE + (levels + 1) * (_BRIDGE + _STEP)
        height = bottom + self.device_height + PADDING
        boxes: list[TextBox] = []
        lines: list[Polyline] = []
        x = 0.0
        for panel in panels:
            width = self.width(panel)
            boxes += self._panel(panel, x, width, height)
            left = x + (width - self._columns(panel.children)) / 2
            for bridge in panel.children:
                self._place(bridge, left, _TITLE, bottom, None, boxes, lines)
                left += self._column(bridge) + GAP
            x += width + BETWEEN
        return RowOfTrees(boxes=boxes, lines=lines, width=x - BETWEEN, height=height)

    def width(self, panel: Panel) -> float:
        return max(self._columns(panel.children), text_width(panel.title, NORMAL, True) + 4, 130.0) + 2 * PADDING

    def _columns(self, nodes: Sequence[TreeNode], gap: float = GAP) -> float:
        return sum(map(self._column, nodes)) + gap * (len(nodes) - 1) if nodes else 0.0

    def _column(self, node: TreeNode) -> float:
        label = max((text_width(text, SMALL, True) + 4 for text in self._link_lines(node)), default=0.0)
        return max(self._width(node), self._columns(node.children, _gap(node)), label)

    def _width(self, node: TreeNode) -> float:
        if node.kind == "card":
            return 0.0
        tag, device = self._tag(node), _is_device(node)
        widths = [text_width(node.name, NORMAL, True)] if device else []
        widths += [text_width(self._place_name(node), SMALL)] if device else []
        widths += [text_width(tag if device else _with_number(tag, node.name), SMALL, bool(tag))]
        return min(max(*widths, _LEAST - 10), _MOST if device else _MOST + 30) + 12

    def _panel(self, panel: Panel, x: float, width: float, height: float) -> tuple[TextBox, TextBox]:
        """The panel and its title."""
        marks = [] if panel.node is None else numbered(self.marks, node(panel.node))
        room, tone = width - 2 * PADDING, worst(marks)
        title = shortened(with_numbers(marks, panel.title), room, NORMAL, True)
        lines = [TextLine(title, NORMAL, True, tone)]
        lines += [TextLine(shortened(panel.cpus, room, SMALL), SMALL)] if panel.cpus else []
        rects = Rect(x, 0, width, height), Rect(x + PADDING, 3, room, _TITLE - 6)
        return (
            TextBox(kind="panel", rect=rects[0], tone=tone, hint=f"{panel.title} {panel.cpus}".strip()),
            TextBox(kind="title", rect=rects[1], lines=tuple(lines), hint=panel.cpus),
        )

    def _place(
        self, node: TreeNode, left: float, top: float, bottom: float, above: TextBox | None, boxes: list[TextBox],
        lines: list[Polyline],
    ) -> None:  # fmt: skip
        """Put a node and what is below it into its column, and draw the link above it."""
        middle, device = left + self._column(node) / 2, _is_device(node)
        y = bottom if device or node.kind == "card" else top
        own: TextBox | None = above
        if node.kind != "card":
            width, height = self._width(node), self.device_height if device else _BRIDGE
            own = self._box(node, Rect(middle - width / 2, y, width, height))
            boxes.append(own)
        self._link(node, above, middle, y, boxes, lines)
        x = middle - self._columns(node.children, _gap(node)) / 2
        for child in node.children:
            self._place(child, x, top + _BRIDGE + _STEP, bottom, None if node.kind == "card" else own, boxes, lines)
            x += self._column(child) + _gap(node)

    def _link(
        self, node: TreeNode, above: TextBox | None, x: float, y: float, boxes: list[TextBox], lines: list[Polyline]
    ) -> None:  # fmt: skip
        """From the box above down to this one, generation and lanes on it."""
        if above is None:
            return
        marks = self._marks_of_link(node)
        tone = worst(marks)
        start = above.rect.x + above.rect.w / 2, above.rect.y + above.rect.h
        bus = start[1] + _BUS
        hint = "" if node.hop is None else f"PCIe link {node.hop}: {', '.join(link_lines(node.hop)) or 'not reported'}"
        points = (start, (start[0], bus), (x, bus), (x, y))
        lines.append(Polyline(kind="pcie", points=points, tone=tone, hint=visible(hint), ends=(above.key, node.key)))
        if text_lines := [TextLine(text, SMALL, tone is not None, tone) for text in self._link_lines(node)]:
            width = max(text_width(line.text, line.size, line.bold) for line in text_lines) + 4
            height = len(text_lines) * SMALL * LINE + 1
            rect = Rect(x - width / 2, y - 7 - height, width, height)
            boxes.append(TextBox(kind="label", rect=rect, lines=tuple(text_lines), tone=tone, hint=visible(hint)))

    def _link_lines(self, node: TreeNode) -> list[str]:
        """Generation and lanes, behind the numbers of the marks."""
        first, *more = link_lines(node.hop) or [""]
        numbers = ",".join(str(mark.number) for mark in self._marks_of_link(node) if mark.number)
        first = f"{numbers}: {first}".rstrip() if numbers else first
        return [first, *more] if first else []

    def _marks_of_link(self, node: TreeNode) -> list[Mark]:
        return [mark for mark in self.marks if places_of_link(node) & {*mark.at}]

    def _marks_of(self, node: TreeNode) -> list[Mark]:
        return [mark for mark in self.marks if places(node) & {*mark.at}]

    def _tag(self, node: TreeNode) -> str:
        marks = [mark for mark in self._marks_of(node) if mark.number]
        return visible(with_numbers(marks, marks[0].tag if len(marks) == 1 else ""))

    def _box(self, node: TreeNode, rect: Rect) -> TextBox:
        marks = self._marks_of(node)
        tone, room = worst(marks), rect.w - 8
        device = _is_device(node)
        tag = self._tag(node)
        size, bold = (NORMAL, True) if device else (SMALL, bool(tag))
        name = node.name if device else _with_number(tag, node.name)
        lines = [TextLine(shortened(name, room, size, bold), size, bold, tone)]
        if device:
            place = self._place_name(node)
            lines += [TextLine(shortened(place, room, SMALL), SMALL)] if place else []
            lines += [TextLine(shortened(tag, room, SMALL, True), SMALL, True, tone)] if tag else []
        hint = ". ".join([f"{node.name} {node.key}".strip(), *(mark.words for mark in marks)])
        kind: BoxKind = "host-bridge" if node.kind == "card" else node.kind
        return TextBox(kind=kind, rect=rect, lines=tuple(lines), tone=tone, hint=visible(hint), key=node.key,
                       gone=node.gone)  # fmt: skip

    def _place_name(self, node: TreeNode) -> str:
        """``06:00.0``: as lspci writes it, without the domain where all have the same."""
        return node.bdf if self._whole else node.bdf.partition(":")[2]


def places(node: TreeNode) -> set[At]:
    """Where marks of a node are."""
    above, _, what = node.key.partition(" ")
    return {box(node.key), *map(box, node.parts), ("ghost", above, what)}


def places_of_link(node: TreeNode) -> set[At]:
    """Where marks of the link above a node are."""
    return set() if node.hop is None else {link(node.hop.device), link(node.hop.port), box(node.hop.port)}


def _is_device(node: TreeNode) -> bool:
    return node.kind in ("gpu", "nic", "other")


def _gap(node: TreeNode) -> float:
    """Between what is below it: the functions of a card are one."""
    return 0.0 if node.kind == "card" else GAP


def _with_number(tag: str, name: str) -> str:
    return f"{tag.partition(':')[0]}: {name}" if tag else name
