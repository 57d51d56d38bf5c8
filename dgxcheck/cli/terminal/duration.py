"""A time as people write it on a command line: ``90s``, ``30m``, ``2h``, ``1h30m``."""

from __future__ import annotations

import re

import click

LEAST_S, MOST_S = 1, 7 * 86400
_FORM = re.compile(r"(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?", re.ASCII)


def duration(_ctx: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    """The seconds that an option asks for."""
    if value is None:
        return None
    seconds = parsed(value)
    if seconds is None:
        raise click.BadParameter(f"{value!r} is not a time; write it as 90s, 30m, 2h or 1h30m")
    if not LEAST_S <= seconds <= MOST_S:
        raise click.BadParameter(f"{value!r} is not between 1s and {MOST_S // 3600}h")
    return seconds


def parsed(text: str) -> float | None:
    """``1h30m`` as seconds; None for what is no such time."""
    found = _FORM.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        return None
    hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(3600 * hours + 60 * minutes + seconds)
