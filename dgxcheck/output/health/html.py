"""The report of ``dgxcheck health`` as one HTML file."""

from __future__ import annotations

from dgxcheck.output.health.page import page_of
from dgxcheck.output.health.report import Report
from dgxcheck.output.page import html


def render(report: Report) -> str:
    """The whole report."""
    return html.render(page_of(report))
