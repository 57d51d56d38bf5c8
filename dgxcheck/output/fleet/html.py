"""A fleet as one HTML file: a picture of all nodes, faults by kind, outliers, versions and the lowest scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from dgxcheck.checks.engine.finding import counted
from dgxcheck.facts.typical import gathered
from dgxcheck.fleet.judge import Fleet, KindOfFault
from dgxcheck.fleet.node_names import folded
from dgxcheck.fleet.outliers import FleetFigure
from dgxcheck.output.fleet import text
from dgxcheck.output.page import html
from dgxcheck.output.page.blocks import (
    Block,
    Cell,
    Fold,
    Mosaic,
    Page,
    Paragraph,
    ProblemBlock,
    Spread,
    Table,
    Tile,
    Tone,
    sections,
    written,
)
from dgxcheck.output.report import FleetReport

_WORDS: tuple[tuple[Tone, str], ...] = (
    ("fail", "fail"), ("unknown", "unknown"), ("warn", "warn"), ("pass", "pass"), ("skip", "no result"),
)  # fmt: skip
_MOST_KINDS, _MOST_FIGURES, _MOST_ROWS, _MOST_NODES = 25, 30, 20, 40
"""Shown at once: kinds of faults, figures, rows of a table, outliers of one figure; the rest unfolds."""
_LONGEST_TITLE = 60
"""Characters."""


def render(report: FleetReport) -> str:
    """The document."""
    return html.render(_page(report))


def _page(report: FleetReport) -> Page:
    fleet = report.fleet
    names = folded((*fleet.nodes, *fleet.silent))
    scores = ((Cell(node.name), Cell(f"{score:g}", node.verdict), Cell(node.newest.group.profile))
              for score, node in text.lowest_scores(fleet))  # fmt: skip
    titled = (
        ("Nodes", [_mosaic(report)] if fleet.nodes or fleet.silent else []),
        ("Without a result", _rows(("Nodes or file", "Nodes", "Reason"), _unread(fleet))),
        ("Faults", [*_kinds(fleet.kinds)]),
        ("Found earlier, and not shown to be gone since",
         _rows(("Node", "Finding", "Found", "Newest result"), _unproven(fleet))),
        ("Judged by less than most nodes alike",
         _rows(("Node", "By what"), ((Cell(each.node), Cell(text.less_text(each))) for each in fleet.judged_less))),
        ("Off the median of the fleet", [*_figures(fleet.figures)]),
        ("Counts that differ", _rows(("Of", "Number", "Nodes", "Which"), _device_counts(fleet))),
        ("Versions and settings that differ", _rows(("Of", "Value", "Nodes", "Which"), _versions(fleet))),
        ("Lowest scores", _rows(("Node", "Score", "Reference"), scores)),
    )  # fmt: skip
    return Page(
        title=names if 0 < len(names) <= _LONGEST_TITLE else counted(len(fleet.nodes) + len(fleet.silent), "node"),
        status=fleet.verdict.upper(), tone=fleet.verdict,
        lead=_lead(fleet), facts=tuple(_facts(fleet)), sections=sections(*titled),
    )  # fmt: skip


def _lead(fleet: Fleet) -> str:
    lead = f"{text.counts(fleet)}."
    if not fleet.kinds:
        return f"{lead} No problems found in the checks that ran."
    worst = fleet.kinds[0]
    action = text.first_action(worst)
    return f"{lead} Worst: {worst.check} on {counted(len(worst.nodes), 'node')}{f'; do: {action}' if action else ''}"


def _facts(fleet: Fleet) -> Iterator[tuple[str, str]]:
    groups = dict.fromkeys(node.newest.group for node in fleet.nodes.values())
    machines = [" ".join(filter(None, (group.gpus, f"driver {group.driver}" * bool(group.driver)))) for group in groups]
    if machines:
        more = f" and {len(machines) - 4} more" if len(machines) > 4 else ""
        yield "Machines", f"{'; '.join(machines[:4])}{more}"
    if times := [node.newest.generated_at for node in fleet.nodes.values()]:
        yield "Results", f"{fleet.results}, the newest of each node from {min(times)} to {max(times)}"
    yield written()


def _mosaic(report: FleetReport) -> Mosaic:
    fleet = report.fleet
    groups = tuple((rack, tuple(_tile(fleet, name) for name in names)) for rack, names in report.racks.items())
    lines = [f"{word}: {folded(fleet.with_verdict(word))}" for word in ("fail", "unknown", "warn")
            if fleet.with_verdict(word)]  # fmt: skip
    lines += [f"no result: {folded(fleet.silent)}"] if fleet.silent else []
    return Mosaic(groups=groups, words=_WORDS, title=text.counts(fleet), text="; ".join(lines) or "all nodes pass")


def _tile(fleet: Fleet, name: str) -> Tile:
    node = fleet.nodes.get(name)
    if node is None:
        return Tile(name, "skip", "no result")
    checks = dict.fromkeys(fault.fault.check for fault in node.faults)
    summary = f"{node.verdict}, {', '.join([*checks][:5])}" if checks else node.verdict
    return Tile(name, node.verdict, summary)


def _unread(fleet: Fleet) -> Iterator[tuple[Cell, ...]]:
    """Silent nodes by reason, then files and lines."""
    why = {unreadable.where: unreadable.why for unreadable in fleet.unread}
    for reason, names in gathered((why.pop(name, "no result"), name) for name in fleet.silent).items():
        yield Cell(folded(names)), Cell(str(len(names))), Cell(reason)
    for where, reason in why.items():
        yield Cell(where), Cell(""), Cell(reason)


def _kinds(kinds: Sequence[KindOfFault]) -> Iterator[Block]:
    yield from map(_problem, kinds[:_MOST_KINDS])
    if more := kinds[_MOST_KINDS:]:
        yield Fold(title=f"{counted(len(more), 'more kind')} of faults", blocks=tuple(map(_problem, more)))


def _problem(kind: KindOfFault) -> ProblemBlock:
    count = len(kind.nodes)
    words = text.example(kind)
    blocks = [
        Paragraph(f"{counted(count, 'node')}: {folded(kind.nodes)}"),
        Paragraph(f"{words[0].upper()}{words[1:]}" if count > 1 else words),
    ]
    if common := text.common(kind):
        blocks.append(Paragraph(f"{common[0].upper()}{common[1:]}."))
    if action := text.first_action(kind):
        blocks.append(Paragraph(f"Do: {action}"))
    word = f" ({kind.word})" if kind.word else ""
    return ProblemBlock(title=f"{kind.status.upper()} {kind.check}{word}", tone=kind.status, blocks=tuple(blocks))


def _unproven(fleet: Fleet) -> Iterator[tuple[Cell, ...]]:
    for node, each in text.unproven(fleet):
        found = f"level {each.level}, {each.found_at}"
        newest = f"level {node.newest.level}, {node.newest.generated_at}"
        yield Cell(node.name), Cell(each.fault.key, each.fault.status), Cell(found), Cell(newest)


def _figures(figures: Sequence[FleetFigure]) -> Iterator[Block]:
    head = ("Figure", "Of all nodes", "Off")
    note = "Bars: nodes by value; shaded: the accepted range; line: the median; triangles: nodes that are off."
    if figures:
        yield Table(head=head, rows=tuple(map(_figure, figures[:_MOST_FIGURES])), note=note)
    if more := figures[_MOST_FIGURES:]:
        rows = tuple((each[0], each[2]) for each in map(_figure, more))
        yield Fold(title=f"{counted(len(more), 'more figure')}", blocks=(Table(head=("Figure", "Off"), rows=rows),))


def _figure(figure: FleetFigure) -> tuple[Cell, ...]:
    group = ", ".join(filter(None, (figure.group.gpus, figure.group.driver)))
    drawn = Spread(low=figure.low, high=figure.high, counts=figure.counts, median=figure.median, bound=figure.bound,
                   off=tuple(outlier.value for outlier in figure.outliers))  # fmt: skip
    low, high, middle = map(text.number, (figure.low, figure.high, figure.median))
    nodes = [
        f"{each.node} {text.number(each.value)} ({text.percent(each.off)}{', another driver' * each.another_driver})"
        for each in figure.outliers[:_MOST_NODES]
    ]
    nodes += [f"and {len(figure.outliers) - _MOST_NODES} more"] if figure.outliers[_MOST_NODES:] else []
    figures = f"{low} to {high}, median {middle} of {sum(figure.counts)} nodes"
    return Cell(figure.key), Cell(figures, note=group, spread=drawn), Cell(", ".join(nodes))


def _device_counts(fleet: Fleet) -> Iterator[tuple[Cell, ...]]:
    return (
        (Cell(text.counted_devices(difference)), Cell(str(number)), Cell(str(len(names))), Cell(folded(names)))
        for difference in fleet.device_counts
        for number, names in difference.nodes.items()
    )


def _versions(fleet: Fleet) -> Iterator[tuple[Cell, ...]]:
    return (
        (Cell(difference.name), Cell(value or "none", note=difference.gpus), Cell(str(len(nodes))), Cell(folded(nodes)))
        for difference in fleet.differences
        for value, nodes in difference.nodes.items()
    )


def _rows(head: tuple[str, ...], rows: Iterable[tuple[Cell, ...]]) -> list[Block]:
    """A table; what is beyond its first rows unfolds."""
    cells = tuple(rows)
    if not cells:
        return []
    first: list[Block] = [Table(head=head, rows=cells[:_MOST_ROWS])]
    if more := cells[_MOST_ROWS:]:
        first.append(Fold(title=f"{len(more)} more", blocks=(Table(head=head, rows=more),)))
    return first
