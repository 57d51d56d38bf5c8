"""The PCIe generation of each GPU's link, and its BAR1."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import Box, gpu_unavailable, row_of
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.under_load import under_load
from dgxcheck.checks.pcie.width import own_hop
from dgxcheck.facts.gpu import GpuActivity, GpuClocks, GpuMemory, GpuPcie
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import PciBars
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]
IDLE = 0x1
"""``nvmlClocksEventReasonGpuIdle``"""
MIB = 1 << 20


def _generation(box: Box) -> Judged:
    for gpu in box.gpus:
        yield box.subject(gpu), gpu_unavailable(box, gpu) or _trained(box, gpu)


def _trained(box: Box, gpu: Device) -> Judgement:
    row = row_of(box.snapshot.gpu_pcie, gpu.bdf)
    if not isinstance(row, GpuPcie):
        return unjudged(row) if isinstance(row, Missing) else skip("not-recorded", "nothing is known of its link")
    together = _together(box, gpu, row)
    if isinstance(together, Missing):
        return unjudged(together)
    due = _due(box)
    evidence: tuple[Evidence, ...] = (
        answered(_shown(row.max_link_gen), "nvmlDeviceGetMaxPcieLinkGeneration", row.bdf),
        answered(_shown(row.link_gen), "nvmlDeviceGetCurrPcieLinkGeneration", row.bdf),
    )
    if due is not None and together < due:
        message = f"GPU and slot can do gen{together} together, the profile says gen{due}"
        return Judgement(Status.WARN, message, together, due, "generation", evidence)
    loaded = under_load(box, row.bdf, "link_gen")
    now = row.link_gen if loaded is None else loaded[0]
    evidence = evidence if loaded is None else (*evidence, loaded[1])
    if isinstance(now, Missing):
        return unjudged(now)
    message = f"link runs at gen{now}, GPU and slot can do gen{together}"
    if now >= together:
        return Judgement(Status.PASS, message, now, together, "generation", evidence)
    if loaded is None and not _loaded(box, row.bdf):
        return skip("not-in-level", f"{message}: the GPU is not under load, so that is no fault", *evidence)
    return Judgement(Status.WARN, f"{message}, under load", now, together, "generation", evidence)


def _together(box: Box, gpu: Device, row: GpuPcie) -> int | Missing:
    """The lower of what NVML and the two ends of the link say."""
    hop = own_hop(box, gpu.path)
    seen = [row.max_link_gen]
    if not isinstance(hop, Judgement) and not hop.unjudged:
        seen.append(hop.max_gen)
    known = [each for each in seen if not isinstance(each, Missing)]
    return min(known) if known else seen[0]


def _due(box: Box) -> int | None:
    """The profile's generation; a fast card in an older host is no fault, so without a profile none is expected."""
    number = box.choice.number("pcie.link_gen") if box.choice else None
    return None if number is None else int(number.value)


def _loaded(box: Box, bdf: str) -> bool:
    """In P0, not idle, and with something that runs: only then is the link at its speed."""
    clocks = row_of(box.snapshot.gpu_clocks, bdf)
    activity = row_of(box.snapshot.gpu_processes, bdf)
    if not isinstance(clocks, GpuClocks) or not isinstance(activity, GpuActivity):
        return False
    reasons = clocks.reasons
    if clocks.performance_state != 0 or isinstance(reasons, Missing) or reasons.mask & IDLE:
        return False
    used = not isinstance(activity.gpu_percent, Missing) and activity.gpu_percent > 0
    return used or (not isinstance(activity.compute, Missing) and len(activity.compute) > 0)


def _bar1(box: Box) -> Judged:
    for gpu in box.gpus:
        yield box.subject(gpu), _window(box, gpu)


def _window(box: Box, gpu: Device) -> Judgement:
    row = row_of(box.snapshot.bars, gpu.bdf)
    if not isinstance(row, PciBars):
        return unjudged(row) if isinstance(row, Missing) else row
    bar = row.bar1
    if isinstance(bar, Missing):
        return unjudged(bar)
    where = f"/sys/bus/pci/devices/{gpu.bdf}/resource"
    if not bar.assigned:
        return Judgement(Status.FAIL, "BAR1 is not assigned", 0, unit="MiB", evidence=(Evidence(where, bar.start),))
    if isinstance(bar.size, Missing):
        return unjudged(bar.size)
    size = bar.size // MIB
    evidence = [Evidence(where, bar.size)]
    nvml = row_of(box.snapshot.gpu_pcie, gpu.bdf)
    total = nvml.bar1_total if isinstance(nvml, GpuPcie) else Missing(Gap.UNRECORDED, "nvmlDeviceGetBAR1MemoryInfo")
    if not isinstance(total, Missing):
        evidence.append(answered(total, "nvmlDeviceGetBAR1MemoryInfo", row.bdf))
    board = box.board(gpu)
    due = board.numbers.get("bar1") if board is not None else None
    if due is not None and size < due.value:
        small = size <= box.settings.limit("pcie.bar1-small") and due.value >= box.settings.limit("pcie.bar1-large")
        status = Status.FAIL if small else Status.WARN
        message = f"BAR1 of {size} MiB, {due.value:g} MiB expected of this model{_memory(box, gpu)}"
        return Judgement(status, message, size, due.value, "MiB", tuple(evidence))
    expected = due.value if due is not None else None
    if not isinstance(total, Missing) and total != bar.size:
        message = f"BAR1 of {size} MiB on the PCI bus, {total // MIB} MiB by NVML"
        return Judgement(Status.WARN, message, total // MIB, size, "MiB", tuple(evidence))
    known = "" if due is not None else ", no size is on record for this model"
    return Judgement(Status.PASS, f"BAR1 of {size} MiB{known}", size, expected, "MiB", tuple(evidence))


def _memory(box: Box, gpu: Device) -> str:
    row = row_of(box.snapshot.gpu_memory, gpu.bdf)
    if not isinstance(row, GpuMemory) or isinstance(row.total, Missing):
        return ""
    return f", which has {row.total // MIB} MiB of memory"


def _shown(value: int | Missing) -> int | str:
    return value.reason if isinstance(value, Missing) else value


CHECKS = (
    Check(
        id="pcie.generation",
        rule="Warns where GPU and slot together can do a lower generation than the profile or the GPU's model has, or"
        " without either the GPU alone; and where the link runs below what both can do while the GPU is under load:"
        " in P0, not idle, with utilisation or a process, or while copies were measured. A slower link of an idle GPU"
        " is not judged.",
        source="nvmlDeviceGetMaxPcieLinkGeneration and max_link_speed of both ends against"
        " nvmlDeviceGetGpuMaxPcieLinkGeneration; nvidia-smi's manual on idle links",
        remedy="set the slot's link speed in the firmware to automatic; then reseat the GPU, its tray or riser",
        judge=_generation,
    ),
    Check(
        id="pcie.bar1",
        rule="Fails where BAR1 is not assigned, or is no more than {pcie.bar1-small} on a model that has at least"
        " {pcie.bar1-large}; warns where it is smaller than the model's otherwise, or where NVML and the PCI bus give"
        " different sizes.",
        source="resource of /sys/bus/pci/devices, nvmlDeviceGetBAR1MemoryInfo; GPUDirect RDMA guide on large BARs",
        remedy="enable decoding above 4 GB and a large MMIO range in the firmware; then try pci=realloc",
        judge=_bar1,
    ),
)
