"""Samples in the text format of Prometheus: ``NAME{LABEL="VALUE",..} NUMBER [TIMESTAMP]``.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from dgxcheck.facts.record import Record

_SAMPLE = re.compile(r"(?P<name>[A-Za-z]\w{2,90})(?:\{(?P<labels>[^{}]{0,4000})\})? (?P<value>\S{1,40})(?: \d{1,16})?")
_LABEL = re.compile(r"(?P<name>\w{1,64})=\"(?P<value>(?:[^\"\\]|\\.){0,400})\"")
_COMMENT = re.compile(r"# (?:HELP|TYPE) (?P<name>\w{2,90}) .{1,400}")


class Sample(Record, kw_only=False):
    """One metric with its labels; ``value`` as it is written."""

    name: str
    labels: Mapping[str, str]
    value: str


def sample(line: str) -> Sample | None:
    """The sample in a line; None for any other line."""
    match = _SAMPLE.fullmatch(line)
    if match is None:
        return None
    labels = {label["name"]: label["value"] for label in _LABEL.finditer(match["labels"] or "")}
    return Sample(match["name"], labels, match["value"])


def commented(line: str) -> str:
    """The metric that a line of HELP or TYPE describes; empty for any other line."""
    match = _COMMENT.fullmatch(line)
    return match["name"] if match is not None else ""
