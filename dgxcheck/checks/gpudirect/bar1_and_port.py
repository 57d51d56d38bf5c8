"""GPUDirect RDMA: the GPU's window to the bus, and the HCA's port."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.driver.loaded import bound
from dgxcheck.checks.engine.box import HOST, Box, nvml_unavailable, row_of
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.precondition import Said, elsewhere, unsaid
from dgxcheck.checks.gpu.presence import LOST, unlisted
from dgxcheck.checks.gpudirect.preconditions import no_rdma
from dgxcheck.checks.network.ports import file_of, gbit_per_s, name_of, port_subject, ports
from dgxcheck.facts.gpu import GpuMemory, GpuPcie
from dgxcheck.facts.infiniband import IbPort
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import PciBars
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]
MIB = 1 << 20


def held(box: Box, gpu: Device) -> Said:
    """Has NVIDIA's driver the GPU, and can programs get it from it?"""
    if gpu.index is not None:
        return Said("ready", Judgement(Status.PASS, "NVML lists it"))
    driver = bound(gpu)
    if not isinstance(driver, Missing) and driver != "nvidia":
        return Said("no", skip("not-visible", f"bound to {driver or 'no driver'}, not to nvidia"))
    judgement = nvml_unavailable(box) or unlisted(box, gpu)
    return elsewhere("no", judgement.message, LOST) if judgement.status is Status.FAIL else Said("?", judgement)


def bar1(box: Box, gpu: Device) -> Said:
    """Can the HCA reach all of the GPU's memory through BAR1, and is there room left in it?"""
    row = row_of(box.snapshot.bars, gpu.bdf)
    if isinstance(row, Judgement):
        return Said("?", row)
    if isinstance(row, Missing):
        return unsaid(row)
    assert isinstance(row, PciBars)
    if isinstance(row.bar1, Missing):
        return unsaid(row.bar1)
    if not row.bar1.assigned:
        return elsewhere("no", "BAR1 is not assigned", "pcie.bar1")
    size = row.bar1.size
    if isinstance(size, Missing):
        return unsaid(size)
    board = box.board(gpu)
    due = board.numbers.get("bar1") if board is not None else None
    if due is not None and size < due.value * MIB:
        return elsewhere("no", f"BAR1 has {size // MIB} MiB only", "pcie.bar1")
    evidence = Evidence(f"/sys/bus/pci/devices/{gpu.bdf}/resource", size)
    used = _used(box, gpu)
    limit = box.settings.limit("gdr.bar1-used")
    most = size * limit / 100
    if isinstance(used, int) and used > most:
        message = f"{used // MIB} of {size // MIB} MiB of BAR1 are taken"
        said = answered(used, "nvmlDeviceGetBAR1MemoryInfo", row.bdf)
        return Said("slow", Judgement(Status.WARN, message, used // MIB, int(most) // MIB, "MiB", (evidence, said)))
    memory = row_of(box.snapshot.gpu_memory, gpu.bdf)
    total = memory.total if isinstance(memory, GpuMemory) else None
    if isinstance(total, int) and size < total:
        message = f"BAR1 shows {size // MIB} of {total // MIB} MiB at a time"
        return Said("slow", Judgement(Status.PASS, message, size // MIB, unit="MiB", evidence=(evidence,)))
    known = isinstance(total, int)
    message = f"BAR1 of {size // MIB} MiB" + (" shows all of the GPU's memory" if known else "")
    whole = Judgement(Status.PASS, message, size // MIB, unit="MiB", evidence=(evidence,))
    if isinstance(used, Missing):
        return Said("?", whole, f"how much of BAR1 is taken is not known: {used.where}: {used}")
    return Said("ready" if known or due is not None else "?", whole)


def _used(box: Box, gpu: Device) -> int | Missing | None:
    """Bytes; None for a board whose driver does not count them."""
    row = row_of(box.snapshot.gpu_pcie, gpu.bdf)
    used = row.bar1_used if isinstance(row, GpuPcie) else row
    if isinstance(used, Judgement):
        return Missing(Gap.UNRECORDED, f"nvmlDeviceGetBAR1MemoryInfo {gpu.bdf}")
    return None if isinstance(used, Missing) and used.gap is Gap.UNSUPPORTED else used


def of_hca(box: Box, nic: Device) -> list[IbPort] | Missing | Judgement:
    """The ports of one HCA."""
    rows = box.snapshot.ib_ports
    if isinstance(rows, Missing):
        return rows
    row = next((each for each in rows if each.device == nic.name), None)
    return skip("not-recorded", f"the ports of {nic.name} are not known") if row is None else (
        row.ports if isinstance(row.ports, Missing) else [*row.ports]
    )  # fmt: skip


def port(box: Box, nic: Device) -> Said:
    """Is a port of this HCA up?"""
    found = of_hca(box, nic)
    if isinstance(found, Judgement):
        return Said("?", found)
    if isinstance(found, Missing):
        return unsaid(found)
    rates = [(each, gbit_per_s(each)) for each in found]
    up = next((each for each, rate in rates if isinstance(rate, float) and rate), None)
    if up is not None:
        return Said("ready", _of_port(up))
    gap = next((rate for _, rate in rates if isinstance(rate, Missing)), None)
    if gap is not None:
        return unsaid(gap)
    return elsewhere("no", f"no port of {nic.name} is ACTIVE", "network.port-state")


def rate_gbs(box: Box, nic: Device) -> float | None:
    """GB/s of the fastest port that is up."""
    found = of_hca(box, nic)
    if isinstance(found, Missing | Judgement):
        return None
    rates = [rate for rate in map(gbit_per_s, found) if isinstance(rate, float)]
    return max(rates, default=0.0) / 8 or None


def _of_port(port: IbPort) -> Judgement:
    if isinstance(port.state, Missing):
        return unsaid(port.state).judgement
    rate = gbit_per_s(port)
    evidence = (Evidence(file_of(port, "state"), f"{int(port.state)}: {port.state.name}"),)
    if isinstance(rate, Missing):
        return unjudged(rate)
    if not rate:
        return skip("dependency-failed", f"the port is {port.state.name}: see network.port-state", *evidence)
    message = f"{name_of(port)} is {port.state.name} at {rate:g} Gb/s, {port.link_layer}"
    return Judgement(Status.PASS, message, port.state.name, "ACTIVE", evidence=evidence)


def _bar1(box: Box) -> Judged:
    if (nothing := no_rdma(box)) is not None:
        yield HOST, nothing
        return
    for gpu in box.gpus:
        yield box.subject(gpu), bar1(box, gpu).judgement


def _port(box: Box) -> Judged:
    found = ports(box)
    if (nothing := no_rdma(box)) is not None or isinstance(found, Judgement):
        yield HOST, nothing or (found if isinstance(found, Judgement) else skip("not-supported", "no port is here"))
        return
    for device, each in found:
        yield port_subject(device, each), _of_port(each)


CHECKS = (
    Check(
        id="gdr.bar1",
        rule="Warns where more than {gdr.bar1-used} of BAR1 are taken: nothing more can be registered then. A BAR1"
        " smaller than the model's, or not assigned, is pcie.bar1's.",
        source="resource of /sys/bus/pci/devices, nvmlDeviceGetBAR1MemoryInfo; https://docs.nvidia.com/cuda/gpudirect-rdma",
        remedy="find the process that has registered so much memory, and end it",
        judge=_bar1,
    ),
    Check(
        id="gdr.port",
        rule="Passes for a port that is ACTIVE; what is wrong with one that is not is network.port-state's.",
        source="state and rate of /sys/class/infiniband/*/ports/*",
        remedy="see network.port-state",
        judge=_port,
    ),
)
