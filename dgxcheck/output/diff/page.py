"""The whole comparison of ``dgxcheck diff`` as blocks, with a picture before and one after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck import __version__
from dgxcheck.assessment.compare import Comparison, Look
from dgxcheck.difference.model import Difference, Trend, Value
from dgxcheck.facts.missing import BadInput
from dgxcheck.output.diff.text import device_of, grouped, kinds_of, totals_of
from dgxcheck.output.origin import source_text
from dgxcheck.output.page import html, markdown
from dgxcheck.output.page.blocks import Block, Cell, Drawing, Page, Paragraph, Table, Tone, sections
from dgxcheck.output.picture import layout, svg
from dgxcheck.output.picture.marks import NVSWITCHES, At, Mark, MarkTone, box, link, pair
from dgxcheck.output.picture.shapes import Picture
from dgxcheck.output.plain_text import visible
from dgxcheck.output.report import DiffReport
from dgxcheck.output.topo.matrix import matrix
from dgxcheck.output.topo.picture import title_of
from dgxcheck.topology.model import Topology

_TONES: dict[Trend, Tone | None] = {"worse": "fail", "better": "pass", "neutral": None}
_VERDICTS: dict[str, Tone] = {"worse": "fail", "better": "pass", "same": "pass"}


def page_of(report: DiffReport) -> Page:
    """Result, differences, both pictures, and what could not be compared."""
    comparison = report.comparison
    return Page(
        title="What has changed",
        status=comparison.verdict.upper(),
        tone=_VERDICTS[comparison.verdict],
        lead=". ".join((totals_of(comparison), *kinds_of(comparison))),
        facts=(
            ("Old", _described(comparison.old)),
            ("New", _described(comparison.new)),
            ("Written by", f"dgxcheck {__version__}"),
        ),
        sections=sections(
            ("Differences", _differences(comparison)),
            ("Wiring", _drawings(comparison)),
            ("Not compared", (Paragraph(visible(note)) for note in comparison.notes)),
        ),
    )


def pictures_of(comparison: Comparison, widest: float = layout.WIDEST) -> tuple[Picture, ...]:
    """Before and after; of a health report, which contains no facts, none."""
    return tuple(_picture(comparison, look, words, widest) for look, words in
                 ((comparison.old, "Before"), (comparison.new, "After")) if look.side is not None)  # fmt: skip


def _described(look: Look) -> str:
    score, against = look.report.score, visible(look.report.against)
    return source_text(look.origin) + (f"; score {score:g} of 100 against {against}" if score is not None else "")


def _picture(comparison: Comparison, look: Look, words: str, widest: float) -> Picture:
    assert look.side is not None
    topology = look.side.topology
    title = f"{words}: {title_of(topology, look.origin)}"
    marks = difference_marks(comparison.differences, topology, before=words == "Before")
    return layout.drawn(topology, look.side.snapshot.numa, title, marks, widest=widest)


def _differences(comparison: Comparison) -> Iterator[Block]:
    if not comparison.differences:
        yield Paragraph("No differences.")
        return
    rows = tuple(_row(alike) for alike in grouped(comparison.differences))
    yield Table(head=("Device", "", "Before", "After", "What"), rows=rows)


def _row(alike: Sequence[Difference]) -> tuple[Cell, ...]:
    difference = alike[0]
    return (Cell(visible(device_of(alike))), Cell(difference.kind.upper(), _TONES[difference.kind]),
            Cell(_value(difference.old)), Cell(_value(difference.new)), Cell(visible(difference.message)))


def _value(value: Value) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else visible(str(value))


def _drawings(comparison: Comparison) -> Iterator[Block]:
    sides = [look.side for look in (comparison.old, comparison.new) if look.side is not None]
    pictures = zip(pictures_of(comparison), pictures_of(comparison, layout.TALL), strict=True)
    for side, (wide, tall) in zip(sides, pictures, strict=True):
        yield Drawing(pictures=(wide,), tall=(tall,), text=matrix(side.topology, False, "soc", None, []))


_MARK_TONES: dict[Trend, MarkTone] = {"worse": "fail", "better": "better", "neutral": "way"}
_SIGNS: dict[Trend, str] = {"worse": "WORSE", "better": "BETTER", "neutral": "CHANGED"}
_TAGS = {"network": "port", "memory": "memory", "counter": "counter", "measurement": "slower"}
_NOT_DRAWN = ("finding", "score", "host")
"""Areas of which a picture of the wiring shows nothing; findings repeat what facts say."""
MOST = 16


def difference_marks(differences: Sequence[Difference], topology: Topology, before: bool) -> list[Mark]:
    """Those of one picture, numbered alike in both: what is gone in the picture before, the others in that after."""
    drawn = [each for each in differences if each.area not in _NOT_DRAWN and each.what != "name"][:MOST]
    return [_mark(number, each, topology) for number, each in enumerate(drawn, 1) if (each.change == "gone") == before]


def _mark(number: int, difference: Difference, topology: Topology) -> Mark:
    at = _at(difference, topology)
    down = 0
    if difference.area == "nvlink" and isinstance(difference.old, int) and isinstance(difference.new, int):
        down = max(difference.old - difference.new, 0)
    return Mark(
        number=number, tone=_MARK_TONES[difference.kind], sign=_SIGNS[difference.kind],
        tag=difference.change if difference.area == "hardware" else _TAGS.get(difference.area, difference.area),
        words=f"{difference.device}: {difference.message}", at=at, down=down,
    )  # fmt: skip


def _at(difference: Difference, topology: Topology) -> tuple[At, ...]:
    ends = [topology.device(name) for name in difference.device.split(" - ")]
    keys = [device.bdf or device.name for device in ends if device is not None]
    if difference.area == "nvlink":
        return (pair(*keys),) if len(keys) == 2 else (*map(box, keys), NVSWITCHES)
    if difference.area == "link" and difference.bdf:
        return (link(difference.bdf),)
    if len(keys) == 2:
        return (pair(*keys),)
    return (box(difference.bdf),) if difference.bdf else tuple(map(box, keys))


def as_html(report: DiffReport) -> str:
    """The whole comparison."""
    return html.render(page_of(report))


def as_markdown(report: DiffReport) -> str:
    """The whole comparison."""
    return markdown.render(page_of(report))


def as_svg(report: DiffReport) -> str:
    """One SVG document; BadInput where both sides are health reports."""
    pictures = pictures_of(report.comparison)
    if not pictures:
        raise BadInput("--format svg needs a machine or a recording: a health report contains no wiring")
    return svg.render(pictures)
