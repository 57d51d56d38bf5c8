"""Metrics in the two text formats of Prometheus: the classic one and OpenMetrics.

No text is valid as both: the classic format gives the type of a counter under its full name, OpenMetrics under its
name without ``_total``.

https://prometheus.io/docs/instrumenting/exposition_formats/
https://prometheus.io/docs/specs/om/open_metrics_spec/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

from dgxcheck.facts.record import Record
from dgxcheck.output.plain_text import lines, visible

Sample = tuple[Mapping[str, str], int | float]
STATES: Mapping[str, int] = {"skip": -1, "pass": 0, "warn": 1, "unknown": 2, "fail": 3}
"""Values of statuses and verdicts, ordered so that ``max()`` is the worst."""
VERDICT_VALUES = "0 pass, 1 warn, 2 unknown, 3 fail"
"""For the HELP of a metric."""


class Family(Record):
    """One metric with its series; a name that ends in ``_total`` is a counter's, in ``_info`` that of labels."""

    name: str
    """Without ``dgxcheck_``."""
    text: str
    samples: tuple[Sample, ...]


def metric(name: str, text: str, samples: Iterable[Sample]) -> Family:
    """One metric; ``text`` is its HELP."""
    return Family(name=name, text=text, samples=tuple(samples))


def classic(families: Iterable[Family]) -> str:
    """For the textfile collector of node_exporter."""
    return lines(
        line
        for family in families
        for line in _lines(family, family.name, "counter" if family.name.endswith("_total") else "gauge")
    )


def openmetrics(families: Iterable[Family]) -> str:
    """For servers that declare ``application/openmetrics-text; version=1.0.0``."""
    return lines([*(line for family in families for line in _typed(family)), "# EOF"])


def _typed(family: Family) -> list[str]:
    for suffix, kind in (("_total", "counter"), ("_info", "info")):
        if family.name.endswith(suffix):
            return _lines(family, family.name[: -len(suffix)], kind)
    return _lines(family, family.name, "gauge")


def _lines(family: Family, declared: str, kind: str) -> list[str]:
    """HELP, TYPE and the series; one bad series makes a reader drop the whole file, so none repeats."""
    series: dict[str, int | float] = {}
    for labels, value in family.samples:
        # names that differ only in what is not shown
        again = next(n for n in count(1) if _labels(_numbered(labels, n)) not in series)
        series[_labels(_numbered(labels, again))] = value
    head = [f"# HELP dgxcheck_{declared} {family.text}", f"# TYPE dgxcheck_{declared} {kind}"]
    return [*head, *(f"dgxcheck_{family.name}{labels} {value!r}" for labels, value in series.items())]


def _numbered(labels: Mapping[str, str], number: int) -> Mapping[str, str]:
    return labels if number == 1 else {**labels, "device": f"{labels.get('device', '')}#{number}"}


def _labels(labels: Mapping[str, str]) -> str:
    """Without the empty ones: to Prometheus an empty label is the same as none."""
    pairs = [f'{key}="{_escaped(value)}"' for key, value in labels.items() if value]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _escaped(value: str) -> str:
    return visible(value).replace("\\", r"\\").replace('"', r"\"")
