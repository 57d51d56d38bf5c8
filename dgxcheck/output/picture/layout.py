"""Where everything of a picture is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise

from dgxcheck.checks.engine.finding import counted
from dgxcheck.facts.memory import NumaNode
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import replace
from dgxcheck.output.picture import nvlinks
from dgxcheck.output.picture.by_class import others
from dgxcheck.output.picture.marks import HOST, Mark, MarkTone, box, ghosts, numbered, of_host, with_numbers, worst
from dgxcheck.output.picture.shapes import (
    LINE,
    NORMAL,
    SMALL,
    Picture,
    Polyline,
    Rect,
    TextBox,
    TextLine,
    moved,
    upside_down,
    wrapped,
)
from dgxcheck.output.picture.tree_layout import BETWEEN, RowOfTrees, TreeLayout
from dgxcheck.output.picture.wiring import Panel, TreeNode, devices_below, panels
from dgxcheck.output.plain_text import visible
from dgxcheck.topology.model import Topology
from dgxcheck.topology.nvlinks import nvswitches

MARGIN = 16.0
_LEAST = 560.0
WIDEST, TALL = 1280.0, 380.0
"""Of one row, where that is possible: wider pictures are unreadable in a page; the same for a telephone."""


def drawn(
    topology: Topology, numa: tuple[NumaNode, ...] | Missing, title: str, marks: Sequence[Mark] = (),
    notes: Sequence[str] = (), nvme: bool = False, widest: float = WIDEST,
) -> Picture:  # fmt: skip
    """The wiring as a picture, at most ``widest`` wide where that is possible.

    The first line of ``title`` is bold; ``notes`` are sentences below the picture. A picture narrower than ``_LEAST``
    names the NVLinks in a list instead of drawing lines, as its devices stand in many rows.
    """
    found = panels(topology, numa, others(topology, marks, nvme), ghosts(marks))
    domains = {device.bdf.partition(":")[0] for device in topology.devices if device.bdf}
    tree = TreeLayout(marks, whole_bdfs=len(domains) > 1)
    to_bar = nvlinks.switched(topology)
    pairs = nvlinks.joints(topology, marks)
    words = nvlinks.in_words(topology, to_bar, pairs) if widest < _LEAST else []
    to_bar, pairs = ({}, []) if words else (to_bar, pairs)
    wired = bool(to_bar or pairs)
    home = {node.key: number for number, panel in enumerate(found) for node in devices_below(panel.children)}
    least = 2 if any(home.get(joint.a) != home.get(joint.b) for joint in pairs) else 1
    in_row = in_rows(found, tree, 2 if wired else None, widest, least)
    rows = [tree.row(row) for row in in_row]
    between = nvlinks.BAR + 2 * nvlinks.TO_BAR if to_bar else nvlinks.ROOM
    facing = len(rows) == 2 and wired
    width = max([row.width for row in rows] + [min(_LEAST, widest)])
    head = _title(title, marks, width)
    boxes, lines, bottom = _stacked(rows, width, MARGIN + head.rect.h, between if facing else BETWEEN, facing)
    joins, labels = _between_nodes([panel for row in in_row for panel in row], boxes, marks)
    lines, boxes = [*lines, *joins], [*boxes, *labels]
    wires = _wires(topology, boxes, to_bar, pairs, marks, facing)
    boxes = [head, *boxes, *wires.boxes]
    deep = [arc.at(0.5)[1] for arc in wires.arcs] + [box.rect.y + box.rect.h for box in wires.boxes]
    width = max([width, *(box.rect.x + box.rect.w - MARGIN for box in boxes)])
    y = max([bottom, *deep]) + BETWEEN
    below, end = _captions(marks, [*words, *_legend(topology, boxes, lines, pairs), *notes], width, y)
    return Picture(
        width=width + 2 * MARGIN, height=end + MARGIN, boxes=(*boxes, *below), lines=(*lines, *wires.lines),
        arcs=tuple(wires.arcs), title=title.partition("\n")[0],
        description=description(topology, found, nvlinks.switched(topology), marks),
    )  # fmt: skip


def _stacked(
    rows: Sequence[RowOfTrees], width: float, top: float, between: float, facing: bool
) -> tuple[list[TextBox], list[Polyline], float]:
    """The rows below each other, the second of two that face each other upside down, and where they end."""
    boxes: list[TextBox] = []
    lines: list[Polyline] = []
    y = top
    for number, row in enumerate(rows):
        shapes = upside_down(row.boxes, row.lines, row.height) if facing and number else (row.boxes, row.lines)
        put, links = moved(*shapes, MARGIN + (width - row.width) / 2, y)
        boxes += put
        lines += links
        y += row.height + between
    return boxes, lines, y - between if rows else y


def _wires(
    topology: Topology, boxes: Sequence[TextBox], to_bar: Mapping[str, int | None], pairs: Sequence[nvlinks.Joint],
    marks: Sequence[Mark], facing: bool,
) -> nvlinks.Wires:  # fmt: skip
    """The NVLinks: below the panels, or in the space between two rows."""
    gpus = {box.key: box.rect for box in boxes if box.kind == "gpu"}
    panel_ends = [box.rect.y + box.rect.h for box in boxes if box.kind == "panel"]
    if not gpus or not (to_bar or pairs):
        return nvlinks.Wires(boxes=[], lines=[], arcs=[])
    first = min(rect.y for rect in gpus.values())
    upper = first + gpus[min(gpus, key=lambda key: gpus[key].y)].h
    lower = max(rect.y for rect in gpus.values())
    lower = lower if facing and lower > upper else upper + nvlinks.ROOM
    at = (upper + lower - nvlinks.BAR) / 2 if facing else max(panel_ends) + nvlinks.TO_BAR - BETWEEN
    arcs = nvlinks.arcs(gpus, pairs, upper, lower)
    if not to_bar:
        return arcs
    bar = nvlinks.through_bar(gpus, to_bar, marks, at, len(nvswitches(topology)))
    return nvlinks.Wires(boxes=bar.boxes + arcs.boxes, lines=bar.lines, arcs=arcs.arcs)


def _between_nodes(
    in_order: Sequence[Panel], boxes: Sequence[TextBox], marks: Sequence[Mark]
) -> tuple[list[Polyline], list[TextBox]]:
    """A line from each NUMA node to the next: beside it, or along the left margin to the next row.

    It has the tone of what is marked at both nodes, or at host bridges of both; and the number of what is marked at it.
    """
    lines, labels = [], []
    rects = [box.rect for box in boxes if box.kind == "panel"]
    left = {rect.y: rect.x for rect in reversed(rects)}
    for (a, here), (b, there) in pairwise(zip(in_order, rects, strict=True)):
        if a.node is None or b.node is None or a.node == b.node:
            continue
        y, below = here.y + here.h / 2, there.y + there.h / 2
        points: tuple[tuple[float, float], ...] = ((here.x + here.w, y), (there.x, y))
        if here.y != there.y:
            points = ((left[here.y], y), (MARGIN / 2, y), (MARGIN / 2, below), (there.x, below))
        both = [{("node", str(panel.node), ""), *(box(bridge.key) for bridge in panel.children)} for panel in (a, b)]
        low, high = sorted((a.node, b.node))
        at_it = [mark for mark in marks if any(
            kind == "between" and int(first) <= low and high <= int(last) for kind, first, last in mark.at)]
        tone = worst([*at_it, *(mark for mark in marks if all(own & {*mark.at} for own in both))])
        ends = (a.title, b.title)
        lines.append(Polyline(kind="socket", points=points, tone=tone, hint="Between NUMA nodes", ends=ends))
        if at_it:
            (x, top), (end, bottom) = points[len(points) // 2 - 1 : len(points) // 2 + 1]
            above = SMALL if top == bottom else 0.0
            labels.append(nvlinks.label(with_numbers(at_it, ""), (x + end) / 2, (top + bottom) / 2 - above, at_it))
    return lines, labels


def _title(title: str, marks: Sequence[Mark], width: float) -> TextBox:
    head, _, more = title.partition("\n")
    lines = [TextLine(line, NORMAL + 2, True) for line in wrapped(head, width / 1.2, NORMAL + 2)]
    lines += [TextLine(line, SMALL) for line in wrapped(more, width, SMALL)] if more else []
    tone = worst(numbered(marks, HOST))
    lines += [TextLine(line, SMALL, True, tone) for line in wrapped(of_host(marks), width / 1.2, SMALL) if line]
    height = sum(line.size * LINE for line in lines) + 3
    return TextBox(kind="title", rect=Rect(MARGIN, MARGIN - 4, width, height), lines=tuple(lines))


def _legend(
    topology: Topology, boxes: Sequence[TextBox], wires: Sequence[Polyline], pairs: Sequence[nvlinks.Joint]
) -> list[str]:
    lines = []
    if label := next((box.lines[0].text for box in boxes if box.kind == "label" and box.hint and not box.tone), ""):
        lines.append(
            f"{label}: generation and lanes of a PCIe link as it is trained now; idle GPUs lower the generation."
        )
    if any(line.kind == "socket" for line in wires):
        lines.append("A thick grey line leads to another NUMA node: SOC, SYS in newer tools.")
    if any(box.gone for box in boxes):
        lines.append("A dashed box is a device that is missing, or a GPU that NVML does not list.")
    if pairs and nvlinks.is_single(pairs):
        lines.append("Each green line is one NVLink, a dashed one is down.")
    elif pairs:
        lines.append("A green line with NV# is # NVLinks.")
    if not any(box.kind == "panel" for box in boxes):
        lines.append("No GPUs and no HCAs found.")
    return lines + ([visible(topology.headline)] if topology.headline else [])


def _captions(marks: Sequence[Mark], notes: Sequence[str], width: float, y: float) -> tuple[list[TextBox], float]:
    """What the numbers in the picture mean, then the legend."""
    texts: list[tuple[str, float, MarkTone | None]] = []
    for mark in marks:
        sign = " ".join(filter(None, (mark.sign, str(mark.number) if mark.number else "")))
        texts.append((f"{sign}: {mark.words}" if sign else mark.words, NORMAL, mark.tone))
    shapes = []
    for text, size, tone in (*texts, *((note, SMALL, None) for note in notes)):
        caption = wrapped(visible(text), width, size)
        height = len(caption) * size * LINE + 3
        lines = tuple(TextLine(line, size, False, tone) for line in caption)
        shapes.append(TextBox(kind="caption", rect=Rect(MARGIN, y, width, height), lines=lines, tone=tone))
        y += height
    return shapes, y


def in_rows(
    found: Sequence[Panel], tree: TreeLayout, most: int | None, widest: float, least: int = 1
) -> list[list[Panel]]:
    """Panels in order, in as few rows as are not too wide, of about the same width.

    ``most`` rows at the most, however wide, where NVLinks join GPUs; ``least`` 2 where they join panels: two rows
    that face each other keep the NVLinks between them apart from those of each.
    """
    parts = [part for panel in found for part in _parts(panel, tree, widest)]
    widths = [tree.width(panel) for panel in parts]
    if not parts:
        return []
    limit = widest
    while most is not None and len(_filled(widths, limit)) > most:
        limit += 40
    fewest = max(len(_filled(widths, limit)), least)
    while limit - 20 >= max(widths) and len(_filled(widths, limit - 20)) <= fewest:
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


def _parts(panel: Panel, tree: TreeLayout, widest: float) -> list[Panel]:
    """A NUMA node too wide for one row in parts: of whole host bridges, else of what is below one, and so on."""
    total = tree.width(panel)
    path: list[TreeNode] = []
    units = panel.children
    while len(units) == 1 and units[0].children:
        path.append(units[0])
        units = units[0].children
    if total <= widest or len(units) < 2:
        return [panel]

    def part(of: Sequence[TreeNode]) -> Panel:
        children, again = tuple(of), of[0] is not units[0]
        for node in reversed(path):
            key = f"{node.key} above {of[0].key}" if again else node.key
            children = (replace(node, key=key, children=children),)
        title = panel.title if not again or panel.title.endswith(_AGAIN) else panel.title + _AGAIN
        return replace(panel, title=title, children=children)

    def cut(most: float) -> list[list[TreeNode]]:
        parts: list[list[TreeNode]] = [[]]
        for unit in units:
            if parts[-1] and tree.width(part([*parts[-1], unit])) > most:
                parts.append([])
            parts[-1].append(unit)
        return parts

    parts = min(cut(min(total / -(-total // widest) + BETWEEN, widest)), cut(widest), key=len)
    return [small for of in parts for small in _parts(part(of), tree, widest)]


_AGAIN = " (continued)"


def description(
    topology: Topology, panels: Sequence[Panel], to_bar: Mapping[str, int | None], marks: Sequence[Mark]
) -> str:  # fmt: skip
    """``NUMA node 0: GPU0, GPU1, mlx5_0. ... NVLinks join 16 pairs of GPUs. FAIL: ...``"""
    lines = [f"{panel.title}: {', '.join(node.name for node in devices_below(panel.children))}." for panel in panels]
    joined = sum(bool(topology.link(a, b).nvlinks) for a, b in combinations(topology.gpus, 2))
    if to_bar:
        lines.append(f"NVLinks of {counted(len(to_bar), 'GPU')} lead to NVSwitches.")
    elif joined:
        lines.append(f"NVLinks join {counted(joined, 'pair')} of GPUs.")
    lines += [f"{mark.words}." if not mark.words.endswith(".") else mark.words for mark in marks]
    return " ".join(lines) or "No GPUs and no HCAs."
