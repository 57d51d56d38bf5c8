"""Metrics in the two text formats of Prometheus, the classic one and OpenMetrics, and their labels.

No text is valid as both: the classic format gives the type of a counter under its full name, OpenMetrics under its
name without ``_total``. Labels of GPUs have the names and spelling of dcgm-exporter, so that the metrics of both join
``on (UUID)``; their ``instance`` differs by the port.

https://prometheus.io/docs/instrumenting/exposition_formats/
https://prometheus.io/docs/specs/om/open_metrics_spec/
https://github.com/NVIDIA/dcgm-exporter/blob/main/internal/pkg/rendermetrics/render_metrics.go
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import count

from dgxcheck.facts.bdf import shown
from dgxcheck.facts.missing import Missing, text_of
from dgxcheck.facts.record import Record
from dgxcheck.output.plain_text import lines, visible
from dgxcheck.package_files import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgxcheck.checks.engine.finding import Finding
    from dgxcheck.topology.model import Device

Series = tuple[Mapping[str, str], int | float]
Reading = tuple[Mapping[str, str], "int | float | Missing"]
STATES: Mapping[str, int] = {"skip": -1, "pass": 0, "warn": 1, "fail": 2, "unknown": 3}
"""Values of statuses and verdicts: the exit codes of ``dgxcheck health``."""


class Family(Record):
    """One metric with its series; a name that ends in ``_total`` is a counter's, in ``_info`` that of labels."""

    name: str
    """Without ``dgxcheck_``."""
    text: str
    samples: tuple[Series, ...]


def metric(name: str, readings: Iterable[Reading]) -> Family:
    """One metric; what could not be read has no series."""
    known = ((labels, value) for labels, value in readings if not isinstance(value, Missing))
    return Family(name=name, text=_helps()[name], samples=tuple(known))


@cache
def _helps() -> Mapping[str, str]:
    return {row["metric"]: row["help"] for row in table("output/metrics.tsv")}


def now(name: str) -> Family:
    """The time at which the metrics are written, in seconds since 1970."""
    return metric(name, [({}, round(time.time(), 3))])


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
    escaped = {key: visible(value).replace("\\", r"\\").replace('"', r"\"") for key, value in labels.items() if value}
    return "{" + ",".join(f'{key}="{value}"' for key, value in escaped.items()) + "}" if escaped else ""


def bus_id(bdf: str | None) -> str:
    """As NVML and dcgm-exporter spell it: ``00000000:0A:00.0``; empty where it is not known."""
    domain, _, rest = (shown(bdf) or "").partition(":")
    return f"{int(domain, 16):08X}:{rest.upper()}" if domain else ""


def gpu_labels(gpu: Device) -> dict[str, str]:
    """``gpu`` is NVML's index; like ``UUID`` it is empty where NVML does not know the GPU."""
    return {
        "gpu": str(gpu.index) if isinstance(gpu.index, int) else "",
        "UUID": text_of(gpu.uuid),
        "pci_bus_id": bus_id(gpu.bdf),
    }


def subject_labels(finding: Finding, gpus: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """``device`` names what is no GPU of NVML's, ``part`` a part, such as the number of an NVLink, ``peer`` the other
    of a pair; all are empty where they do not apply."""
    subject, peer = finding.subject, finding.subject.peer
    gpu = gpus.get(subject.name, {}) if subject.kind == "gpu" else {}
    return {
        "gpu": gpu.get("gpu", ""),
        "UUID": gpu.get("UUID", ""),
        "pci_bus_id": bus_id(subject.bdf),
        "device": "" if gpu.get("gpu") or subject.kind == "host" else subject.name,
        "part": "" if subject.kind == "port" else subject.part,  # its number is in its name
        "peer": peer.name if peer else "",
    }
