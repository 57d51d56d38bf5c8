"""Are the GPUs those of the reference machine: how many, which model, how much memory?"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.driver.loaded import bound
from dgxcheck.checks.engine import visibility
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.per_gpu import per_gpu
from dgxcheck.facts.gpu import GpuMemory
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]
NO_REFERENCE = skip("no-reference", "no reference machine is known for this box")
MIB = 1 << 20
_PCI = "/sys/bus/pci/devices"


def expected_by(box: Box, worst: Status) -> Status:
    """``worst`` where the machine is known; a warning where only its GPUs are."""
    return worst if box.choice is not None and box.choice.how != "gpus" else Status.WARN


def count(box: Box) -> int | Missing:
    """GPUs of the machine, those of another driver too; Missing where a container or virtual machine hides some."""
    if why := visibility.gpus_hidden(box):
        return Missing(Gap.ABSENT, _PCI, why)
    if isinstance(box.snapshot.pci, Missing) and not _listed(box):
        return box.snapshot.pci
    return max(len(_there(box)), _listed(box))


def _listed(box: Box) -> int:
    """An index without a handle is a GPU that gpu.lost names."""
    return 0 if isinstance(box.nvml, Missing) or isinstance(box.nvml.count, Missing) else box.nvml.count


def _there(box: Box) -> list[Device]:
    """A GPU that no driver took is as good as none."""
    return [
        gpu
        for gpu in box.topology.gpus
        if isinstance(box.nvml, Missing) or gpu.index is not None or bound(gpu) is not None
    ]


def _count(box: Box) -> Judged:
    yield HOST, _count_judged(box)


def _count_judged(box: Box) -> Judgement:
    choice = box.choice
    nvml, pci = box.nvml, box.snapshot.pci
    listed = _listed(box)
    why = visibility.gpus_hidden(box)
    if not box.topology.gpus and not listed and (choice is None or (choice.how != "named" and why)):
        if isinstance(nvml, Missing) and isinstance(pci, Missing) and nvml.gap is pci.gap is Gap.UNRECORDED:
            return unjudged(nvml)  # figures that were imported without their box
        seen = (Evidence(_PCI, pci.reason if isinstance(pci, Missing) else "no NVIDIA GPU"),)
        message = "no NVIDIA GPU is visible here, and no profile was named"
        return Judgement(Status.UNKNOWN, message, 0, None, "GPUs", seen)
    if choice is None or choice.how == "gpus" or (due := choice.number("gpu.count")) is None:
        return NO_REFERENCE
    if why:
        return skip("not-visible", why)
    found = count(box)
    if isinstance(found, Missing):
        return unjudged(found)
    there = _there(box)
    idle = [str(gpu.bdf) for gpu in box.topology.gpus if gpu not in there]
    on_pci: list[Json] = [gpu.bdf for gpu in box.topology.gpus]
    evidence = (
        Evidence(_PCI, on_pci),
        Evidence("nvmlDeviceGetCount", listed if not isinstance(nvml, Missing) else nvml.reason),
    )
    status = Status.FAIL if found < due.value else Status.PASS
    untaken = f"; no driver took {', '.join(idle)}" if idle else ""
    message = f"GPUs found: {found}, {choice.profile.title} has {due.value:g}{untaken}"
    return Judgement(status, message, found, due.value, "GPUs", evidence)


def _model(box: Box) -> Judged:
    for gpu in box.gpus:
        yield box.subject(gpu), _model_judged(box, gpu)


def _model_judged(box: Box, gpu: Device) -> Judgement:
    choice = box.choice
    if choice is None or choice.how == "gpus" or not choice.profile.boards:
        return NO_REFERENCE
    said = _pci_id(box, gpu)
    if isinstance(said, Missing):
        return unjudged(said)
    found = str(said.value)
    name = f" ({box.boards[found].name})" if found in box.boards else ""
    known = ", ".join(choice.profile.boards)
    if found in choice.profile.boards:
        return Judgement(Status.PASS, f"model {found}{name}", found, known, evidence=(said,))
    message = f"model {found}{name}, {choice.profile.title} has {known}"
    return Judgement(expected_by(box, Status.FAIL), message, found, known, evidence=(said,))


def _pci_id(box: Box, gpu: Device) -> Evidence | Missing:
    """``10de:1db1``, from the PCI tree, else from NVML."""
    function = gpu.function
    if function is not None and not isinstance(function.vendor, Missing) and not isinstance(function.device, Missing):
        return Evidence(f"/sys/bus/pci/devices/{gpu.bdf}/device", f"{function.vendor:04x}:{function.device:04x}")
    rows = box.snapshot.gpu_board
    if isinstance(rows, Missing):
        return rows
    said = next((row.pci_device_id for row in rows if row.bdf == gpu.bdf), None)
    if said is None:
        return Missing(Gap.ABSENT, f"/sys/bus/pci/devices/{gpu.bdf}/device")
    if isinstance(said, Missing):
        return said
    return answered(f"{said & 0xFFFF:04x}:{said >> 16:04x}", "nvmlDeviceGetPciInfo", gpu.bdf or "")


def short(box: Box, mib: float, due: float) -> bool:
    """Is it less memory, both in MiB, than the driver's reserve explains?"""
    return mib < due * (1 - box.settings.limit("gpu.memory-size") / 100)


def _memory(box: Box, memory: GpuMemory) -> Judgement | Missing:
    gpu = next(each for each in box.topology.gpus if each.bdf == memory.bdf)
    board = box.board(gpu)
    due = board.numbers.get("memory") if board is not None else None
    if board is None or due is None:
        return skip("no-reference", "the size of this model's memory is not known")
    if isinstance(memory.total, Missing):
        return memory.total
    size = round(memory.total / MIB)
    evidence = (answered({"total": memory.total}, "nvmlDeviceGetMemoryInfo", memory.bdf),)
    message = f"memory {size} MiB, {board.name} has {due.value} MiB"
    status = expected_by(box, Status.FAIL) if short(box, memory.total / MIB, due.value) else Status.PASS
    return Judgement(status, message, size, due.value, "MiB", evidence)


CHECKS = (
    Check(
        id="gpu.count",
        rule="Fails where the host itself has fewer GPUs than its reference machine; containers and virtual machines"
        " see those that they were given and are not judged, nor is a box of which only the GPUs are known. Unknown"
        " where no GPU is visible at all and no profile was named.",
        source="GPUs of /sys/bus/pci/devices and nvmlDeviceGetCount against the profile",
        remedy="power the machine off, reseat the missing GPU or its tray, and look at the firmware's PCI settings",
        judge=_count,
    ),
    Check(
        id="gpu.model",
        rule="Fails where a GPU is of a model that the reference machine was not sold with; warns where only the GPUs"
        " of the box are known.",
        source="vendor and device id against the profile",
        remedy="replace the GPU by one of the machine's model, or name another profile",
        judge=_model,
    ),
    Check(
        id="gpu.memory-size",
        rule="Fails where a GPU has less memory than its model by more than {gpu.memory-size}; warns where the"
        " reference machine is not known.",
        source="nvmlDeviceGetMemoryInfo against the board's size; drivers up to R470 keep their reserve out of it",
        remedy="reboot; if it stays, run the vendor's field diagnostic and ask for a replacement",
        judge=per_gpu("gpu_memory", _memory),
    ),
)
