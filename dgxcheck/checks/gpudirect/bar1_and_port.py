"""GPUDirect RDMA: the GPU's BAR1, and the HCA's port."""

from __future__ import annotations

from dgxcheck.checks.driver.loaded import bound
from dgxcheck.checks.engine.blame import part, setting_of_all
from dgxcheck.checks.engine.box import Box, nvml_unavailable
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.expected import is_coherent
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, answered, given, judged, skip, unless
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.precondition import Precondition, fails_elsewhere, needs_facts, undetermined
from dgxcheck.checks.gpu.presence import unlisted
from dgxcheck.checks.gpudirect.preconditions import no_rdma
from dgxcheck.checks.network.ports import file_of, gbit_per_s, name_of, port_subject, ports, ports_of
from dgxcheck.checks.pcie.bar1 import bars_of, expected_bar1_mib
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import MIB
from dgxcheck.facts.infiniband import IbPort
from dgxcheck.facts.missing import Gap, Missing, need, rows
from dgxcheck.facts.record import replace
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.topology.model import Device


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
    pcie = box.gpu(gpu).pcie
    used = pcie if isinstance(pcie, Missing) else pcie.bar1_used
    percent = box.settings.limit("gdr.bar1-used")
    most = size * percent / 100
    if isinstance(used, int) and used > most:
        message = f"{used // MIB} of {mib} MiB of BAR1 in use, at most {percent:g} % expected"
        nvml = answered(used, "nvmlDeviceGetBAR1MemoryInfo", gpu.bdf or "")
        facts = (used // MIB, int(most) // MIB, "MiB", (evidence, nvml))
        return Precondition("slow", judged(Fault.BAR1_FULL, message, *facts, warns=True))
    memory = box.gpu(gpu).memory
    total = None if isinstance(memory, Missing) or isinstance(memory.total, Missing) else memory.total
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


@needs_facts
def port(box: Box, nic: Device) -> Precondition:
    """Is a port of this HCA up?"""
    rates = [(port, gbit_per_s(port)) for port in need(ports_of(box, nic.name))]
    if (up := next((port for port, rate in rates if isinstance(rate, float) and rate), None)) is not None:
        return Precondition("ready", _state(up))
    for _, rate in rates:
        need(rate)
    return fails_elsewhere(f"no port of {nic.name} is ACTIVE", "network.port-state")


def port_gbs(box: Box, nic: Device) -> float | None:
    """GB/s of the fastest port that is up; None where none is known to be up."""
    rates = [gbit_per_s(port) for port in rows(ports_of(box, nic.name))]
    return max((rate for rate in rates if isinstance(rate, float)), default=0.0) / 8 or None


def _state(port: IbPort) -> Judgement:
    if isinstance(port.state, Missing):
        return undetermined(port.state).judgement
    rate = gbit_per_s(port)
    evidence = (Evidence(file_of(port, "state"), f"{int(port.state)}: {port.state.name}"),)
    if isinstance(rate, Missing):
        return unjudged(rate)
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
    yield from ((port_subject(device, port), _state(port)) for device, port in given(ports(box)))


CHECKS = (
    Check("gdr.bar1", _bar1, part("BAR1"), setting_of_all("BAR1"),
        remedy="find the process that registered so much memory (nvidia-smi --query-compute-apps=pid,name --format=csv)"
        " and terminate it"),
    Check("gdr.port", _port, remedy="see network.port-state"),
)  # fmt: skip
