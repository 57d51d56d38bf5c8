"""Racks that NVLink joins: a matrix folded by tray within 120 columns, a picture, and what differs in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.checks.engine.finding import counted
from dgxcheck.fleet.node import GpuLinks
from dgxcheck.fleet.node_names import folded
from dgxcheck.fleet.nvlink_racks import OUTSIDE, Difference, Rack, racks
from dgxcheck.output.picture import svg as as_svg
from dgxcheck.output.picture.shapes import Picture, Rect, TextBox, TextLine, shortened
from dgxcheck.output.plain_text import lines, visible
from dgxcheck.output.report import FleetReport

_COLUMNS, _NAME, _CELL = 18, 28, 5
"""Trays side by side, and characters: 28 + 18 x 5 are within 120."""
_NONE = "no result is of a machine whose GPUs share an NVLink domain with others"


def heading(rack: Rack) -> str:
    """``NVLink domain UUID.CLIQUE: 18 trays, 72 GPUs, 1295 of 1296 NVLinks up``."""
    if rack.domain == OUTSIDE:
        return f"in no NVLink domain, or in several: {folded(rack.trays)}"
    gpus = [links for tray in rack.trays.values() for links in tray.values()]
    up, wired = sum(links.up for links in gpus), sum(links.wired for links in gpus)
    trays = counted(len(rack.trays), "tray")
    return f"NVLink domain {rack.domain}: {trays}, {counted(rack.gpus, 'GPU')}, {up} of {wired} NVLinks up"


def difference_text(difference: Difference, rack: Rack) -> str:
    """One line."""
    links = f"{'link' if len(difference.links) == 1 else 'links'} {', '.join(map(str, difference.links))} down"
    if difference.culprit == "plane":
        down = f"{difference.gpus} of {counted(rack.gpus, 'GPU')}"
        one = len(difference.links) == 1
        what = "this NVSwitch" if one else "these NVSwitches, of which a switch tray has two,"
        planes = f"switch plane{'' if one else 's'} of {links.removesuffix(' down')}"
        return f"{planes}: down at {down}; look at {what} on the switch trays (NMX-C; nv show interface), not at GPUs"
    if difference.culprit == "gpu":
        return f"{difference.node} {difference.gpu}: {links}"
    if difference.links:
        return f"{difference.node}: {links} at every GPU of the tray"
    if difference.gpus:
        return f"{difference.node}: {counted(difference.gpus, 'GPU')}, other trays have another number"
    if len(difference.domains) == 1:
        return f"{difference.node}: in a clique that few trays of its cluster have; look at the partitions of NMX-C"
    found = len(difference.domains)
    return f"{difference.node}: its GPUs are in {counted(found, 'NVLink domain') if found else 'no NVLink domain'}"


def section(report: FleetReport) -> list[str]:
    """Rows for the text of a fleet: each rack, and below it what differs."""
    rows: list[str] = []
    for rack in racks(report.fleet.nodes):
        rows += [heading(rack), *(f"  {difference_text(difference, rack)}" for difference in rack.differences)]
    return rows


def matrix(report: FleetReport) -> str:
    """The NVLinks between the GPUs of each two trays."""
    return lines(map(visible, _matrices(report)))


def _matrices(report: FleetReport) -> Iterator[str]:
    found = racks(report.fleet.nodes)
    if not found:
        yield f"# {_NONE}"
    for rack in found:
        yield heading(rack)
        yield from (f"  {difference_text(difference, rack)}" for difference in rack.differences)
        names = [*rack.trays] if rack.domain != OUTSIDE else []
        for start in range(0, len(names), _COLUMNS):
            yield from _block(rack, names, range(start, min(start + _COLUMNS, len(names))))
        yield ""
    yield "NV#: NVLinks between a GPU of the row's tray and one of the column's; NV#*: the least of several numbers"


def _block(rack: Rack, names: Sequence[str], columns: range) -> Iterator[str]:
    yield "".join([" " * _NAME, *(f"{f't{column + 1}':<{_CELL}}" for column in columns)]).rstrip()
    for number, row in enumerate(names, 1):
        cells = (_cell(rack.links_between(row, names[column])) for column in columns)
        name = f"t{number:<3}{row}"
        yield "".join([f"{name[: _NAME - 1]:<{_NAME}}", *(f"{cell:<{_CELL}}" for cell in cells)]).rstrip()


def _cell(links: tuple[int, int] | None) -> str:
    if links is None:
        return "-"
    least, most = links
    return f"NV{least}{'*' if least != most else ''}"


_WIDTH, _ROW, _GPU, _LEFT, _EDGE = 760.0, 26.0, 128.0, 190.0, 12.0


def picture(report: FleetReport) -> str:
    """Every tray as a row of its GPUs, those with links down marked, as SVG."""
    found = racks(report.fleet.nodes)
    return as_svg.render([_picture(rack) for rack in found] or [Picture(
        title="no rack", description=_NONE, width=_WIDTH, height=2 * _ROW, lines=(), arcs=(),
        boxes=(TextBox(kind="title", rect=Rect(_EDGE, _EDGE, _WIDTH - 2 * _EDGE, _ROW), lines=(TextLine(_NONE),)),),
    )])  # fmt: skip


def _picture(rack: Rack) -> Picture:
    title = visible(heading(rack))
    about = [visible(difference_text(difference, rack)) for difference in rack.differences]
    y = _EDGE
    boxes = [TextBox(kind="title", rect=Rect(_EDGE, y, _WIDTH - 2 * _EDGE, _ROW), lines=(TextLine(title, bold=True),))]
    for text in about:
        y += _ROW
        line = TextLine(shortened(text, _WIDTH - 2 * _EDGE, 12.5), tone="fail")
        boxes.append(TextBox(kind="caption", rect=Rect(_EDGE, y, _WIDTH - 2 * _EDGE, _ROW), lines=(line,)))
    for name, gpus in rack.trays.items():
        y += _ROW
        label = TextLine(shortened(visible(name), _LEFT - 2 * _EDGE, 12.5))
        boxes.append(TextBox(kind="caption", rect=Rect(_EDGE, y, _LEFT - _EDGE, _ROW), lines=(label,)))
        boxes += [_gpu(gpu, links, Rect(_LEFT + place * (_GPU + 6), y, _GPU, _ROW - 4))
                  for place, (gpu, links) in enumerate(gpus.items())]  # fmt: skip
    width = max(_WIDTH, *(box.rect.x + box.rect.w + _EDGE for box in boxes))
    return Picture(
        title=title, description=". ".join(about) or "All trays are alike.", width=width, height=y + _ROW + _EDGE,
        boxes=tuple(boxes), lines=(), arcs=(),
    )  # fmt: skip


def _gpu(name: str, links: GpuLinks, rect: Rect) -> TextBox:
    text = f"{visible(name)} {links.up}/{links.wired}"
    hint = f"{text} NVLinks up{'; down: ' + ', '.join(map(str, links.down)) if links.down else ''}"
    return TextBox(
        kind="gpu", rect=rect, lines=(TextLine(shortened(text, rect.w - 8, 10.5), size=10.5),),
        tone="fail" if links.down else None, hint=hint,
    )  # fmt: skip
