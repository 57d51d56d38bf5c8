"""``dgxcheck xid``: what an Xid or SXid means and what to do about it."""

from __future__ import annotations

import re
from typing import Any

import click

from dgxcheck.assessment.xid_explanation import explain, explain_all, relations_of
from dgxcheck.cli.options import completing, options
from dgxcheck.cli.results import emit
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.xid.relations import relations


def _numbers() -> dict[str, None]:
    return dict.fromkeys(str(each.entry.number) for each in explain_all(None))


_OF_LINE = LazyPattern(r"xid:? ?(?:\([^)]{0,40}\): )?(\d{1,6})\b", flags=re.ASCII | re.IGNORECASE)


class _Number(click.IntRange):
    """Also as it stands in a line of the kernel log: ``NVRM: Xid (PCI:0000:3b:00): 79, pid=..``."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        found = _OF_LINE.search(str(value))
        number: Any = value if found is None else found[1]
        return super().convert(number, param, ctx)


@click.command("xid")
@click.argument("number", required=False, type=_Number(min=0), metavar="[NUMBER]", shell_complete=completing(_numbers))
@options("xid")
@click.pass_context
def command(
    ctx: click.Context, number: int | None, listed: bool, gpu: str | None, form: str, output: str | None
) -> int:  # fmt: skip
    """Explain an Xid of a GPU or an SXid of an NVSwitch: meaning, severity, NVIDIA's action, what to do.

    NUMBER may be a line of the kernel log, in quotes. No machine is examined. Exit code 0: explained; 3:
    NVIDIA does not list NUMBER, or the command could not run.
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
