"""GPUDirect RDMA: do GPU, HCA and the ports between them agree on the size of a packet?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dgxcheck.checks.check import HOST, Box, Check
from dgxcheck.checks.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.gdr import Said, in_guest, near_pairs, no_rdma, unsaid
from dgxcheck.facts.config_space import Express
from dgxcheck.reading import Gap, Missing
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


def payload(box: Box, gpu: Device, nic: Device) -> Said:
    """The pair's sizes."""
    if (hidden := in_guest(box)) is not None:
        return hidden
    bdfs = chain(gpu, nic)
    if isinstance(bdfs, Missing):
        return unsaid(bdfs)
    sizes: dict[str, int] = {}
    for bdf in bdfs:
        size = _size(box, bdf)
        if isinstance(size, Missing):
            return unsaid(size)
        sizes[bdf] = size
    if len({*sizes.values()}) < 2:
        message = f"MaxPayload is {next(iter(sizes.values()))} bytes all the way"
        return Said("ready", Judgement(Status.PASS, message))
    usual = Counter(sizes.values()).most_common(1)[0][0]
    odd = ", ".join(f"{size} at {bdf}" for bdf, size in sizes.items() if size != usual)
    return Said("no", Judgement(Status.WARN, f"MaxPayload is {odd}, {usual} bytes around: larger packets are dropped"))


def _payload(box: Box) -> Judged:
    nothing, hidden, pairs = no_rdma(box), in_guest(box), near_pairs(box)
    if nothing is not None or hidden is not None or not pairs:
        far = skip("not-supported", "no GPU has an HCA behind its own PCIe switches")
        yield HOST, nothing or (far if hidden is None else hidden.judgement)
        return
    odd: dict[str, Judgement] = {}
    said = {pair: payload(box, *pair) for pair in pairs}
    if all(each.state == "?" for each in said.values()):
        yield HOST, next(iter(said.values())).judgement
        return
    for pair in (pair for pair, each in said.items() if each.state == "no"):
        bdfs = chain(*pair)
        if isinstance(bdfs, Missing):
            continue
        sizes = {bdf: _size(box, bdf) for bdf in bdfs}
        usual = Counter(sizes.values()).most_common(1)[0][0]
        for bdf, size in sizes.items():
            if size != usual and not isinstance(size, Missing) and not isinstance(usual, Missing):
                evidence = (Evidence(f"/sys/bus/pci/devices/{bdf}/config", f"MaxPayload {size}"),)
                message = f"MaxPayload is {size} bytes here and {usual} around it"
                odd[bdf] = Judgement(Status.WARN, message, size, usual, "bytes", evidence)
    for bdf, judgement in odd.items():
        device = box.topology.device(bdf)
        if device is not None and device.kind == "gpu":
            yield box.subject(device), judgement
        else:
            name = bdf if device is None else device.name
            yield Subject(kind="pci" if device is None else "hca", name=name, bdf=bdf), judgement
    if not odd:
        equal = sum(each.state == "ready" for each in said.values())
        of = "" if equal == len(pairs) else f" of {len(pairs)}, the others cannot be read"
        message = f"MaxPayload is the same all the way for {equal} pairs of GPU and HCA{of}"
        yield HOST, Judgement(Status.PASS, message, evidence=(Evidence("/sys/bus/pci/devices/*/config", "equal"),))


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
