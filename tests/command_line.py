"""What click knows of the commands, for tests that compare documentation with it."""

from __future__ import annotations

import click

from dgxcheck.cli import dgxcheck


def options_of(name: str) -> set[str]:
    """Every spelling of every option of a command; of ``dgxcheck`` itself for an empty name."""
    ctx = dgxcheck.make_context("dgxcheck", [], resilient_parsing=True)
    command = dgxcheck.get_command(ctx, name) if name else dgxcheck
    assert command is not None
    params = command.get_params(click.Context(command, parent=ctx))
    options = [param for param in params if isinstance(param, click.Option)]
    return {spelling for option in options for spelling in (*option.opts, *option.secondary_opts)}
