"""GPUDirect RDMA: do ports between a GPU and an HCA send their traffic up to the root complex?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.precondition import Said, elsewhere, unsaid
from dgxcheck.checks.gpudirect.preconditions import near_pairs, not_judged, wanted
from dgxcheck.checks.host.virtual_machines import hypervisor, in_guest
from dgxcheck.checks.pcie.acs import REDIRECT, between, control_of, lifted
from dgxcheck.checks.pcie.iommu import translated
from dgxcheck.checks.pcie.width import bridge
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import replace
from dgxcheck.topology.classes import NEAR
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]
BITS = {0x04: "request redirect", 0x08: "completion redirect", 0x10: "upstream forwarding", 0x20: "egress control"}


def acs(box: Box, gpu: Device, nic: Device) -> Said:
    """Does a port between the two redirect?"""
    if box.topology.link(gpu, nic).pci not in NEAR:
        return Said("ready", skip("not-supported", "their traffic goes through a host bridge anyway"))
    if (hidden := in_guest(box)) is not None:
        return hidden
    ports = between(box, gpu, nic)
    if isinstance(ports, Missing):
        return unsaid(ports)
    said = {port: of_port(box, port, [(gpu, nic)]) for port in ports}
    bad = {port: each for port, each in said.items() if each.state == "no"}
    if bad:
        first = next(iter(bad.values())).judgement
        told = replace(first, remedy=lifted(box, *bad)) if first.remedy else first
        return Said("no", told, f"ACS sends their traffic up to the root complex at {', '.join(bad)}")
    unknown = next((each for each in said.values() if each.state == "?"), None)
    return unknown or Said("ready", Judgement(Status.PASS, "no port between them redirects"))


def of_port(box: Box, bdf: str, pairs: list[tuple[Device, Device]]) -> Said:
    """One port, and the pairs whose traffic it would redirect."""
    found = control_of(box, bdf)
    if isinstance(found, Missing):
        return unsaid(found)
    control = 0 if found is None else found.control & REDIRECT
    if found is None or not control:
        return Said("ready", Judgement(Status.PASS, f"{bdf} does not redirect"))
    words = ", ".join(name for bit, name in BITS.items() if control & bit)
    names = ", ".join(f"{gpu.name}-{nic.name}" for gpu, nic in pairs)
    message = f"ACS of {bdf} sends traffic up to the root complex ({words}): {names}"
    evidence = Evidence(f"/sys/bus/pci/devices/{bdf}/config", f"ACSCtl {found.control:#06x}")
    if why := hypervisor(box):
        return Said("no", skip("not-configured", f"{message}; virtual machines need that: {why}", evidence))
    if translated(box):
        return elsewhere("no", f"{message}; the kernel sets that where an IOMMU translates", "gdr.iommu")
    if not wanted(box):
        return Said("no", skip("not-configured", message, evidence))
    expected = found.control & ~REDIRECT
    return Said("no", Judgement(
        Status.WARN, message, found.control, expected, evidence=(evidence,), remedy=lifted(box, bdf)
    ))  # fmt: skip


def _acs(box: Box) -> Judged:
    pairs = near_pairs(box)
    if (nothing := not_judged(box, pairs)) is not None:
        yield HOST, nothing
        return
    crossed: dict[str, list[tuple[Device, Device]]] = {}
    for pair in pairs:
        ports = between(box, *pair)
        if isinstance(ports, Missing):
            yield HOST, unsaid(ports).judgement
            return
        for port in ports:
            crossed.setdefault(port, []).append(pair)
    able = {port: found for port, found in crossed.items() if control_of(box, port) is not None}
    yield from _of_ports(box, {port: of_port(box, port, found) for port, found in able.items()})


def _of_ports(box: Box, said: Mapping[str, Said]) -> Judged:
    """Each port that redirects; all of them at once where they all do, for that is a setting of firmware or kernel."""
    bad = {port: each.judgement for port, each in said.items() if each.state == "no"}
    unknown = next((each for each in said.values() if each.state == "?"), None)
    first = next(iter(bad.values()), None)
    if first is not None and len(bad) == len(said) > 1:
        yield HOST, _all(box, bad, first)
    else:
        for port, judgement in bad.items():
            yield bridge(port), judgement
    if unknown is not None:
        yield HOST, unknown.judgement
    elif first is None:
        evidence = tuple(Evidence(f"/sys/bus/pci/devices/{port}/config", "no redirect") for port in list(said)[:10])
        message = f"none of {len(said)} ports with ACS between GPUs and the HCAs near them redirects"
        yield HOST, Judgement(Status.PASS, message, 0, 0, "ports", evidence)


def _all(box: Box, bad: Mapping[str, Judgement], first: Judgement) -> Judgement:
    message = f"ACS of all {len(bad)} ports between GPUs and the HCAs near them sends traffic up to the root complex"
    evidence = tuple(each for judgement in bad.values() for each in judgement.evidence)[:10]
    if first.status is Status.SKIP:
        return skip(first.reason, f"{message}; first: {first.message}", *evidence)
    return Judgement(Status.WARN, message, len(bad), 0, "ports", evidence, remedy=lifted(box, *bad))


CHECKS = (
    Check(
        id="gdr.acs",
        rule="Warns where a port below the nearest common bridge of a GPU and an HCA near it (or that bridge, where it"
        " is no root port) has P2P redirection on, and a peer-memory module is loaded. Where virtual machines run that"
        " is as it must be. Without root it cannot tell.",
        source="ACS control word of /sys/bus/pci/devices/*/config, mask 0x3c as UCX pull request 11412; NCCL issues"
        " 214, 606, 2079",
        remedy="disable ACS in the firmware, after the IOMMU has stopped translating",
        judge=_acs,
    ),
)
