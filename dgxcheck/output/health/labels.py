"""Labels of metrics. Those of GPUs have the names and spelling of dcgm-exporter, so that the metrics of both join
``on (UUID)``; their ``instance`` differs by the port.

https://github.com/NVIDIA/dcgm-exporter/blob/main/internal/pkg/rendermetrics/render_metrics.go
"""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.facts.bdf import shown
from dgxcheck.topology.model import Device


def bus_id(bdf: str | None) -> str:
    """As NVML and dcgm-exporter spell it: ``00000000:0A:00.0``; empty where it is not known."""
    known = shown(bdf)
    if not known:
        return ""
    domain, _, rest = known.partition(":")
    return f"{int(domain, 16):08X}:{rest.upper()}"


def gpu_labels(gpu: Device) -> dict[str, str]:
    """``gpu`` is NVML's index; like ``UUID`` it is empty where NVML does not know the GPU."""
    return {
        "gpu": str(gpu.index) if isinstance(gpu.index, int) else "",
        "UUID": gpu.uuid if isinstance(gpu.uuid, str) else "",
        "pci_bus_id": bus_id(gpu.bdf),
    }


def labels_of_gpus(assessment: Assessment) -> dict[str, dict[str, str]]:
    """The labels of each GPU by its name."""
    return {gpu.name: gpu_labels(gpu) for gpu in assessment.topology.gpus}


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
