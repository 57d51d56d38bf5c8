"""GPUDirect: ports that redirect what a GPU and an HCA or two GPUs send each other, and an IOMMU that translates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.checks.engine.box import HOST, Box, pci_subject
from dgxcheck.checks.engine.check import Check, host
from dgxcheck.checks.engine.expected import is_coherent
from dgxcheck.checks.engine.finding import (
    Evidence,
    Judged,
    Judgement,
    Status,
    counted,
    first_of,
    judged,
    of_gaps,
    skip,
    unless,
)
from dgxcheck.checks.engine.host_limits import hypervisor
from dgxcheck.checks.engine.precondition import Precondition, fails_elsewhere, in_guest, needs_facts, undetermined
from dgxcheck.checks.gpudirect.preconditions import (
    near_pairs,
    no_gpudirect,
    not_judged,
    pcie_peers,
    rdma_configured,
)
from dgxcheck.checks.pcie.acs_rules import AcsRule, acs_rules
from dgxcheck.checks.pcie.isolation import (
    PASS_THROUGH,
    REDIRECT,
    acs_of,
    disable_acs,
    disable_translation,
    group_type,
    ports_between,
    translated_devices,
)
from dgxcheck.components.component import host_part
from dgxcheck.components.locate import bridge_setting, switch_setting
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Gap, Missing, need, rows
from dgxcheck.facts.pci import Iommu
from dgxcheck.facts.record import replace
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.topology.model import Device, DevicePair
from dgxcheck.topology.paths import NEAR

BITS = {0x04: "request redirect", 0x08: "completion redirect", 0x10: "upstream forwarding", 0x20: "egress control"}
_MOST_PAIRS = 4


@needs_facts
def acs(box: Box, gpu: Device, nic: Device) -> Precondition:
    """Do ports between the two redirect?"""
    if box.topology.link(gpu, nic).pci not in NEAR:
        return Precondition("ready", skip("not-supported", "their traffic passes through a host bridge in any case"))
    if (hidden := in_guest(box)) is not None:
        return hidden
    ports = {port: port_acs(box, port, [(gpu, nic)]) for port in need(ports_between(box, gpu, nic))}
    if redirecting := {port: each.judgement for port, each in ports.items() if each.state == "no"}:
        first = next(iter(redirecting.values()))
        judgement = replace(first, remedy=disable_acs(box, *redirecting)) if first.remedy else first
        what = "is set otherwise than needed here" if acs_rules(box) else "redirects to the root complex"
        return Precondition("no", judgement, f"ACS {what} at {', '.join(redirecting)}")
    unknown = next((precondition for precondition in ports.values() if precondition.state == "?"), None)
    return unknown or Precondition("ready", Judgement(Status.PASS, "no port between them redirects"))


@needs_facts
def port_acs(box: Box, bdf: str, pairs: Sequence[DevicePair]) -> Precondition:
    """Does this port redirect the traffic of these pairs? Where the platform has a rule for it, is it set so?"""
    registers = need(acs_of(box, bdf))
    rule = acs_rules(box).get(bdf)
    if registers is not None and rule and not (rule.is_off and (hypervisor(box) or translated_devices(box))):
        return _ruled(box, bdf, registers.control, rule, pairs)
    if registers is None or not registers.control & REDIRECT:
        return Precondition("ready", Judgement(Status.PASS, f"{bdf} does not redirect"))
    bits = ", ".join(name for bit, name in BITS.items() if registers.control & bit)
    concerned = _in_use(box, pairs)
    names = first_of([f"{one.name}-{other.name}" for one, other in concerned or pairs], _MOST_PAIRS)
    message = f"ACS redirects P2P to the root complex; {names} by {bdf} ({bits})"
    evidence = Evidence(pci_file(bdf, "config"), f"ACSCtl {registers.control:#06x}")
    if reason := hypervisor(box):
        return Precondition("no", skip("not-configured", f"{message}; virtual machines need this: {reason}", evidence))
    if translated_devices(box):
        return fails_elsewhere(f"{message}; the kernel enables this where an IOMMU translates", "gdr.iommu")
    if not concerned:
        return Precondition("no", skip("not-configured", message, evidence))
    return _wrong(box, bdf, message, registers.control, registers.control & ~REDIRECT)


def _in_use(box: Box, pairs: Sequence[DevicePair]) -> list[DevicePair]:
    """Those that send each other anything: two GPUs; with an HCA only where GPUDirect RDMA is set up."""
    configured = rdma_configured(box)
    return [(a, b) for a, b in pairs if configured or _are_gpus(a, b)]


def _are_gpus(a: Device, b: Device) -> bool:
    return a.kind == b.kind == "gpu"


def _ruled(box: Box, bdf: str, control: int, rule: AcsRule, pairs: Sequence[DevicePair]) -> Precondition:
    expected = rule.applied(control)
    evidence = Evidence(pci_file(bdf, "config"), f"ACSCtl {control:#06x}")
    if control == expected:
        return Precondition("ready", Judgement(Status.PASS, f"{bdf} is set as the platform needs it"))
    message = f"ACS control {control:07b}, not {rule.bits}; the latter lets {rule.reason}"
    if rule.is_off and not rdma_configured(box) and not _in_use(box, pairs):
        return Precondition("no", skip("not-configured", message, evidence))
    return _wrong(box, bdf, message, control, expected)


def _wrong(box: Box, bdf: str, message: str, control: int, expected: int) -> Precondition:
    facts = (control, expected, "", (Evidence(pci_file(bdf, "config"), f"ACSCtl {control:#06x}"),))
    return Precondition("no", judged(Fault.ACS, message, *facts, warns=True, remedy=disable_acs(box, bdf)))


def _acs(box: Box) -> Judged:
    """Warns if a port below the nearest common bridge of a GPU and an HCA near it (or that bridge, unless it is a root
    port) has P2P redirection enabled and a peer memory module is loaded, or one between two GPUs without NVLink that
    the driver grants P2P. Where virtual machines run, the redirection is required and not judged. On Grace, and with a
    ConnectX-8 beside each GPU, warns if a port has not the bits that rdma_topo wants there. Undetermined without root.

    Source: ACS control word of /sys/bus/pci/devices/*/config, mask 0x3c as UCX pull request 11412; NCCL issues 214,
    606, 2079; NCCL user guide: PCI Access Control Services; https://github.com/linux-rdma/rdma-core
    kernel-boot/rdma_topo
    """
    peers = [(a, b) for a, b in pcie_peers(box) if box.topology.link(a, b).pci in NEAR]
    pairs, rules = [*near_pairs(box), *peers], acs_rules(box)
    ruled_ports = (row.bdf for row in rows(box.snapshot.config_space) if row.bdf in rules)
    pairs_by_port: dict[str, list[DevicePair]] = {port: [] for port in ruled_ports}
    unless(not_judged(box, pairs or bool(rules), peers))
    for pair in pairs:
        for port in need(ports_between(box, *pair)):  # of near devices the paths are known
            pairs_by_port.setdefault(port, []).append(pair)
    with_acs = {port: its for port, its in pairs_by_port.items() if acs_of(box, port) is not None}
    between = " and ".join(
        words for words, gpus in (("GPUs", True), ("GPUs and the HCAs near them", False))
        if any(_are_gpus(*pair) is gpus for pair in pairs)
    )  # fmt: skip
    yield from _of_ports(box, {port: port_acs(box, port, its) for port, its in with_acs.items()}, bool(rules), between)


def _of_ports(box: Box, ports: Mapping[str, Precondition], ruled: bool, between: str) -> Judged:
    """Each port that redirects; the host where all do, which is a setting of firmware or kernel."""
    wrong = {port: each.judgement for port, each in ports.items() if each.state == "no"}
    unknown = next((precondition for precondition in ports.values() if precondition.state == "?"), None)
    if len(wrong) == len(ports) > 1:
        yield HOST, _all_ports(box, wrong, ruled, between)
    else:
        yield from ((pci_subject(port), judgement) for port, judgement in wrong.items())
    if unknown is not None:
        yield HOST, unknown.judgement
    elif not wrong:
        evidence = tuple(Evidence(pci_file(port, "config"), "as wanted") for port in list(ports)[:10])
        message = f"none of {counted(len(ports), 'port')} with ACS between {between} redirects"
        if ruled:
            message = f"{counted(len(ports), 'port')} with ACS: each set as GPUs and their HCAs need it here"
        yield HOST, Judgement(Status.PASS, message, 0, 0, "ports", evidence)


def _all_ports(box: Box, wrong: Mapping[str, Judgement], ruled: bool, between: str) -> Judgement:
    number = len(wrong)
    message = f"ACS redirects P2P to the root complex at all {number} ports; between {between}"
    if ruled:
        message = f"ACS is set otherwise than GPUs and their HCAs need it here at all {number} ports"
    evidence = tuple(each for judgement in wrong.values() for each in judgement.evidence)[:40]
    first = max(wrong.values(), key=lambda judgement: judgement.status is not Status.SKIP)
    if first.status is not Status.SKIP:
        remedy = disable_acs(box, *wrong)
        return Judgement(Status.WARN, message, number, 0, "ports", evidence, remedy=remedy, fault=Fault.ACS)
    if reason := hypervisor(box):
        return skip(first.reason, f"{message}; virtual machines need this: {reason}", *evidence)
    iommu = "; the kernel enables this where an IOMMU translates: see gdr.iommu"
    return skip(first.reason, f"{message}{iommu if first.reason == 'dependency-failed' else ''}", *evidence)


def _iommu(box: Box) -> Judged:
    """Warns if the IOMMU group of a GPU or HCA translates (type DMA or DMA-FQ) and a peer memory module is loaded, or
    the driver grants P2P to GPUs without NVLink between them. Where virtual machines run, translation is required and
    not judged; in a guest it is not visible.

    Source: type of /sys/kernel/iommu_groups/*, the kernel command line; https://docs.nvidia.com/cuda/gpudirect-rdma on
    IOMMUs; CUDA C++ programming guide: IOMMU on Linux
    """
    peers = pcie_peers(box)
    unless(None if peers else no_gpudirect(box))
    yield HOST, iommu(box, [*box.gpus, *box.topology.adapters], bool(peers)).judgement


def iommu(box: Box, devices: list[Device], peers: bool = False) -> Precondition:
    """Are the DMA addresses of any of these devices translated? Of a pair, or of all GPUs and HCAs.

    ``peers``: among them are GPUs that PCIe alone joins, which NVIDIA supports only without translation, whatever else
    is set up (CUDA C++ programming guide: IOMMU on Linux).
    """
    if (hidden := in_guest(box)) is not None:
        return hidden
    if is_coherent(box):
        message = "the HCAs reach GPU memory over C2C, whatever the IOMMU translates"
        return Precondition("ready", skip("not-supported", message))
    types = {device: group_type(box, device.bdf) for device in devices}
    translated = {device: type_ for device, type_ in types.items() if isinstance(type_, str) and type_ != PASS_THROUGH}
    if translated:
        return _translation(box, translated, peers)
    gap = next((type_ for type_ in types.values() if isinstance(type_, Missing)), None)
    if gap is not None and gap.gap is Gap.ABSENT:
        message = "an IOMMU is enabled, iommu=pt is not set, and this kernel does not report whether it translates"
        return Precondition("?", skip("not-supported", message, *of_gaps([gap])))
    if gap is not None:
        return undetermined(gap)
    pass_through = PASS_THROUGH in types.values()
    units = box.snapshot.iommu.units if isinstance(box.snapshot.iommu, Iommu) else ()
    if isinstance(units, Missing) and units.gap is not Gap.ABSENT and not pass_through:
        return undetermined(units)
    message = "the IOMMU passes their addresses through" if pass_through else "no IOMMU translates their addresses"
    evidence = Evidence("/sys/class/iommu", "absent" if isinstance(units, Missing) else [*units])
    return Precondition("ready", Judgement(Status.PASS, message, evidence=(evidence,)))


def _translation(box: Box, translated: Mapping[Device, str], peers: bool) -> Precondition:
    types = ", ".join(sorted({*translated.values()}))
    summary = f"an IOMMU translates addresses (group type {types})"
    message = f"{summary} of {counted(len(translated), 'device')}; {', '.join(device.name for device in translated)}"
    evidence = tuple(Evidence(f"iommu_group/type of {device.bdf}", type_) for device, type_ in translated.items())[:10]
    if reason := hypervisor(box):
        needed = f"virtual machines need this: {reason}"
        return Precondition("no", skip("not-configured", f"{message}; {needed}", *evidence), f"{summary}; {needed}")
    if not (peers or rdma_configured(box)):
        return Precondition("no", skip("not-configured", message, *evidence), summary)
    facts = (types, PASS_THROUGH, "", evidence)
    judgement = judged(Fault.IOMMU, message, *facts, warns=True, remedy=disable_translation(box))
    return Precondition("no", judgement, summary)


CHECKS = (
    Check("gdr.acs", _acs,
        lambda box, at, judgement: (host_part("ACS setting") if at.bdf is None else bridge_setting(at.bdf),),
        lambda box, at, judgement: switch_setting(box, at.bdf, "ACS setting")),
    Check("gdr.iommu", _iommu, host("IOMMU setting")),
)  # fmt: skip
