"""GPUDirect RDMA: the largest read request of each HCA."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.checks.engine.blame import host_if_all, part
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, ruled
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject
from dgxcheck.checks.gpudirect.preconditions import no_rdma
from dgxcheck.checks.host.virtual_machines import in_guest
from dgxcheck.checks.network.hcas import nics
from dgxcheck.checks.pcie.isolation import config_space_of
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Missing, need
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.topology.model import Device

Sizes = Mapping[str, "int | Missing"]
"""Bytes by bdf."""


def _judge(box: Box) -> Judged:
    if (reason := no_rdma(box)) is not None:
        yield HOST, reason
        return
    if (hidden := in_guest(box)) is not None:
        yield HOST, hidden.judgement
        return
    for nic in nics(box):
        yield Subject(kind="hca", name=nic.name, bdf=nic.bdf), ruled(_read_request, box, nic)


def _read_request(box: Box, nic: Device) -> Judgement:
    size = need(_size(box, nic))
    evidence = (Evidence(pci_file(nic.bdf, "config"), f"MaxReadReq {size}"),)
    least = box.settings.limit("gdr.read-request")
    usual = _of_siblings(box, nic)
    message = f"MaxReadReq is {size} bytes"
    if usual is not None and size < usual:
        message += f", {usual} bytes in the other HCAs of its model"
        return Judgement(Status.WARN, message, size, usual, "bytes", evidence, fault=Fault.READ_REQUEST)
    if size < least:
        message += f", at least {least:g} expected"
        return Judgement(Status.WARN, message, size, least, "bytes", evidence, fault=Fault.READ_REQUEST)
    return Judgement(Status.PASS, message, size, least, "bytes", evidence)


def _of_siblings(box: Box, nic: Device) -> int | None:
    """The size that most other HCAs of the same PCI ids have; None with fewer than two of them."""
    own = _ids(nic)
    sizes = [_size(box, other) for other in nics(box) if other is not nic and own is not None and _ids(other) == own]
    known = [size for size in sizes if isinstance(size, int)]
    usual = next((size for size in known if 2 * known.count(size) > len(known)), None)
    return usual if len(known) > 1 else None


def _ids(nic: Device) -> tuple[object, ...] | None:
    function = nic.function
    if function is None:
        return None
    ids = (function.vendor, function.device, function.subsystem_vendor, function.subsystem_device)
    return None if any(isinstance(each, Missing) for each in ids) else ids


def _size(box: Box, nic: Device) -> int | Missing:
    space = config_space_of(box, nic.bdf or "")
    express = space if isinstance(space, Missing) else space.express
    return express if isinstance(express, Missing) else express.max_read_request


CHECKS = (
    Check(
        id="gdr.read-request",
        rule="Warns if the MaxReadReq of an HCA is below that of most other HCAs of its model, or below"
        " {gdr.read-request}: reads of GPU memory are split into small requests. Undetermined without root.",
        source="Device Control of the PCI Express capability in /sys/bus/pci/devices/*/config",
        remedy="remove pci=pcie_bus_* from the kernel command line, look for a script that sets it (setpci, udev),"
        " and check the setting in the firmware setup",
        judge=_judge,
        blames=part("MaxReadReq"),
        shared=host_if_all("MaxReadReq setting"),
    ),
)
