"""The number of GPUs: that of the machine, of its boards, or of what stands beside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from dgxcheck.checks.driver.loaded import bound
from dgxcheck.checks.engine import host_limits
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, per_host, remedy_of
from dgxcheck.checks.engine.expected import gpus_of_a_board, is_coherent, model_family
from dgxcheck.checks.engine.finding import (
    Evidence,
    Judgement,
    Status,
    Subject,
    answered,
    as_evidence,
    counted,
    judged,
    skip,
)
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.host_limits import minors_gone, missing_socket
from dgxcheck.checks.placement.missing import missing, unlike_other_switches
from dgxcheck.components.component import Component
from dgxcheck.components.locate import device_part
from dgxcheck.facts.bdf import gpu_at
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.host import Modules, NvidiaDriver
from dgxcheck.facts.ids import CONTROLLER_3D, NVIDIA, NvmlReturn
from dgxcheck.facts.missing import Gap, Json, Missing, need, rows, text_of
from dgxcheck.facts.record import replace
from dgxcheck.facts.sysfs import PCI_DEVICES, pci_file
from dgxcheck.profiles.model import Number
from dgxcheck.topology.model import Device
from dgxcheck.topology.nvlinks import nvswitches

NO_REFERENCE = skip("no-reference", "no matching reference machine")


def count(box: Box) -> int | Missing:
    """GPUs of the machine, those of another driver too, none beside those that its reference counts; Missing if a
    container or virtual machine hides some."""
    if why := host_limits.gpus_hidden(box):
        return Missing(Gap.ABSENT, PCI_DEVICES, why)
    if isinstance(box.snapshot.pci, Missing) and not _listed(box):
        return box.snapshot.pci
    its = box.reference_gpus
    beside = [gpu for gpu in box.topology.gpus if gpu not in its]
    counted_by_nvml = _listed(box) - sum(gpu.index is not None for gpu in beside)
    return max(sum(gpu in its for gpu in _with_driver(box)), counted_by_nvml)


def _listed(box: Box) -> int:
    """GPUs that NVML enumerates, those too that it cannot open: these gpu.lost reports."""
    return 0 if isinstance(box.nvml, Missing) or isinstance(box.nvml.count, Missing) else box.nvml.count


def _with_driver(box: Box) -> list[Device]:
    """GPUs on PCI. One that no driver holds while NVML works does not count: its driver could not start it."""
    gpus, nvml = box.topology.gpus, box.nvml
    return [gpu for gpu in gpus if isinstance(nvml, Missing) or gpu.index is not None or bound(gpu) is not None]


def _count_judgement(box: Box) -> Judgement:
    """Fails if the machine has fewer GPUs than its reference machine, or than the board of its NVSwitches; without one,
    if a minor number is left that the driver has given to no GPU, if a CPU of Grace has fewer GPUs than another, or if
    none is on PCI while the NVIDIA driver is loaded, which does not stay loaded where it finds none. Not judged in
    containers and, but for minor numbers, in virtual machines, which see only the GPUs assigned to them. Unknown if no
    GPU is visible at all and no profile was named.

    Source: GPUs in /sys/bus/pci/devices and nvmlDeviceGetCount against the profile, nvmlDeviceGetMinorNumber and
    numa_node
    """
    choice = box.choice
    nvml, pci = box.nvml, box.snapshot.pci
    listed = _listed(box)
    why = host_limits.gpus_hidden(box)
    if not box.topology.gpus and not listed and (choice is None or (choice.how != "named" and why)):
        if isinstance(nvml, Missing) and isinstance(pci, Missing) and pci.gap is Gap.UNRECORDED:
            # figures that were imported without their box, or a failure of NVML alone
            unavailable = skip("dependency-failed", f"NVML is not available: {nvml}")
            return unjudged(nvml) if nvml.gap is Gap.UNRECORDED else unavailable
        if (gap := box.topology.nameless) is not None:
            return unjudged(gap)
        none = Evidence(PCI_DEVICES, pci.reason if isinstance(pci, Missing) else "no NVIDIA GPU")
        driver = box.snapshot.modules.driver if isinstance(box.snapshot.modules, Modules) else None
        seen = not isinstance(pci, Missing) and not _is_tegra(box)
        seen = seen and not (isinstance(nvml, Missing) and nvml.code == NvmlReturn.DRIVER_NOT_LOADED)
        if seen and not why and isinstance(driver, NvidiaDriver):
            message = "no NVIDIA GPU is on PCI, and their driver is loaded: it found some at its start"
            evidence = (none, Evidence("/proc/driver/nvidia/version", driver.version))
            return judged(Fault.GPU_MISSING, message, 0, None, "GPUs", evidence, fails=True)
        message = f"no NVIDIA GPU is visible, and no profile was named{_of_others(box)}"
        return Judgement(Status.UNKNOWN, message, 0, None, "GPUs", (none,), remedy=remedy_of("gpu.count", "none"))
    if choice is None or (number := expected_count(box)) is None:
        unlike = () if why else (_of_boards, _of_switches, _of_superchips, _of_unseen_machine)
        return next(filter(None, (rule(box) for rule in (_fewer_than_there_were, *unlike))), NO_REFERENCE)
    if why:
        return skip("not-visible", why)
    present = need(count(box))
    unbound = [str(gpu.bdf) for gpu in box.topology.gpus if gpu not in _with_driver(box)]
    on_pci: list[Json] = [gpu.bdf for gpu in box.topology.gpus]
    count_of_nvml = nvml.reason if isinstance(nvml, Missing) else listed
    evidence = (Evidence(PCI_DEVICES, on_pci), Evidence("nvmlDeviceGetCount", count_of_nvml))
    note = f"; bound to no driver: {', '.join(unbound)}" if unbound else ""
    of_what = f"whole boards, {choice.profile.name}" if choice.how == "gpus" else choice.profile.title
    message = f"{present} of {counted(int(number.value), 'GPU')} found ({of_what}){note}"
    return judged(Fault.GPU_MISSING, message, present, number.value, "GPUs", evidence, fails=present < number.value)


def expected_count(box: Box) -> Number | None:
    """The number of GPUs of the reference machine. Where only its GPUs are known, that of boards with all their GPUs,
    which they have in whoever's machine: by the NVSwitches on PCI, or the adapters that lead to them, else by model."""
    number = box.number("gpu.count")
    if number is None or not box.guessed:
        return number
    if host_limits.gpus_hidden(box):
        return None
    there = {
        "nvlink.switches": len(nvswitches(box.topology)),
        "nvlink.bridges": sum(device.kind == "nvswitch-bridge" for device in box.topology.devices),
    }
    for key, present in there.items():
        if present and (whole := box.number(key)) is not None:
            return replace(number, value=int(number.value * present // whole.value))
    due, present = _on_whole_boards(box), len(box.reference_gpus)
    if isinstance(box.snapshot.pci, Missing) or 2 * present <= due or not due:
        return None  # half of a board and less may be that of a virtual machine which hides that it is one
    return replace(number, value=due)


def _on_whole_boards(box: Box) -> int:
    """The number of GPUs if none of their boards lacks one; 0 for GPUs on no such board."""
    gpus = box.reference_gpus
    of_one = max((gpus_of_a_board(model_family(box, gpu)) for gpu in gpus), default=1)
    return -(-len(gpus) // of_one) * of_one if of_one > 1 else 0


def _of_unseen_machine(box: Box) -> Judgement | None:
    """Of a text of nvidia-smi alone: more GPUs than half of a board, as no virtual machine is given."""
    present, due = len(box.topology.gpus), _on_whole_boards(box)
    if not isinstance(box.snapshot.pci, Missing) or not _HALF_A_BOARD < present < due:
        return None
    message = f"{present} GPUs of a model whose boards have {due}: is this a container's share, or is one missing?"
    return Judgement(Status.UNKNOWN, message, present, due, "GPUs", remedy="count the GPUs on the host: lspci -d 10de:")


_HALF_A_BOARD = 4


def _is_tegra(box: Box) -> bool:
    """Jetson: its GPU is no PCI device, and the driver serves its display."""
    return text_of(box.snapshot.known_host.kernel_release).endswith("-tegra")


def _fewer_than_there_were(box: Box) -> Judgement | None:
    """By minor numbers: the driver gives each GPU the lowest that is free, and keeps it until the GPU is removed."""
    gone = minors_gone(box)
    if not gone:
        return None
    present, nodes = len(box.topology.gpus), ", ".join(f"/dev/nvidia{minor}" for minor in gone)
    message = f"{present} of {counted(present + len(gone), 'GPU')} that the driver had are left; no GPU has {nodes}"
    evidence = tuple(answered(row.minor, "nvmlDeviceGetMinorNumber", row.bdf) for row in need(box.nvml).gpus
                     if isinstance(row.minor, int))  # fmt: skip
    return judged(Fault.GPU_MISSING, message, present, present + len(gone), "GPUs", evidence, fails=True)


def _of_boards(box: Box) -> Judgement | None:
    """A board of two GPUs (K80) that shows one."""
    listed, present = rows(box.snapshot.gpu_board), len(box.topology.gpus)
    boards = [row for row in listed if row.multi_gpu is True]
    sharing = Counter(row.board_id for row in boards)
    halves = [row.bdf for row in boards if sharing[row.board_id] == 1]
    alone = [gpu.name for gpu in box.topology.gpus if gpu.bdf in halves and isinstance(gpu.path, tuple)]
    unknown = any(isinstance(fact, Missing) for row in listed for fact in (row.multi_gpu, row.board_id))
    unknown = unknown or any(gpu.index is None for gpu in box.topology.gpus)
    if not alone or unknown:
        return None
    due = present + len(alone)
    message = f"{present} of {counted(due, 'GPU')} found; alone on a board of several: {', '.join(alone)}"
    evidence = tuple(answered(1, "nvmlDeviceGetMultiGpuBoard", bdf) for bdf in halves)
    return judged(Fault.GPU_MISSING, message, present, due, "GPUs", evidence, fails=True)


def _of_switches(box: Box) -> Judgement | None:
    """A switch that has fewer than the others."""
    if not (ports := unlike_other_switches(box)):
        return None
    present, where = len(box.topology.gpus), ", ".join(ports)
    due = present + sum(ports.values())
    message = (
        f"{present} of {counted(due, 'GPU')} found, unless {where} was left empty on purpose: other switches have a GPU"
        " at each such port"
    )
    return judged(Fault.GPU_MISSING, message, present, due, "GPUs", (Evidence(PCI_DEVICES, where),), warns=True)


def _of_superchips(box: Box) -> Judgement | None:
    """Those of one machine are alike: each Grace has one GPU (GH200), or each has two (GB200, GB300)."""
    if not is_coherent(box):
        return None
    nodes = [gpu.numa_node for gpu in box.topology.gpus]
    of_cpus = (row.node for row in rows(box.snapshot.numa) if text_of(row.cpulist))
    at = {node: nodes.count(node) for node in of_cpus}
    present, due = sum(at.values()), max(at.values(), default=0) * len(at)
    if present == due or present != len(nodes):
        return None
    where = ", ".join(f"{number} at node {node}" for node, number in at.items())
    message = f"{present} of {counted(due, 'GPU')} found: {where}"
    evidence = tuple(Evidence(pci_file(gpu.bdf, "numa_node"), as_evidence(gpu.numa_node)) for gpu in box.topology.gpus)
    return judged(Fault.GPU_MISSING, message, present, due, "GPUs", evidence, fails=True)


def _of_others(box: Box) -> str:
    """Accelerators of other vendors: processing accelerators, 3D and display controllers; VGA, stands for a
    host's own display too, is left out."""
    ids = Counter(
        row.ids for row in rows(box.snapshot.pci)
        if row.ids and row.vendor != NVIDIA
        and (row.subclass >> 8 == 0x12 or row.subclass in (CONTROLLER_3D, 0x0380))
    )  # fmt: skip
    named = ", ".join(f"{number} x {name}" for name, number in ids.items())
    return f"; boards of other vendors are not judged: {named}" if named else ""


def _blame_missing(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """GPUs that NVML does not list, those that fell off the bus, then the place where one is missing."""
    yield from (device_part(box, gpu) for gpu in box.topology.gpus if gpu.index is None)
    gone = {event.bdf for event in box.log.off_bus} - box.topology.functions.keys()
    yield from (Component(kind="gpu", name=gpu_at(bdf), bdf=bdf) for bdf in sorted(gone))
    yield missing(box, "GPU")
    yield from missing_socket(box)


CHECK = Check("gpu.count", per_host(_count_judgement), _blame_missing)
