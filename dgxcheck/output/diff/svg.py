"""The wiring before and after as one picture, with what is gone and what has changed marked."""

from __future__ import annotations

from dgxcheck.facts.missing import BadInput
from dgxcheck.output.diff.page import pictures_of
from dgxcheck.output.diff.report import Report
from dgxcheck.output.picture import svg


def render(report: Report) -> str:
    """One SVG document; BadInput where both sides are health reports."""
    pictures = pictures_of(report.comparison)
    if not pictures:
        raise BadInput("--format svg needs a machine or a recording: a health report contains no wiring")
    return svg.render(pictures)
