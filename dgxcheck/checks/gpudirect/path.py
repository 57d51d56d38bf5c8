"""GPUDirect RDMA between a GPU and an HCA: BAR1, the port, the distance, and whether the PCIe links carry its rate."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.checks.driver.loaded import bound
from dgxcheck.checks.engine.box import Box, nvml_unavailable
from dgxcheck.checks.engine.check import Check, host, host_if_all, part, ruled, setting_of_all
from dgxcheck.checks.engine.expected import is_coherent
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, answered, given, judged, skip, unless
from dgxcheck.checks.engine.precondition import Precondition, fails_elsewhere, needs_facts, undetermined
from dgxcheck.checks.gpu.presence import unlisted
from dgxcheck.checks.gpudirect.preconditions import no_rdma
from dgxcheck.checks.network.ports import file_of, gbit_per_s, name_of, port_gbs, port_subject, ports, ports_of
from dgxcheck.checks.pcie.bar1 import bars_of, expected_bar1_mib, memory_of
from dgxcheck.checks.pcie.gpu_link import own_hop, setting_or_link, slow_fault, target_evidence
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import MELLANOX, MIB
from dgxcheck.facts.infiniband import IbPort
from dgxcheck.facts.missing import Gap, Missing, need, or_gap
from dgxcheck.facts.record import replace
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.topology.model import Device, PciClass
from dgxcheck.topology.paths import NEAR, Hop, hops_between, pci_class


def bound_to_driver(box: Box, gpu: Device) -> Precondition:
    """Is the GPU bound to the nvidia driver, and does NVML list it? Judged as a fault by gpu.lost."""
    if gpu.index is not None:
        return Precondition("ready", Judgement(Status.PASS, "NVML lists it"))
    driver = bound(gpu)
    if not isinstance(driver, Missing) and driver != "nvidia":
        return Precondition("no", skip("not-visible", f"bound to {driver or 'no driver'}, not to nvidia"))
    judgement = nvml_unavailable(box) or unlisted(box, gpu)
    if judgement.status is Status.FAIL:
        return Precondition("no", replace(judgement, status=Status.SKIP, reason="dependency-failed", fault=None))
    return Precondition("?", judgement)


@needs_facts
def bar1(box: Box, gpu: Device) -> Precondition:
    """Can the HCA reach all of the GPU's memory through BAR1, and is enough of it free?"""
    bar = need(need(bars_of(box, gpu)).bar1)
    if not bar.assigned:
        return fails_elsewhere("BAR1 is unassigned", "pcie.bar1")
    size = need(bar.size)
    mib = size // MIB
    expected = expected_bar1_mib(box, gpu)
    if expected is not None and mib < expected:
        return fails_elsewhere(f"BAR1 has only {mib} MiB, {expected:g} MiB expected", "pcie.bar1")
    evidence = Evidence(pci_file(gpu.bdf, "resource"), size)
    used = _used(box, gpu)
    percent = box.settings.limit("gdr.bar1-used")
    most = size * percent / 100
    if isinstance(used, int) and used > most:
        message = f"{used // MIB} of {mib} MiB of BAR1 in use, at most {percent:g} % expected"
        nvml = answered(used, "nvmlDeviceGetBAR1MemoryInfo", gpu.bdf or "")
        facts = (used // MIB, int(most) // MIB, "MiB", (evidence, nvml))
        return Precondition("slow", judged(Fault.BAR1_FULL, message, *facts, warns=True))
    total = memory_of(box, gpu)
    if total is not None and size < total:
        message = f"BAR1 maps {mib} of {total // MIB} MiB of memory at a time"
        return Precondition("slow", Judgement(Status.PASS, message, mib, unit="MiB", evidence=(evidence,)))
    message = f"BAR1 has {mib} MiB" + ("" if total is None else " and maps all of the GPU's memory")
    judgement = Judgement(Status.PASS, message, mib, unit="MiB", evidence=(evidence,))
    if isinstance(used, Missing) and used.gap is not Gap.UNSUPPORTED:  # some drivers do not count it
        return Precondition("?", judgement, f"how much of BAR1 is in use is unknown: {used.where}: {used}")
    if total is not None or expected is not None:
        return Precondition("ready", judgement)
    if is_coherent(box):
        return Precondition("ready", judgement, f"{message}; the HCA reaches GPU memory over C2C")
    return Precondition("?", judgement, f"{message}; whether that maps all of the GPU's memory is unknown")


@or_gap
def _used(box: Box, gpu: Device) -> int | Missing:
    return need(box.gpu(gpu).pcie).bar1_used


@needs_facts
def port(box: Box, nic: Device) -> Precondition:
    """Is a port of this HCA up?"""
    rates = [(port, gbit_per_s(port)) for port in need(ports_of(box, nic.name))]
    if (up := next((port for port, rate in rates if isinstance(rate, float) and rate), None)) is not None:
        return Precondition("ready", _state(up))
    for _, rate in rates:
        need(rate)
    return fails_elsewhere(f"no port of {nic.name} is ACTIVE", "network.port-state")


def _state(port: IbPort) -> Judgement:
    if isinstance(port.state, Missing):
        return undetermined(port.state).judgement
    rate = need(gbit_per_s(port))
    evidence = (Evidence(file_of(port, "state"), f"{int(port.state)}: {port.state.name}"),)
    if not rate:
        return skip("dependency-failed", f"the port is {port.state.name}: see network.port-state", *evidence)
    message = f"{name_of(port)} is {port.state.name} at {rate:g} Gbit/s, {port.link_layer}"
    return Judgement(Status.PASS, message, port.state.name, "ACTIVE", evidence=evidence)


def _bar1(box: Box) -> Judged:
    """Warns if more than {gdr.bar1-used} of BAR1 are in use, which leaves no room to register more memory. A BAR1 that
    is unassigned or smaller than the model's is judged by pcie.bar1.

    Source: resource of /sys/bus/pci/devices, nvmlDeviceGetBAR1MemoryInfo; https://docs.nvidia.com/cuda/gpudirect-rdma
    """
    unless(no_rdma(box))
    yield from ((box.subject(gpu), bar1(box, gpu).judgement) for gpu in box.gpus)


def _port(box: Box) -> Judged:
    """Passes for a port that is ACTIVE; a port in any other state is judged by network.port-state.

    Source: state and rate of /sys/class/infiniband/*/ports/*
    """
    unless(no_rdma(box))
    yield from ((port_subject(device, port), ruled(_state, port)) for device, port in given(ports(box)))


_NCCL = "NCCL does not use it by default"
_SAME_NODE: tuple[PciClass, ...] = ("PHB", "NODE")
"""Of Grace these are NCCL's P2C (``NCCL_NET_GDR_C2C``; NVIDIA/nccl src/graph/topo.h), and what rdma_topo calls NUMA."""
_FAR: Mapping[PciClass, str] = {
    "PHB": "path through a host bridge: works, but slower",
    "NODE": "path through two host bridges: works, but slower",
    "SOC": "path between NUMA nodes, usually across sockets: slow or unreliable",
}


def path(box: Box, gpu: Device, nic: Device) -> Precondition:
    """Do the two share a PCIe switch?"""
    link = box.topology.link(gpu, nic)
    if link.pci is None:
        return Precondition("?", skip("not-visible", link.pci_reason or f"the path to {nic.name} is not known"))
    if link.pci in NEAR:
        return Precondition("ready", Judgement(Status.PASS, f"shares a PCIe switch with {nic.name} ({link.pci})"))
    near = any(box.topology.link(gpu, other).pci in NEAR for other in box.topology.adapters)
    if link.pci in _SAME_NODE and is_coherent(box) and not near:
        message = f"{nic.name} reaches its memory over C2C through their CPU, which NCCL uses by default"
        return Precondition("ready", Judgement(Status.PASS, message))
    from dgxcheck.bandwidth.expected import between

    carries = between(box, gpu, nic)
    rates = [f"{total.rate} {way}" for total, way in ((carries.read, "read"), (carries.write, "written"))]
    return Precondition("slow", skip("not-supported", f"{_FAR[link.pci]} ({', '.join(rates)}); {_NCCL}"))


_NETWORK = 2
"""Base class of a PCI function."""


@needs_facts
def link(box: Box, gpu: Device, nic: Device) -> Precondition:
    """The narrowest hop between the two against the rate of the port."""
    from dgxcheck.bandwidth.links import as_it_is, narrowest

    narrow = need(narrowest(need(hops_between(gpu, nic, box.topology.functions)), as_it_is(nic)))
    if narrow is None:
        return Precondition("?", skip("not-visible", "no link is visible between them, as in a virtual machine"))
    hop, gbs = narrow
    rate = port_gbs(box, nic)
    port = "" if rate is None else f", the port {rate:.1f} GB/s"
    if rate is not None and gbs < rate:
        message = f"link {hop} is trained at x{hop.width} and carries {gbs:.1f} GB/s{port}"
        return Precondition("slow", Judgement(Status.PASS, message))
    return Precondition("ready", Judgement(Status.PASS, f"link {hop} carries {gbs:.1f} GB/s{port}"))


def _path(box: Box) -> Judged:
    """Passes for a GPU that shares a PCIe switch with an HCA (PIX, PXB). Without a reference machine, warns if other
    GPUs do and this one does not; with one, network.hca-placement judges this. Not judged on a machine on which no GPU
    shares a switch with an HCA.

    Source: the PCI tree; https://docs.nvidia.com/cuda/gpudirect-rdma on supported systems; NCCL's default of
    NCCL_NET_GDR_LEVEL
    """
    unless(no_rdma(box))
    matrix, adapters = box.topology.links, box.topology.adapters
    near = {gpu.name: [nic for nic in adapters if matrix[gpu.name, nic.name].pci in NEAR] for gpu in box.topology.gpus}
    for gpu in box.gpus:
        yield box.subject(gpu), _nearest(box, gpu, near[gpu.name], any(near.values()))


def _nearest(box: Box, gpu: Device, near: list[Device], others_have_one: bool) -> Judgement:
    where = f"/sys/bus/pci/devices/{gpu.bdf}"
    if near:
        names = ", ".join(nic.name for nic in near)
        return Judgement(Status.PASS, f"shares a PCIe switch with {names}", evidence=(Evidence(where, names),))
    paths = [path(box, gpu, nic) for nic in box.topology.adapters]
    if (unknown := next((precondition for precondition in paths if precondition.state == "?"), None)) is not None:
        return unknown.judgement
    if not others_have_one:
        return skip("not-supported", "no GPU shares a PCIe switch with an HCA")
    message = "shares no PCIe switch with an HCA, other GPUs do"
    if silent := _without_rdma_device(box, gpu):
        return skip("dependency-failed", f"the adapter {silent} on its PCIe switch has no RDMA device")
    if box.choice is not None:
        return skip("not-supported", f"{message}: see network.hca-placement")
    return Judgement(Status.WARN, message, evidence=(Evidence(where, "no HCA near"),), fault=Fault.MISPLACED)


def _without_rdma_device(box: Box, gpu: Device) -> str:
    """The bdf of a Mellanox adapter on the GPU's PCIe switch that the driver made no device of; empty without one."""
    own, listed = gpu.function, {nic.bdf for nic in box.topology.adapters}
    adapters = (
        each for bdf, each in sorted(box.topology.functions.items())
        if each.vendor == MELLANOX and each.subclass >> 8 == _NETWORK
        and bdf not in listed
    )  # fmt: skip
    near = (function.bdf for function in adapters if own and pci_class(own, function, box.snapshot.numa)[0] in NEAR)
    return next(near, "")


def _link(box: Box) -> Judged:
    """Warns if an HCA's own PCIe link is trained at fewer lanes or a lower generation than both its ends support;
    unlike a GPU's link it does not slow down when idle.

    Source: current_link_* against max_link_* of both ends
    """
    unless(no_rdma(box))
    for nic in box.topology.adapters:
        subject = box.subject(nic)
        hop = own_hop(box, nic.path)
        yield subject, hop if isinstance(hop, Judgement) else ruled(_trained, box, hop, port_gbs(box, nic))


def _trained(box: Box, hop: Hop, port: float | None) -> Judgement:
    """The own link of an HCA against what both its ends support; ``port`` in GB/s."""
    if hop.skip_reason:
        return skip("not-visible", hop.skip_reason)
    narrow, slow, gbs = need(hop.narrow), need(hop.slow), need(hop.gbs)
    gen, width = need(hop.gen), need(hop.width)
    at_port = "" if port is None else f", the port {port:.1f} GB/s"
    message = f"PCIe gen{gen} x{width} ({gbs:.1f} GB/s{at_port})"
    evidence = (
        Evidence(pci_file(hop.device, "current_link_width"), width),
        Evidence(pci_file(hop.device, "current_link_speed"), gen),
    )
    if not narrow and not slow:
        return Judgement(Status.PASS, message, round(gbs, 2), unit="GB/s", evidence=evidence)
    message += f" instead of gen{hop.max_gen} x{hop.max_width}; link {hop}"
    fault = Fault.LINK_NARROW if narrow else slow_fault(box, hop)
    if fault is Fault.LINK_LIMITED:
        message += ", limited by a setting of the port"
    figures = (round(gbs, 2), round(need(hop.max_gbs), 2), "GB/s")
    return judged(fault, message, *figures, (*evidence, *target_evidence(box, hop)), warns=True)


CHECKS = (
    Check("gdr.bar1", _bar1, part("BAR1"), setting_of_all("BAR1")),
    Check("gdr.port", _port),
    Check("gdr.path", _path, host("placement of HCAs")),
    Check("gdr.link", _link, setting_or_link, host_if_all("PCIe setting")),
)  # fmt: skip
