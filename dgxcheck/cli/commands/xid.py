"""``dgxcheck xid``: what an Xid or SXid means and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dgxcheck.assessment.xid_explanation import explain, explain_all, relations_of
from dgxcheck.cli.options import begin, emit, flag, option, output_file
from dgxcheck.xid.relations import relations
from dgxcheck.xid.table import BOARDS, NAMES

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _gpus(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return begin((*BOARDS, *NAMES), incomplete)


def _numbers(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return begin(dict.fromkeys(str(each.entry.number) for each in explain_all(None)), incomplete)


class _Number(click.IntRange):
    name = "number"


@click.command("xid")
@click.argument("number", required=False, type=_Number(min=0), metavar="[NUMBER]", shell_complete=_numbers)
@flag("--list listed", "List every Xid and SXid, a line each.")
@option("--gpu", "NAME", "Board or architecture (v100, h100, ampere); some Xids differ before Ampere.",
        shell_complete=_gpus)  # fmt: skip
@option("--format form", ["text", "json"], "", default="text")
@output_file
@click.pass_context
def command(
    ctx: click.Context, number: int | None, listed: bool, gpu: str | None, form: str, output: str | None
) -> int:  # fmt: skip
    """Explain an Xid of a GPU or an SXid of an NVSwitch: meaning, severity, NVIDIA's action, what to do.

    No machine is examined. Exit code 0: explained; 3: NVIDIA does not list NUMBER, or the command could not run.
    """
    if (number is None) != listed:
        raise click.UsageError("give the number of an Xid or SXid, or --list", ctx)
    explained = explain_all(gpu) if number is None else explain(number, gpu)
    related = relations() if number is None else relations_of(number)
    if form == "json":
        from dgxcheck.output.xid import render

        text = render(explained, related)
    else:
        from dgxcheck.output.xid import one, table

        text = table(explained) if number is None else one(explained, related)
    emit(text, output, form=form)
    return 0
