"""GPUDirect RDMA: whether GPU, HCA and the ports between them have the same MaxPayload; the HCAs' MaxReadReq."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, host_if_all, part, ruled
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, counted, judged, unless
from dgxcheck.checks.engine.precondition import Precondition, in_guest, needs_facts
from dgxcheck.checks.gpudirect.preconditions import near_pairs, not_judged
from dgxcheck.checks.pcie.isolation import config_space_of
from dgxcheck.checks.siblings.compare import Odd, compared
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import NeededFact, need
from dgxcheck.facts.pci import Express
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import shared_bridges

Sizes = Mapping[str, int]
"""MaxPayload in bytes by bdf."""


def _sizes(box: Box, gpu: Device, nic: Device) -> Sizes:
    """Of both devices and every port between them."""
    above, beside = need(gpu.path), need(nic.path)
    top = max(shared_bridges(above, beside), 1)
    bdfs = dict.fromkeys((*above[top:], *beside[top:]))
    return {bdf: need(need(need(config_space_of(box, bdf)).express).max_payload) for bdf in bdfs}


def _sizes_or_none(box: Box, gpu: Device, nic: Device) -> Sizes | None:
    try:
        return _sizes(box, gpu, nic)
    except NeededFact:
        return None


def _different(sizes: Sizes) -> tuple[Sizes, int]:
    """Those that differ from the most common size, and that size."""
    usual = Counter(sizes.values()).most_common(1)[0][0]
    return {bdf: size for bdf, size in sizes.items() if size != usual}, usual


@needs_facts
def payload(box: Box, gpu: Device, nic: Device) -> Precondition:
    """Is MaxPayload the same along the path of the pair?"""
    if (hidden := in_guest(box)) is not None:
        return hidden
    different, usual = _different(_sizes(box, gpu, nic))
    if not different:
        return Precondition("ready", Judgement(Status.PASS, f"MaxPayload is {usual} bytes along the path"))
    sizes = ", ".join(f"{size} bytes at {bdf}" for bdf, size in different.items())
    message = f"MaxPayload is {sizes}, {usual} bytes along the rest of the path: larger packets are dropped"
    return Precondition("no", Judgement(Status.WARN, message, fault=Fault.MAX_PAYLOAD))


def _payload(box: Box) -> Judged:
    """Warns if a GPU, an HCA near it, or a port between them has another MaxPayload than the rest of the path: larger
    packets are dropped there as malformed. Undetermined without root.

    Source: Device Control of the PCI Express capability in /sys/bus/pci/devices/*/config
    """
    pairs = near_pairs(box)
    unless(not_judged(box, pairs))
    paths = [sizes for pair in pairs if (sizes := _sizes_or_none(box, *pair)) is not None]
    unless(None if paths else payload(box, *pairs[0]).judgement)
    judgements: dict[str, Judgement] = {}
    for sizes in paths:
        different, usual = _different(sizes)
        for bdf, size in different.items():
            evidence = (Evidence(pci_file(bdf, "config"), f"MaxPayload {size}"),)
            message = f"MaxPayload {size} bytes, {usual} bytes along its path"
            judgements[bdf] = Judgement(Status.WARN, message, size, usual, "bytes", evidence, fault=Fault.MAX_PAYLOAD)
    yield from ((box.subject_at(bdf), judgement) for bdf, judgement in judgements.items())
    if not judgements:
        some = f"{len(paths)} of {len(pairs)} pairs"
        read = some if len(paths) < len(pairs) else counted(len(paths), "pair")
        message = f"MaxPayload is the same along the path of {read} of GPU and HCA"
        yield HOST, Judgement(Status.PASS, message, evidence=(Evidence("/sys/bus/pci/devices/*/config", "equal"),))


def _read_requests(box: Box) -> Judged:
    """Warns if the MaxReadReq of an HCA is below that of most other HCAs of its model, or below {gdr.read-request}:
    reads of GPU memory are split into small requests. Undetermined without root.

    Source: Device Control of the PCI Express capability in /sys/bus/pci/devices/*/config
    """
    unless(not_judged(box, True))
    odd = compared(box, ["hca"], Express.max_read_request).odd
    for nic in box.topology.adapters:
        at = box.subject(nic)
        yield at, ruled(_read_request, box, nic, next(iter(odd.get(at, ())), None))


def _read_request(box: Box, nic: Device, among: Odd | None) -> Judgement:
    size = need(need(need(config_space_of(box, nic.bdf or "")).express).max_read_request)
    evidence = (Evidence(pci_file(nic.bdf, "config"), f"MaxReadReq {size}"),)
    least = box.settings.limit("gdr.read-request")
    usual = among.usual if among is not None and among.majority and isinstance(among.usual, int) else 0
    message, required = f"MaxReadReq {size} bytes", usual if size < usual else least
    if size < usual:
        message += f", {usual} bytes in the others; HCAs of one model"
    elif size < least:
        message += f", at least {least:g} expected"
    return judged(Fault.READ_REQUEST, message, size, required, "bytes", evidence, warns=size < required)


CHECKS = (
    Check("gdr.max-payload", _payload, part("MaxPayload"), host_if_all("MaxPayload setting"),
        remedy="remove pci=pcie_bus_* from the kernel command line; or set pci=pcie_bus_safe, then check the"
        " setting in the firmware setup"),
    Check("gdr.read-request", _read_requests, part("MaxReadReq"), host_if_all("MaxReadReq setting"),
        remedy="remove pci=pcie_bus_* from the kernel command line; look for a script that sets it (setpci, udev),"
        " and check the setting in the firmware setup"),
)  # fmt: skip
