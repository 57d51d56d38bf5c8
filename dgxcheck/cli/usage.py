"""What click says of a wrong command line, worded as all other messages are: no capital, no full stop."""

from __future__ import annotations

import click

from dgxcheck.suggestion import did_you_mean


def worded(error: click.UsageError) -> str:
    """The message, and which command explains more."""
    where = f"; see '{error.ctx.command_path} -h'" if error.ctx is not None else ""
    if isinstance(error, click.NoSuchOption):
        near = did_you_mean(error.option_name, error.possibilities or (), "")
        return f"no option {error.option_name}{f'; {near}' if near else where}"
    text = error.format_message().rstrip(".")
    return f"{text[:1].lower() if text[1:2].islower() else text[:1]}{text[1:]}{where}"
