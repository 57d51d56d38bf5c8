"""How an HTML report looks: colours of the pictures, heat maps by measured / expected; paper is light."""

from __future__ import annotations

import os
from collections.abc import Mapping

from dgxcheck.output.picture.shapes import DARK, LIGHT, Colours
from dgxcheck.package_files import FOLDER, read

HEAT: tuple[tuple[float, str], ...] = ((0.98, "h5"), (0.9, "h4"), (0.75, "h3"), (0.5, "h2"), (0.0, "h1"))
"""Least share of each class; the lowest has all that is below."""
STATUS: Mapping[str, tuple[str, str]] = {
    "pass": ("better", "better-fill"), "warn": ("warn", "warn-fill"), "fail": ("fail", "fail-fill"),
    "unknown": ("warn", "warn-fill"), "skip": ("faint", "panel"),
}  # fmt: skip
"""Text and background of each tone, as names of colours."""


def heat_class(share: float | None) -> str:
    """The class of a share; ``none`` where nothing was measured or expected."""
    return "none" if share is None else next((name for least, name in HEAT if share >= least), HEAT[-1][1])


def css() -> str:
    """The colours of both themes and of the tones as variables, and the rules of ``report.css``."""
    tones = (f".{tone}{{--ink:var(--{ink});--fill:var(--{fill})}}" for tone, (ink, fill) in STATUS.items())
    dark = f"@media screen and (prefers-color-scheme:dark){{{_theme(DARK)}}}"
    rows = read(os.path.join(FOLDER, "output", "page", "report.css")).decode("ascii").split("\n")
    rules = (row for row in rows if not row.startswith("/*"))
    return "".join((_theme(LIGHT), dark, *tones, *rules))


def _theme(colours: Colours) -> str:
    return f":root{{{''.join(f'--{name}:{colour};' for name, colour in colours.items())}}}"
