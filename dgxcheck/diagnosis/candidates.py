"""Which components one finding could come from, the likeliest first: by what it was found at, walking the topology."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from dgxcheck.checks.engine.check import Box
from dgxcheck.checks.engine.finding import Finding, Subject
from dgxcheck.diagnosis.common_cause import LINKED
from dgxcheck.diagnosis.component import (
    DRIVER,
    Component,
    Kind,
    links_above,
    of_device,
    of_hop,
    of_host,
    of_nvlinks,
    of_path,
    of_port_setting,
)  # fmt: skip
from dgxcheck.diagnosis.missing_device import missing
from dgxcheck.diagnosis.p2p_settings import stop_most, stops
from dgxcheck.diagnosis.xid_parts import part_of
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nvlink import NvLink
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import hops_above

PARTS = {
    "ecc.mode": "ECC mode", "ecc": "memory", "measure.memory-integrity": "memory", "gpu.memory": "memory",
    "thermal": "cooling", "power.limit": "power limit", "power": "power supply", "clock.throttle": "cooling",
    "clock": "clock setting", "pcie.bar1": "BAR1", "gpu.inforom": "InfoROM", "gpu.compute-mode": "compute mode",
    "gpu.mig": "MIG mode", "driver.persistence": "persistence mode", "driver.device-nodes": "device node",
    "measure.compute": "cooling",
    "gdr.bar1": "BAR1", "gdr.max-payload": "MaxPayload", "gpu.model": "model", "gpu.uniform": "versions and settings",
}  # fmt: skip
"""What of a GPU a finding is about, by its id or the start of it; else the GPU."""
POWER_BRAKE = 0x80


def suspects(box: Box, finding: Finding) -> tuple[Component, ...]:
    """Never empty: at the least the subject itself."""
    return tuple(dict.fromkeys(_suspects(box, finding))) or (_itself(finding),)


def _suspects(box: Box, finding: Finding) -> Iterator[Component]:
    subject = finding.subject
    device = box.topology.device(subject.bdf or subject.name) if subject.kind != "port" else None
    if "turned away programs" in finding.judgement.message:
        yield of_host("programs with another driver library")
    elif finding.id.startswith("driver.") and finding.id not in PARTS:
        yield DRIVER
    elif finding.id == "baseline.drift" and device is None and subject.kind == "gpu":
        yield missing(box, "GPU")
    elif device is not None and subject.peer is not None:
        yield from _of_pair(box, finding, device, subject.peer)
    elif device is not None and device.kind == "gpu":
        yield from _of_gpu(box, finding, device)
    elif subject.kind == "pci" and finding.id == "gdr.acs":
        yield of_port_setting(subject.bdf or subject.name)
    elif finding.id == "p2p.status" and device is None:
        yield from stop_most(box, subject.bdf)
        yield of_host("P2P setting")
    elif subject.kind == "pci":
        yield from _of_bus(box, subject)
    elif subject.kind == "host":
        yield from _of_host(box, finding)
    elif device is not None and finding.id == "gdr.link":
        yield from islice(links_above(box, device), 1)
    elif device is not None:
        yield of_device(box, device, PARTS_OF_HCA.get(finding.id, ""))
    elif subject.kind == "port" and "no subnet manager" in finding.judgement.message:
        yield Component(kind="subnet manager", name=f"at port {subject.name}", bdf=subject.bdf)


def _itself(finding: Finding) -> Component:
    subject = finding.subject
    if "of an NVSwitch" in finding.judgement.message:
        return of_host(f"NVSwitches at {subject.bdf}")
    if subject.kind == "pci" and finding.id in OF_GPUS:
        return Component(kind="gpu", name=f"GPU@{subject.bdf}", bdf=subject.bdf)
    kind: Kind = "port of a switch" if subject.kind == "pci" else subject.kind
    part = _part(finding) if kind == "gpu" else PARTS_OF_HCA.get(finding.id, "")
    return Component(kind=kind, name=subject.name, bdf=subject.bdf, part=part)


def _of_pair(box: Box, finding: Finding, a: Device, peer: Subject) -> Iterator[Component]:
    """What joins two GPUs, then the GPUs."""
    b = box.topology.device(peer.bdf or peer.name)
    if b is None or b is a:
        yield of_device(box, a)
        return
    part = "NVLink" if finding.id.startswith("nvlink.") else ""
    if part or box.topology.link(a, b).nvlinks:
        yield of_nvlinks(box, a, b)
    else:  # of two GPUs that PCIe joins it is a setting, not a link
        yield from stops(box, a, b)
        yield of_path(a, b)
    yield of_device(box, a, part)
    yield of_device(box, b, part)


def _of_gpu(box: Box, finding: Finding, gpu: Device) -> Iterator[Component]:
    """The link above it, its own parts, or its NVLinks."""
    if finding.id in LINKED:
        yield from islice(links_above(box, gpu), 1)
    elif finding.id == "kernel.xid":
        part = part_of(box, gpu.bdf)
        yield of_device(box, gpu, part)
        if part == "NVLink":
            yield from _nvlinks(box, gpu, None)
    elif finding.id.startswith("nvlink."):
        yield from _nvlinks(box, gpu, int(finding.subject.part) if finding.subject.part.isdecimal() else None)
        yield of_device(box, gpu, "NVLink")
    else:
        yield of_device(box, gpu, _part(finding))


def _part(finding: Finding) -> str:
    masks = [each.value for each in finding.judgement.evidence if isinstance(each.value, int)]
    if finding.id == "clock.throttle" and any(mask & POWER_BRAKE for mask in masks):
        return "power supply"
    names = [name for name in PARTS if finding.id.startswith(name)]
    return PARTS[max(names, key=len)] if names else ""


def _nvlinks(box: Box, gpu: Device, position: int | None) -> Iterator[Component]:
    """Those of one position, or of all that this GPU has."""
    rows: tuple[NvLink, ...] = () if isinstance(box.snapshot.nvlink, Missing) else box.snapshot.nvlink
    for row in rows:
        peer = box.topology.device(row.remote_bdf) if isinstance(row.remote_bdf, str) else None
        if row.bdf == gpu.bdf and position in (None, row.link) and peer is not None and peer.kind == "gpu":
            yield of_nvlinks(box, gpu, peer)


def _of_bus(box: Box, subject: Subject) -> Iterator[Component]:
    """A bridge: the link that it is an end of, as some device's path has it; a host bridge is itself."""
    for device in box.topology.devices:
        for hop in () if isinstance(device.path, Missing) else hops_above(device.path, box.topology.functions):
            if subject.bdf in (hop.device, hop.port):
                yield of_hop(box, hop)
    if subject.bdf is None:
        yield Component(kind="host bridge", name=subject.name)


def _of_host(box: Box, finding: Finding) -> Iterator[Component]:
    if finding.id == "gpu.count":
        yield from (of_device(box, gpu) for gpu in box.topology.gpus if gpu.index is None)
        yield missing(box, "GPU")
    elif finding.id == "network.hca-count":
        yield missing(box, "HCA")
    elif finding.id == "topology.nvml-agrees" or finding.id in OF_CUDA:
        yield DRIVER
    else:
        part = PARTS_OF_HOST.get(finding.id) or finding.id.partition(".")[2].replace("-", " ")
        yield of_host(f"{part} at {finding.subject.part}" if finding.subject.part else part)


OF_GPUS = ("kernel.xid", "kernel.off-bus", "kernel.gpu-start")
"""Of the log, about a GPU even where no GPU of the topology has its bus id."""
OF_CUDA = ("measure.host-bandwidth", "measure.memory-bandwidth", "measure.p2p-bandwidth", "measure.compute")
"""Of the host they say that nothing could be measured, for the driver is not ready."""
PARTS_OF_HCA = {"gdr.max-payload": "MaxPayload", "network.firmware": "firmware", "network.hca-placement": "slot"}
PARTS_OF_HOST = {
    "gdr.iommu": "IOMMU setting", "gdr.acs": "ACS setting", "gdr.memlock": "memlock limit",
    "gdr.stack": "verbs device nodes", "gdr.peer-memory": "peer memory module",
    "host.memory": "memory", "host.edac": "memory", "host.cpu": "CPUs", "host.governor": "CPU frequency governor",
    "driver.device-nodes": "device nodes", "topology.profile": "placement of GPUs", "topology.numa": "NUMA nodes",
    "nvlink.graph": "NVLink graph", "site.versions": "versions", "gpu.uniform": "VBIOS and settings of GPUs",
    "host.numa-balancing": "NUMA balancing", "gdr.max-payload": "MaxPayload", "gdr.path": "placement of HCAs",
    "network.firmware": "firmware of HCAs", "measure.p2p-integrity": "P2P setting",
    "measure.collective": "results of NCCL", "measure.burn-in": "burn-in",
    "baseline.drift": "changes since the baseline",
}  # fmt: skip
