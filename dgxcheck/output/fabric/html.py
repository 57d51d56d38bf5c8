"""A fabric as one HTML file: what is wrong and which plugs to move, a picture, and each leaf."""

from __future__ import annotations

from dgxcheck.fabric.capacity import leaves_of
from dgxcheck.fabric.finding import FabricFinding
from dgxcheck.fleet.node_names import folded
from dgxcheck.output.fabric import picture, text
from dgxcheck.output.page import html
from dgxcheck.output.page.blocks import (
    Block,
    Cell,
    Drawing,
    Page,
    Paragraph,
    ProblemBlock,
    Table,
    sections,
    written,
)
from dgxcheck.output.report import FabricReport


def render(report: FabricReport) -> str:
    """The document."""
    judged = report.judged
    leaves = leaves_of(judged)
    first = judged.findings[0] if judged.findings else None
    rows = tuple(
        (Cell(leaf.name), Cell(folded(leaf.systems)), Cell(str(leaf.adapters)), Cell(str(leaf.uplinks)),
         Cell(text.ratio(leaf)))
        for leaf in leaves
    )  # fmt: skip
    drawing = Drawing(pictures=(picture.drawn(judged),), text="\n".join(text.table(leaves, False)))
    titled: tuple[tuple[str, list[Block]], ...] = (
        ("Findings", [_problem(finding) for finding in judged.findings]),
        ("Switches", [drawing] if leaves else []),
        ("Leaves", [Table(head=("Leaf", "Systems", "Adapters", "Uplinks", "Over-subscription"), rows=rows)]),
        ("Not read", [Paragraph(row) for row in judged.unread]),
    )
    counts = text.fault_counts(judged)
    lead = f"{counts}." if first is None else f"{counts}. First: {first.message}; {first.action}"
    facts = (*(("Cabling", row) for row in text.schemes(judged)),
             *(("Bandwidth", row) for row in text.bandwidth(leaves)),
             *(("Rates", row.removeprefix("rates: ")) for row in text.rates(judged.fabric)), written())
    return html.render(Page(
        title=text.sizes(judged), status=judged.verdict.upper(), tone=judged.verdict,
        lead=f"{lead[0].upper()}{lead[1:]}", facts=facts, sections=sections(*titled),
    ))  # fmt: skip


def _problem(finding: FabricFinding) -> Block:
    return ProblemBlock(
        title=f"{finding.status.upper()} {finding.fault.word}: {finding.message}",
        tone=finding.status,
        blocks=(Paragraph(f"Do: {finding.action}."),
                *([Paragraph(f"Interrupts: {', '.join(finding.disturbs)}.")] if finding.disturbs else []),
                *(Paragraph(f"{seat}.") for seat in finding.seats)),
    )  # fmt: skip
