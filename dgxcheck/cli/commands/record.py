"""``dgxcheck record``: all that a machine says, in one file."""

from __future__ import annotations

import click

from dgxcheck.assessment.machine import LiveMachine
from dgxcheck.assessment.recording import record
from dgxcheck.cli.options import options
from dgxcheck.cli.progress import TerminalProgress
from dgxcheck.cli.results import check_writable, save
from dgxcheck.output.plain_text import visible


@click.command("record")
@click.argument("file", type=click.Path(), metavar="FILE")
@options("record")
@click.pass_context
def command(
    ctx: click.Context, file: str, window: float | None, keep_identity: bool, spec: str | None, deadline: float
) -> int:
    """Save everything this machine reports to FILE, for use with --from FILE on any machine.

    The machine is not changed and not put under load. Serial numbers, UUIDs, GUIDs, addresses and names are replaced by
    pseudonyms. Exit code 0: FILE was written; 3: written, but a part of the machine did not answer in time, or nothing
    was written.
    """
    machine: LiveMachine = ctx.obj
    check_writable(file, "record")
    recorded = record(machine.source(spec, "EVERYTHING", deadline), window, keep_identity, TerminalProgress())
    save(file, recorded.text, 0o600 if keep_identity else 0o644)
    click.echo(f"{visible(file)}: {recorded.facts} facts recorded", err=True)
    if recorded.silent:
        more = f" and {len(recorded.silent) - 1} more" if len(recorded.silent) > 1 else ""
        click.echo(f"no answer in time: {visible(recorded.silent[0])}{more}", err=True)
    if recorded.interrupted:
        click.echo("interrupted: the counters were read once, not again after the window", err=True)
    return 3 if recorded.silent or recorded.interrupted else 0
