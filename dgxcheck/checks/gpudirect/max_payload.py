"""GPUDirect RDMA: do GPU, HCA and the ports between them agree on the size of a packet?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject
from dgxcheck.checks.engine.precondition import Said, unsaid
from dgxcheck.checks.gpudirect.preconditions import near_pairs, not_judged
from dgxcheck.checks.host.virtual_machines import in_guest
from dgxcheck.checks.pcie.width import bridge
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import Express
from dgxcheck.topology.classes import shared_bridges
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]


def chain(a: Device, b: Device) -> list[str] | Missing:
    """Both devices and every port between them."""
    if isinstance(a.path, Missing):
        return a.path
    if isinstance(b.path, Missing):
        return b.path
    top = max(shared_bridges(a.path, b.path), 1)
    return list(dict.fromkeys((*a.path[top:], *b.path[top:])))


def _size(box: Box, bdf: str) -> int | Missing:
    rows = box.snapshot.config_space
    if isinstance(rows, Missing):
        return rows
    nobody = Missing(Gap.UNRECORDED, f"/sys/bus/pci/devices/{bdf}/config")
    express = next((row.express for row in rows if row.bdf == bdf), nobody)
    return express.max_payload if isinstance(express, Express) else express


def _sizes(box: Box, gpu: Device, nic: Device) -> dict[str, int] | Missing:
    """MaxPayload in bytes by bus id, all the way."""
    bdfs = chain(gpu, nic)
    if isinstance(bdfs, Missing):
        return bdfs
    found: dict[str, int] = {}
    for bdf in bdfs:
        size = _size(box, bdf)
        if isinstance(size, Missing):
            return size
        found[bdf] = size
    return found


def _odd(sizes: dict[str, int]) -> tuple[dict[str, int], int]:
    """Those that differ, and what most have."""
    usual = Counter(sizes.values()).most_common(1)[0][0]
    return {bdf: size for bdf, size in sizes.items() if size != usual}, usual


def payload(box: Box, gpu: Device, nic: Device) -> Said:
    """The pair's sizes."""
    if (hidden := in_guest(box)) is not None:
        return hidden
    sizes = _sizes(box, gpu, nic)
    if isinstance(sizes, Missing):
        return unsaid(sizes)
    odd, usual = _odd(sizes)
    if not odd:
        return Said("ready", Judgement(Status.PASS, f"MaxPayload is {usual} bytes all the way"))
    told = ", ".join(f"{size} at {bdf}" for bdf, size in odd.items())
    return Said("no", Judgement(Status.WARN, f"MaxPayload is {told}, {usual} bytes around: larger packets are dropped"))


def _payload(box: Box) -> Judged:
    pairs = near_pairs(box)
    if (nothing := not_judged(box, pairs)) is not None:
        yield HOST, nothing
        return
    read = {pair: _sizes(box, *pair) for pair in pairs}
    known = [sizes for sizes in read.values() if not isinstance(sizes, Missing)]
    if not known:
        yield HOST, payload(box, *pairs[0]).judgement
        return
    odd: dict[str, Judgement] = {}
    for sizes in known:
        differ, usual = _odd(sizes)
        for bdf, size in differ.items():
            evidence = (Evidence(f"/sys/bus/pci/devices/{bdf}/config", f"MaxPayload {size}"),)
            message = f"MaxPayload is {size} bytes here and {usual} around it"
            odd[bdf] = Judgement(Status.WARN, message, size, usual, "bytes", evidence)
    for bdf, judgement in odd.items():
        yield _subject(box, bdf), judgement
    if not odd:
        of = "" if len(known) == len(pairs) else f" of {len(pairs)}, the others cannot be read"
        message = f"MaxPayload is the same all the way for {len(known)} pairs of GPU and HCA{of}"
        yield HOST, Judgement(Status.PASS, message, evidence=(Evidence("/sys/bus/pci/devices/*/config", "equal"),))


def _subject(box: Box, bdf: str) -> Subject:
    device = box.topology.device(bdf)
    if device is not None and device.kind == "gpu":
        return box.subject(device)
    return bridge(bdf) if device is None else Subject(kind="hca", name=device.name, bdf=bdf)


CHECKS = (
    Check(
        id="gdr.max-payload",
        rule="Warns where a GPU, an HCA near it, or a port between them has another MaxPayload than the rest of the"
        " way: larger packets are dropped there as malformed. Without root it cannot tell.",
        source="Device Control of the PCI Express capability in /sys/bus/pci/devices/*/config",
        remedy="boot without pci=pcie_bus_* on the kernel's command line, or with pci=pcie_bus_safe; then look at the"
        " firmware's setting",
        judge=_payload,
    ),
)
