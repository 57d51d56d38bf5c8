"""GPUDirect RDMA: whether GPU, HCA and the ports between them have the same MaxPayload; the HCAs' MaxReadReq."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dgxcheck.checks.engine.blame import host_if_all, part
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, ruled
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject
from dgxcheck.checks.engine.precondition import Precondition, needs_facts
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.gpudirect.preconditions import near_pairs, no_rdma, not_judged
from dgxcheck.checks.host.virtual_machines import in_guest
from dgxcheck.checks.network.hcas import nics
from dgxcheck.checks.pcie.gpu_link import bridge
from dgxcheck.checks.pcie.isolation import config_space_of
from dgxcheck.checks.siblings.compare import Odd, compared
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Missing, need
from dgxcheck.facts.pci import Express
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import shared_bridges

Sizes = Mapping[str, int]
"""MaxPayload in bytes by bdf."""


def _functions_between(a: Device, b: Device) -> tuple[str, ...] | Missing:
    """Bdfs of both devices and every port between them."""
    if isinstance(a.path, Missing):
        return a.path
    if isinstance(b.path, Missing):
        return b.path
    top = max(shared_bridges(a.path, b.path), 1)
    return tuple(dict.fromkeys((*a.path[top:], *b.path[top:])))


def _size(box: Box, bdf: str) -> int | Missing:
    space = config_space_of(box, bdf)
    express = space if isinstance(space, Missing) else space.express
    return express if isinstance(express, Missing) else express.max_payload


def _sizes(box: Box, gpu: Device, nic: Device) -> Sizes | Missing:
    """Of the whole path; Missing where one size is."""
    bdfs = _functions_between(gpu, nic)
    if isinstance(bdfs, Missing):
        return bdfs
    sizes = {bdf: _size(box, bdf) for bdf in bdfs}
    gap = next((size for size in sizes.values() if isinstance(size, Missing)), None)
    return {bdf: size for bdf, size in sizes.items() if isinstance(size, int)} if gap is None else gap


def _different(sizes: Sizes) -> tuple[Sizes, int]:
    """Those that differ from the most common size, and that size."""
    usual = Counter(sizes.values()).most_common(1)[0][0]
    return {bdf: size for bdf, size in sizes.items() if size != usual}, usual


@needs_facts
def payload(box: Box, gpu: Device, nic: Device) -> Precondition:
    """Is MaxPayload the same along the path of the pair?"""
    if (hidden := in_guest(box)) is not None:
        return hidden
    different, usual = _different(need(_sizes(box, gpu, nic)))
    if not different:
        return Precondition("ready", Judgement(Status.PASS, f"MaxPayload is {usual} bytes along the path"))
    sizes = ", ".join(f"{size} bytes at {bdf}" for bdf, size in different.items())
    message = f"MaxPayload is {sizes}, {usual} bytes along the rest of the path: larger packets are dropped"
    return Precondition("no", Judgement(Status.WARN, message, fault=Fault.MAX_PAYLOAD))


def _payload(box: Box) -> Judged:
    pairs = near_pairs(box)
    if (reason := not_judged(box, pairs)) is not None:
        yield HOST, reason
        return
    paths = [sizes for pair in pairs if not isinstance(sizes := _sizes(box, *pair), Missing)]
    if not paths:
        yield HOST, payload(box, *pairs[0]).judgement
        return
    judgements: dict[str, Judgement] = {}
    for sizes in paths:
        different, usual = _different(sizes)
        for bdf, size in different.items():
            evidence = (Evidence(pci_file(bdf, "config"), f"MaxPayload {size}"),)
            message = f"MaxPayload {size} bytes, {usual} bytes along its path"
            judgements[bdf] = Judgement(Status.WARN, message, size, usual, "bytes", evidence, fault=Fault.MAX_PAYLOAD)
    for bdf, judgement in judgements.items():
        yield _subject(box, bdf), judgement
    if not judgements:
        read = counted(len(paths), "pair")
        if len(paths) < len(pairs):
            read = f"{len(paths)} of {len(pairs)} pairs"
        message = f"MaxPayload is the same along the path of {read} of GPU and HCA"
        yield HOST, Judgement(Status.PASS, message, evidence=(Evidence("/sys/bus/pci/devices/*/config", "equal"),))


def _subject(box: Box, bdf: str) -> Subject:
    device = box.topology.device(bdf)
    if device is not None and device.kind == "gpu":
        return box.subject(device)
    return bridge(bdf) if device is None else Subject(kind="hca", name=device.name, bdf=bdf)


def _read_requests(box: Box) -> Judged:
    if (reason := no_rdma(box)) is not None:
        yield HOST, reason
        return
    if (hidden := in_guest(box)) is not None:
        yield HOST, hidden.judgement
        return
    odd = compared(box, ["hca"], Express.max_read_request).odd
    for nic in nics(box):
        at = Subject(kind="hca", name=nic.name, bdf=nic.bdf)
        yield at, ruled(_read_request, box, nic, next(iter(odd.get(at, ())), None))


def _read_request(box: Box, nic: Device, among: Odd | None) -> Judgement:
    size = need(need(need(config_space_of(box, nic.bdf or "")).express).max_read_request)
    evidence = (Evidence(pci_file(nic.bdf, "config"), f"MaxReadReq {size}"),)
    least = box.settings.limit("gdr.read-request")
    usual = among.usual if among is not None and among.majority and isinstance(among.usual, int) else 0
    message = f"MaxReadReq {size} bytes"
    if size < usual:
        message += f", {usual} bytes in the others; HCAs of one model"
        return Judgement(Status.WARN, message, size, usual, "bytes", evidence, fault=Fault.READ_REQUEST)
    if size < least:
        message += f", at least {least:g} expected"
        return Judgement(Status.WARN, message, size, least, "bytes", evidence, fault=Fault.READ_REQUEST)
    return Judgement(Status.PASS, message, size, least, "bytes", evidence)


CHECKS = (
    Check(
        id="gdr.max-payload",
        rule="Warns if a GPU, an HCA near it, or a port between them has another MaxPayload than the rest of the path:"
        " larger packets are dropped there as malformed. Undetermined without root.",
        source="Device Control of the PCI Express capability in /sys/bus/pci/devices/*/config",
        remedy="remove pci=pcie_bus_* from the kernel command line; or set pci=pcie_bus_safe, then check the"
        " setting in the firmware setup",
        judge=_payload,
        blames=part("MaxPayload"),
    ),
    Check(
        id="gdr.read-request",
        rule="Warns if the MaxReadReq of an HCA is below that of most other HCAs of its model, or below"
        " {gdr.read-request}: reads of GPU memory are split into small requests. Undetermined without root.",
        source="Device Control of the PCI Express capability in /sys/bus/pci/devices/*/config",
        remedy="remove pci=pcie_bus_* from the kernel command line; look for a script that sets it (setpci, udev),"
        " and check the setting in the firmware setup",
        judge=_read_requests,
        blames=part("MaxReadReq"),
        shared=host_if_all("MaxReadReq setting"),
    ),
)
