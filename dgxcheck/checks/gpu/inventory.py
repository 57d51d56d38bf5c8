"""The models of GPUs and their memory, and whether their InfoROMs are valid; their number is judged in ``count``."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box, gpu_unavailable, mig_enabled
from dgxcheck.checks.engine.check import Check, host_if_all, part, per_gpu, per_listed_gpu, ruled
from dgxcheck.checks.engine.expected import is_coherent, siblings
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, answered, counted, judged, of_gaps, skip
from dgxcheck.checks.engine.host_limits import guests_running
from dgxcheck.checks.gpu import count
from dgxcheck.checks.gpu.count import NO_REFERENCE
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import MIB, NvmlReturn
from dgxcheck.facts.missing import Gap, Missing, need
from dgxcheck.facts.nvml.gpu import GpuBoard
from dgxcheck.facts.nvml.readings import GpuMemory
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.profiles.library import board_id
from dgxcheck.topology.model import Device


def _model(box: Box, gpu: Device) -> Judgement:
    choice = box.choice
    if choice is None or choice.how == "gpus" or not choice.profile.boards:
        return NO_REFERENCE
    evidence = _pci_id(box, gpu)
    model = str(evidence.value)
    name = f" ({box.boards[model].name})" if model in box.boards else ""
    boards = (*choice.profile.boards, *choice.profile.beside)
    expected, wrong = ", ".join(boards), model not in boards
    message = f"model {model}{name}" + (f", expected {expected} ({choice.profile.title})" if wrong else "")
    return judged(Fault.WRONG_MODEL, message, model, expected, evidence=(evidence,), fails=wrong)


def _pci_id(box: Box, gpu: Device) -> Evidence:
    """``10de:1db1``, from sysfs, else from NVML."""
    where = pci_file(gpu.bdf, "device")
    if ids := board_id(gpu):
        return Evidence(where, ids)
    boards = need(box.snapshot.gpu_board)
    number = need(next((row.pci_device_id for row in boards if row.bdf == gpu.bdf), Missing(Gap.ABSENT, where)))
    return answered(f"{number & 0xFFFF:04x}:{number >> 16:04x}", "nvmlDeviceGetPciInfo", gpu.bdf or "")


def short(box: Box, mib: float, expected: float) -> bool:
    """Is memory (both in MiB) smaller than expected by more than the driver's reserve explains?"""
    return mib < expected * (1 - box.settings.limit("gpu.memory-size") / 100)


def _memory(box: Box, memory: GpuMemory) -> Judgement:
    """Fails if a GPU has less memory than its model by more than {gpu.memory-size}; only warns if the reference machine
    is not known.

    Source: nvmlDeviceGetMemoryInfo against the board's size; drivers up to R470 do not count their reserve
    """
    board = box.board(box.at(memory.bdf))
    expected = board.numbers.get("memory") if board is not None else None
    if board is None or expected is None:
        return skip("no-reference", "the memory size of this model is not known")
    total = need(memory.total)
    evidence = (answered({"total": total}, "nvmlDeviceGetMemoryInfo", memory.bdf),)
    message = f"memory {round(total / MIB)} MiB, expected {expected.value} MiB ({board.name})"
    small = short(box, total / MIB, expected.value)
    facts, fails = (round(total / MIB), expected.value, "MiB", evidence), small and box.is_known
    return judged(Fault.MEMORY_SIZE, message, *facts, warns=small, fails=fails)


def _inforom(box: Box) -> Judged:
    """Fails if NVML reports a corrupted InfoROM in answer to any query; warns if the InfoROM has no image version and
    other GPUs of the model have one.

    Source: NVML_ERROR_CORRUPTED_INFOROM; nvmlDeviceGetInforomImageVersion; https://github.com/NVIDIA/DCGM/issues/2
    """
    corrupted = [gap for gap in box.gaps if gap.code == NvmlReturn.CORRUPTED_INFOROM]
    for gpu in box.gpus:
        own = [gap for gap in corrupted if gpu.bdf in gap.where.split()]
        yield box.subject(gpu), gpu_unavailable(box, gpu) or ruled(_image, box, gpu, own)


def _image(box: Box, gpu: Device, corrupted: list[Missing]) -> Judgement | Missing:
    if corrupted:
        message = f"InfoROM corrupted; reported by {corrupted[0].where}"
        return judged(Fault.INFOROM, message, evidence=of_gaps(corrupted), fails=True)
    board = need(box.gpu(gpu).board)
    version = board.inforom_image
    if isinstance(version, str):
        evidence = answered(version, "nvmlDeviceGetInforomImageVersion", board.bdf)
        valid = " is valid" if board.inforom_valid is True else ""
        return Judgement(Status.PASS, f"InfoROM image version {version}{valid}", version, evidence=(evidence,))
    others = [row.inforom_image for other in siblings(box, gpu) if isinstance(row := box.gpu(other).board, GpuBoard)]
    usual = next((image for image in others if isinstance(image, str)), None)
    if version.gap not in (Gap.UNSUPPORTED, Gap.ABSENT) or usual is None:
        return version
    evidence = answered(version.reason, "nvmlDeviceGetInforomImageVersion", board.bdf)
    message = f"the InfoROM has no image version, others of the model have {usual}"
    return Judgement(Status.WARN, message, None, usual, evidence=(evidence,), fault=Fault.INFOROM)


_SHARED = frozenset({2, 3, 4})
"""``nvmlGpuVirtualizationMode_t`` of GPUs whose memory virtual machines have."""


def _held(box: Box, gpu: Device) -> Judgement:
    """Warns if more than {gpu.memory-held} of an idle GPU are in use while NVML lists no process on it. Not judged in
    containers, whose namespaces hide processes, in MIG mode, or where virtual machines or the kernel (as a NUMA node)
    hold the memory.

    Source: nvmlDeviceGetMemoryInfo, nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetGraphicsRunningProcesses

    Memory of a GPU that idles, and of which NVML lists no process, as it does for all namespaces of a host.
    """
    view = box.gpu(gpu)
    memory, activity, board = need(view.memory), need(view.processes), need(view.board)
    used, processes = need(memory.used), [*need(activity.compute), *need(activity.graphics)]
    evidence = (answered(used, "nvmlDeviceGetMemoryInfo", memory.bdf),)
    figures = (used // MIB, box.settings.limit("gpu.memory-held"), "MiB", evidence)
    if processes or used <= figures[1] * MIB:
        by = counted(len(processes), "process", "processes")
        return Judgement(Status.PASS, f"{used // MIB} MiB in use, {by}", *figures)
    why = (
        "processes of other namespaces are not shown" if box.snapshot.known_host.container is not None else
        "the kernel holds its memory as a NUMA node" if is_coherent(box) or isinstance(gpu.gpu_numa_id, int) else
        "MIG instances account for their own" if mig_enabled(box, gpu.bdf) else
        "virtual machines hold it" if board.virtualization in _SHARED or guests_running(box) else
        "it is busy" if need(activity.gpu_percent) else ""
    )  # fmt: skip
    if why:
        return skip("not-visible", f"{used // MIB} MiB in use without a process: {why}", *evidence)
    message = f"{used // MIB} MiB in use, though it idles and no process has a context on it"
    return Judgement(Status.WARN, message, *figures, fault=Fault.MEMORY_HELD)


def _models(box: Box) -> Judged:
    """Fails if a GPU is of a model that the reference machine does not ship with.

    Source: PCI vendor and device id against the profile
    """
    return ((box.subject(gpu), ruled(_model, box, gpu)) for gpu in box.gpus)


CHECKS = (
    count.CHECK,
    Check("gpu.model", _models, part("model")),
    Check("gpu.memory-size", per_gpu("gpu_memory", _memory), part("memory"), host_if_all("memory size of GPUs")),
    Check("gpu.memory-held", per_listed_gpu(_held), part("memory in use")),
    Check("gpu.inforom", _inforom, part("InfoROM")),
)  # fmt: skip
