"""``dgxcheck profiles``: the reference machines, and a new one from a box that is known to be good."""

from __future__ import annotations

import click

from dgxcheck.assessment.machine import LiveMachine
from dgxcheck.assessment.new_profile import check_name, new_profile
from dgxcheck.checks.engine.finding import first_of
from dgxcheck.cli.options import options, profiles
from dgxcheck.cli.results import emit
from dgxcheck.facts.missing import BadInput
from dgxcheck.output import profile_text
from dgxcheck.profiles import library
from dgxcheck.profiles.model import SelectedProfile


@click.command("profiles")
@click.argument("name", required=False, shell_complete=profiles)
@options("profiles")
@click.pass_context
def command(
    ctx: click.Context, name: str | None, new: str | None, spec: str | None, deadline: float, output: str | None
) -> int:  # fmt: skip
    """List the reference machines of dgxcheck health; with NAME, print all numbers of one with their sources.

    With --new, write the values of a known-good box as a profile for identical boxes: health --profile FILE.toml.
    """
    if new is None:
        if spec is not None:
            raise BadInput("--from requires --new NAME, which makes a profile of that box")
        if name is None:
            emit(profile_text.listed(map(library.by_name, library.names())), output)
        else:
            found = library.by_name(name)
            boards = library.boards_for(SelectedProfile(profile=found, how="named"))
            emit(profile_text.shown(found, boards), output)
        return 0
    if name is not None:
        raise BadInput("give a profile to show or --new NAME, not both")
    check_name(new)
    machine: LiveMachine = ctx.obj
    made, read, failed = new_profile(machine.source(spec, "HEALTH", deadline), new)
    emit(profile_text.toml(made, {"box": read}), output, form="toml")
    if failed:
        click.echo(f"dgxcheck: this box fails {first_of(failed)}: what is wrong with it is in the profile, as what is"
                   " right; see dgxcheck health", err=True)  # fmt: skip
    return 0
