"""The whole comparison of ``dgxcheck diff`` as blocks, with a picture before and one after."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dgxcheck import __version__
from dgxcheck.assessment.compare import Comparison, Look
from dgxcheck.difference.model import Difference, Trend, Value
from dgxcheck.output import provenance
from dgxcheck.output.diff.difference_marks import difference_marks
from dgxcheck.output.diff.report import Report
from dgxcheck.output.page.blocks import Block, Cell, Drawing, Page, Section, Table, Text, Tone
from dgxcheck.output.picture import layout
from dgxcheck.output.picture.shapes import Picture
from dgxcheck.output.plain_text import visible
from dgxcheck.output.topo.matrix import matrix
from dgxcheck.output.topo.picture import title_of

_TONES: dict[Trend, Tone | None] = {"worse": "fail", "better": "pass", "neutral": None}
_VERDICTS: dict[str, Tone] = {"worse": "fail", "better": "pass", "same": "pass"}


def page_of(report: Report) -> Page:
    """Result, differences, both pictures, and what could not be compared."""
    comparison = report.comparison
    counts = Counter(difference.kind for difference in comparison.differences)
    kinds: tuple[Trend, ...] = ("worse", "better", "neutral")
    sections = (
        Section(title="Differences", blocks=tuple(_differences(comparison))),
        Section(title="Wiring", blocks=tuple(_drawings(comparison))),
        Section(title="Not compared", blocks=tuple(Text(visible(note)) for note in comparison.notes)),
    )
    return Page(
        title="What has changed",
        status=comparison.verdict.upper(),
        tone=_VERDICTS[comparison.verdict],
        lead=", ".join(f"{counts[kind]} {kind}" for kind in kinds),
        facts=(
            ("Old", _described(comparison.old)),
            ("New", _described(comparison.new)),
            ("Written by", f"dgxcheck {__version__}"),
        ),
        sections=tuple(section for section in sections if section.blocks),
    )


def pictures_of(comparison: Comparison) -> tuple[Picture, ...]:
    """Before and after; of a health report, which contains no facts, none."""
    return tuple(_picture(comparison, look, words) for look, words in
                 ((comparison.old, "Before"), (comparison.new, "After")) if look.side is not None)  # fmt: skip


def _described(look: Look) -> str:
    score = f"; score {look.score:g} of 100 against {visible(look.against)}" if look.score is not None else ""
    return f"{provenance.describe(look.origin)}{score}"


def _picture(comparison: Comparison, look: Look, words: str) -> Picture:
    assert look.side is not None
    topology = look.side.topology
    title = f"{words}: {title_of(topology, provenance.describe(look.origin))}"
    marks = difference_marks(comparison.differences, topology, before=words == "Before")
    return layout.drawn(topology, look.side.snapshot.numa, title, marks)


def _differences(comparison: Comparison) -> Iterator[Block]:
    if not comparison.differences:
        yield Text("No differences.")
        return
    rows = tuple(_row(each) for each in comparison.differences)
    yield Table(head=("Device", "", "Before", "After", "What"), rows=rows)


def _row(difference: Difference) -> tuple[Cell, ...]:
    place = f" {difference.bdf}" if difference.bdf and difference.bdf not in difference.device else ""
    return (
        Cell(visible(f"{difference.device}{place}")),
        Cell(difference.kind.upper(), _TONES[difference.kind]),
        Cell(_value(difference.old)),
        Cell(_value(difference.new)),
        Cell(visible(difference.message)),
    )


def _value(value: Value) -> str:
    if value is None:
        return ""
    return f"{value:g}" if isinstance(value, float) else visible(str(value))


def _drawings(comparison: Comparison) -> Iterator[Block]:
    for look, picture in zip(_with_facts(comparison), pictures_of(comparison), strict=True):
        if look.side is not None:
            yield Drawing(pictures=(picture,), text=matrix(look.side.topology, False, "soc", None, []))


def _with_facts(comparison: Comparison) -> list[Look]:
    return [look for look in (comparison.old, comparison.new) if look.side is not None]
