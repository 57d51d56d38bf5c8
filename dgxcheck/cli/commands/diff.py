"""``dgxcheck diff``: what has changed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import click

from dgxcheck.cli.diff_sides import LIVE, Looked, looked
from dgxcheck.cli.live import Live
from dgxcheck.cli.options import deadline, emit, profiles, sources, writing
from dgxcheck.difference import findings
from dgxcheck.difference.compare import compare, verdict, worst_first
from dgxcheck.difference.model import Compared
from dgxcheck.facts.missing import BadInput
from dgxcheck.output.diff.report import Look, Report

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

WORSE = 1
RENDERERS = {"text": "text", "json": "as_json"}
"""Module below ``dgxcheck.output.diff`` of each format, imported when it is asked for."""
FINDINGS_ALONE = "only findings are compared: a health report contains no facts"


def _sides(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [*([CompletionItem(LIVE)] if LIVE.startswith(incomplete) else []), *sources(ctx, param, incomplete)]


@click.command("diff")
@click.argument("old", metavar="OLD", shell_complete=_sides)
@click.argument("new", metavar="NEW", shell_complete=_sides)
@click.option("--profile", default="auto", show_default=True, metavar="NAME", shell_complete=profiles,
              help="The reference machine of both sides, as for health.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(list(RENDERERS)), default="text", show_default=True)
@deadline
@writing
@click.pass_context
def command(
    ctx: click.Context, old: str, new: str, profile: str, form: str, deadline: float, output: str | None, color: str
) -> int:  # fmt: skip
    """Compare OLD with NEW: hardware, links, firmware, settings, errors, bandwidth, findings, score.

    Each side is a recording, an overlay or a directory as for --from, a report of health --format json, or the word
    live for this machine. Exit code 0: nothing is worse; 1: something is worse; 3: could not run.
    """
    if old == new == LIVE:
        raise click.UsageError(f"only one of OLD and NEW can be {LIVE}; record this machine now and compare later", ctx)
    live: Live = ctx.obj
    before, after = (looked(spec, live, deadline, profile) for spec in (old, new))
    if profile != "auto" and before.side is None and after.side is None:
        raise BadInput("--profile does not apply to two health reports; each keeps its reference machine")
    report = _report(before, after)
    emit(import_module(f"dgxcheck.output.diff.{RENDERERS[form]}").render(report), output, color, form)
    return report.exit_code


def _report(before: Looked, after: Looked) -> Report:
    facts = Compared(differences=(), notes=(FINDINGS_ALONE,))
    if before.side is not None and after.side is not None:
        facts = compare(*(look.seen_from(other) for look, other in ((before, after), (after, before))))
    found = worst_first((*facts.differences, *findings.differences(before.report, after.report)))
    said = verdict(found)
    return Report(
        old=_look(before),
        new=_look(after),
        differences=found,
        notes=(*facts.notes, *findings.out_of_sight(before.report, after.report)),
        verdict=said,
        exit_code=WORSE if said == "worse" else 0,
    )


def _look(look: Looked) -> Look:
    return Look(origin=look.origin, score=look.report.score, against=look.report.against)
