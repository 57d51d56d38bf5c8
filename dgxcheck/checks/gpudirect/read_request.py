"""GPUDirect RDMA: the largest read request of each HCA."""

from __future__ import annotations

from dgxcheck.checks.engine.blame import host_if_all, part
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, ruled
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject
from dgxcheck.checks.gpudirect.preconditions import no_rdma
from dgxcheck.checks.host.virtual_machines import in_guest
from dgxcheck.checks.network.hcas import nics
from dgxcheck.checks.pcie.isolation import config_space_of
from dgxcheck.checks.siblings.compare import Odd, compared
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import need
from dgxcheck.facts.pci import Express
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.topology.model import Device


def _judge(box: Box) -> Judged:
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
        id="gdr.read-request",
        rule="Warns if the MaxReadReq of an HCA is below that of most other HCAs of its model, or below"
        " {gdr.read-request}: reads of GPU memory are split into small requests. Undetermined without root.",
        source="Device Control of the PCI Express capability in /sys/bus/pci/devices/*/config",
        remedy="remove pci=pcie_bus_* from the kernel command line; look for a script that sets it (setpci, udev),"
        " and check the setting in the firmware setup",
        judge=_judge,
        blames=part("MaxReadReq"),
        shared=host_if_all("MaxReadReq setting"),
    ),
)
