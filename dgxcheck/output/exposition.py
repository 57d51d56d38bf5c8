"""Metrics in the classic text format of Prometheus.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count

from dgxcheck.output.plain_text import visible

Sample = tuple[Mapping[str, str], int | float]


def metric(name: str, text: str, samples: Iterable[Sample]) -> list[str]:
    """HELP, TYPE and the series of one metric; one bad series makes a reader drop the whole file, so none repeats."""
    kind = "counter" if name.endswith("_total") else "gauge"
    series: dict[str, int | float] = {}
    for labels, value in samples:
        # names that differ only in what is not shown
        again = next(n for n in count(1) if _labels(_numbered(labels, n)) not in series)
        series[_labels(_numbered(labels, again))] = value
    head = [f"# HELP dgxcheck_{name} {text}", f"# TYPE dgxcheck_{name} {kind}"]
    return [*head, *(f"dgxcheck_{name}{labels} {value!r}" for labels, value in series.items())]


def _numbered(labels: Mapping[str, str], number: int) -> Mapping[str, str]:
    return labels if number == 1 else {**labels, "device": f"{labels.get('device', '')}#{number}"}


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items()) + "}" if labels else ""


def _escaped(value: str) -> str:
    return visible(value).replace("\\", r"\\").replace('"', r"\"")
