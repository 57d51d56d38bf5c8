"""``dgxcheck integrate``: files for monitors and schedulers."""

from __future__ import annotations

import click

from dgxcheck.cli import INCOMPLETE
from dgxcheck.cli.options import completing, options
from dgxcheck.cli.results import emit
from dgxcheck.facts.missing import BadInput, did_you_mean
from dgxcheck.integrate import INTEGRATIONS, Integration, command_problem, plan, write
from dgxcheck.output.integrate import contents, listing, report


@click.command("integrate")
@click.argument("name", required=False, metavar="[NAME]",
                shell_complete=completing(lambda: [each.name for each in INTEGRATIONS]))  # fmt: skip
@options("integrate")
@click.pass_context
def command(
    ctx: click.Context, name: str | None, shown: bool, wanted: bool, root: str, program: str, output: str | None
) -> int:  # fmt: skip
    """Show or install the files that connect dgxcheck with NAME; list all without NAME.

    Without --write nothing is written: the places of the files, their state and the steps that remain are shown.

    Exit code 0: shown or written; 3: a file that exists differs and was left alone, or the command could not run.
    """
    if shown and wanted:
        raise click.UsageError("give --print or --write, not both", ctx)
    if name is None:
        if shown or wanted:
            raise click.UsageError("give the name of an integration", ctx)
        emit(listing(), output)
        return 0
    integration = _named(name)
    files = plan(integration, root, program)
    if shown:
        emit(contents(files), output, form="file")
        return 0
    refused = any(file.state in ("differs", "unusable") for file in files)
    if wanted and not refused:
        try:
            write(files)
        except OSError as error:
            raise BadInput(f"{error.filename or name}: cannot be written: {error.strerror}") from None
    problem = command_problem(files, root, program)
    emit(report(integration, files, wanted and not refused, program, problem), output)
    return INCOMPLETE if refused else 0


def _named(name: str) -> Integration:
    by_name = {integration.name: integration for integration in INTEGRATIONS}
    if name not in by_name:
        valid = f"valid names: {', '.join(by_name)}"
        raise BadInput(f"{name}: no such integration; {did_you_mean(name, by_name, valid)}")
    return by_name[name]
