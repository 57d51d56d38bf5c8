"""Accesses of GPUs and HCAs to memory that an IOMMU refused, by the kernel log."""

from __future__ import annotations

from dgxcheck.checks.engine.blame import host
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.kernel_log.device_log import lines, reach
from dgxcheck.facts.bdf import gpu_at
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.kernel_log import IommuFault
from dgxcheck.facts.missing import Missing

_OF_DRIVER = "nvidia "
"""Begins a line about a GPU, where the machine's devices are not known."""


def _refused(box: Box) -> Judged:
    log = box.snapshot.kernel_log
    if isinstance(log, Missing):
        yield HOST, unjudged(log)
        return
    by_device: dict[str, list[IommuFault]] = {}
    for fault in log.iommu:
        if box.topology.device(fault.bdf) is not None or fault.line.startswith(_OF_DRIVER):
            by_device.setdefault(fault.bdf, []).append(fault)
    for bdf, own in sorted(by_device.items()):
        message = f"the IOMMU refused {counted(len(own), 'access', 'accesses')} to memory{reach(log)}"
        evidence = lines(log, own)
        yield _subject(box, bdf), Judgement(
            Status.WARN, message, len(own), 0, "accesses", evidence, fault=Fault.IOMMU
        )  # fmt: skip
    if not by_device:
        nothing = f"no access that an IOMMU refused{reach(log)}"
        yield HOST, skip("no-history", nothing) if isinstance(log.begins, Missing) else Judgement(Status.PASS, nothing)


def _subject(box: Box, bdf: str) -> Subject:
    device = box.topology.device(bdf)
    if device is None:
        return Subject(kind="gpu", name=gpu_at(bdf), bdf=bdf)
    return box.subject(device) if device.kind == "gpu" else Subject(kind="hca", name=device.name, bdf=bdf)


CHECKS = (
    Check(
        id="kernel.iommu-fault",
        rule="Warns if an IOMMU refused memory accesses of a GPU or HCA: it translates the traffic between them, or a"
        " program uses memory that was unmapped.",
        source="Linux drivers/iommu: AMD-Vi IO_PAGE_FAULT, DMAR DMA faults; NVIDIA GPUDirect RDMA documentation, IOMMU",
        remedy="boot with iommu=pt, or switch the IOMMU off in the firmware setup; in a virtual machine check the"
        " devices that the host passes through; if it persists, update the driver; the board is not at fault",
        judge=_refused,
        blames=host("IOMMU setting"),
        witness="log",
    ),
)
