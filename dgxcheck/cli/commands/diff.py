"""``dgxcheck diff``: what has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dgxcheck.assessment.compare import compare
from dgxcheck.assessment.machine import LIVE, LiveMachine
from dgxcheck.cli.options import options, sources
from dgxcheck.cli.results import emit, formats, renderer
from dgxcheck.output.report import DiffReport

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

WORSE = 1


def _sides(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [*([CompletionItem(LIVE)] if LIVE.startswith(incomplete) else []), *sources(ctx, param, incomplete)]


@click.command("diff")
@click.argument("old", metavar="OLD", shell_complete=_sides)
@click.argument("new", metavar="NEW", shell_complete=_sides)
@options("diff")
@click.pass_context
def command(
    ctx: click.Context, old: str, new: str, profile: str, form: str, deadline: float, output: str | None, color: str
) -> int:  # fmt: skip
    """Compare OLD with NEW: hardware, links, firmware, settings, errors, bandwidth, findings, score.

    Each side is a recording, an overlay, a directory or the text of a tool as for --from, a report of health --format
    json, or the word live for this machine. Exit code 0: nothing is worse; 1: something is worse; 3: could not run.
    """
    if old == new == LIVE:
        raise click.UsageError(f"only one of OLD and NEW can be {LIVE}; record this machine now and compare later", ctx)
    machine: LiveMachine = ctx.obj
    before, after = (machine.source(None, "EVERYTHING", deadline) if spec == LIVE else spec for spec in (old, new))
    comparison = compare(before, after, profile)
    report = DiffReport(comparison=comparison, exit_code=WORSE if comparison.verdict == "worse" else 0)
    emit(renderer(formats("diff")[form])(report), output, color, form)
    return report.exit_code
