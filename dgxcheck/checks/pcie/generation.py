"""The PCIe generation of each GPU's link."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.blame import device_of, host_if_all, own_link
from dgxcheck.checks.engine.box import Box, gpu_unavailable
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, as_evidence, skip
from dgxcheck.checks.engine.per_gpu import ruled
from dgxcheck.checks.engine.under_load import under_load
from dgxcheck.checks.pcie.link_speed import port_setting, slow_fault
from dgxcheck.checks.pcie.width import own_hop
from dgxcheck.components.component import Component
from dgxcheck.facts.gpu import GpuPcie
from dgxcheck.facts.missing import Missing, need
from dgxcheck.facts.record import replace
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import Hop

Judged = Iterator[tuple[Subject, Judgement]]
IDLE = 0x1
"""``nvmlClocksEventReasonGpuIdle``"""


def _generation(box: Box) -> Judged:
    for gpu in box.gpus:
        yield box.subject(gpu), gpu_unavailable(box, gpu) or ruled(_trained, box, gpu)


def _trained(box: Box, gpu: Device) -> Judgement:
    pcie = need(box.gpu(gpu).pcie)
    supported = need(_supported(box, gpu, pcie))
    number = box.choice.number("pcie.link_gen") if box.choice else None
    evidence: tuple[Evidence, ...] = (
        answered(as_evidence(pcie.max_link_gen), "nvmlDeviceGetMaxPcieLinkGeneration", pcie.bdf),
        answered(as_evidence(pcie.link_gen), "nvmlDeviceGetCurrPcieLinkGeneration", pcie.bdf),
    )
    if number is not None and supported < number.value:
        expected = int(number.value)
        message = f"GPU and slot support only gen{supported} together, gen{expected} expected"
        return Judgement(Status.WARN, message, supported, expected, "generation", evidence, fault=Fault.LINK_SLOW)
    loaded = under_load(box, pcie.bdf, "link_gen")
    gen = need(pcie.link_gen) if loaded is None else loaded[0]
    evidence = evidence if loaded is None else (*evidence, loaded[1])
    message = f"link at gen{gen}, GPU and slot support gen{supported}"
    if gen >= supported:
        return Judgement(Status.PASS, message, gen, supported, "generation", evidence)
    if loaded is None and not _is_loaded(box, gpu):
        return skip("not-in-level", f"{message}: not a fault while the GPU is not under load", *evidence)
    message = f"link at gen{gen} under load, GPU and slot support gen{supported}"
    hop = own_hop(box, gpu.path)
    fault = Fault.LINK_SLOW if isinstance(hop, Judgement) else slow_fault(box, replace(hop, gen=gen))
    return Judgement(Status.WARN, message, gen, supported, "generation", evidence, fault=fault)


def _supported(box: Box, gpu: Device, pcie: GpuPcie) -> int | Missing:
    """The lowest generation that NVML and both ends of the link support, without a profile: a card that supports more
    than its host is not at fault.
    """
    hop = own_hop(box, gpu.path)
    maxima = [pcie.max_link_gen]
    if not isinstance(hop, Judgement) and not hop.skip_reason:
        maxima.append(hop.max_gen)
    known = [gen for gen in maxima if not isinstance(gen, Missing)]
    return min(known) if known else maxima[0]


def _is_loaded(box: Box, gpu: Device) -> bool:
    """In P0, not idle, and with utilisation or a process: only then is the link at its full generation."""
    view = box.gpu(gpu)
    clocks, processes = view.clocks, view.processes
    if isinstance(clocks, Missing) or isinstance(processes, Missing):
        return False
    reasons = clocks.reasons
    if clocks.performance_state != 0 or isinstance(reasons, Missing) or reasons.mask & IDLE:
        return False
    used = not isinstance(processes.gpu_percent, Missing) and processes.gpu_percent > 0
    return used or (not isinstance(processes.compute, Missing) and len(processes.compute) > 0)


def _blames(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The GPU's own link; first the setting of the port above it, where that is what holds the link."""
    gpu = device_of(box, subject)
    hop = own_hop(box, gpu.path) if gpu is not None else None
    if judgement.fault is Fault.LINK_LIMITED and isinstance(hop, Hop):
        yield port_setting(hop)
    yield from own_link(box, subject, judgement)


CHECKS = (
    Check(
        id="pcie.generation",
        rule="Warns if GPU and slot together support a lower generation than the profile expects, and if the link is at"
        " a lower generation than both support while the GPU is under load: in P0, not idle, with utilisation or a"
        " process, or while copies are measured. A lower generation on an idle GPU is not judged.",
        source="nvmlDeviceGetMaxPcieLinkGeneration and max_link_speed of both ends against"
        " nvmlDeviceGetCurrPcieLinkGeneration and the profile's pcie.link_gen; nvidia-smi(1) on idle links",
        remedy="set the slot's link speed to automatic in the firmware setup",
        judge=_generation,
        blames=_blames,
        shared=host_if_all("PCIe setting"),
    ),
)
