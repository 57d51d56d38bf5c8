"""The wiring of a judged machine as a picture, with each cause marked where it is."""

from __future__ import annotations

from dgxcheck.output.health.page import picture_of
from dgxcheck.output.health.report import Report
from dgxcheck.output.picture import svg


def render(report: Report) -> str:
    """One SVG document."""
    return svg.render([picture_of(report.assessment)])
