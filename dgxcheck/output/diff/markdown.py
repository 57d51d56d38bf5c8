"""The comparison of ``dgxcheck diff`` as one Markdown file."""

from __future__ import annotations

from dgxcheck.output.diff.page import page_of
from dgxcheck.output.diff.report import Report
from dgxcheck.output.page import markdown


def render(report: Report) -> str:
    """The whole comparison."""
    return markdown.render(page_of(report))
