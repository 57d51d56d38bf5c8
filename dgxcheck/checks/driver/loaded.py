"""Is the NVIDIA driver loaded, does it respond, hold the GPUs, and stay initialised while no program uses them?"""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.checks.engine.box import HOST, Box, Growth, nvml_unavailable
from dgxcheck.checks.engine.check import Check, driver, host, itself, part, per_gpu, per_host, remedy_of, setting_of_all
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, answered, counted, of_gaps, skip
from dgxcheck.checks.engine.gaps import involves, is_about, is_driver_query, unjudged
from dgxcheck.checks.engine.host_limits import in_container
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.host import Modules
from dgxcheck.facts.ids import BRANDS, VGA, NvmlReturn
from dgxcheck.facts.missing import NO_WORKER, NOT_LOADABLE, Gap, Missing, need, or_gap
from dgxcheck.facts.nvml.gpu import Gpu, GpuBoard, GpuModes
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.topology.model import Device

_NVML_FAULTS = {
    NvmlReturn.LIBRARY_NOT_FOUND: Fault.LIBRARY_MISSING,
    NOT_LOADABLE: Fault.LIBRARY_BROKEN,
    NvmlReturn.DRIVER_NOT_LOADED: Fault.DRIVER_NOT_LOADED,
    NvmlReturn.LIB_RM_VERSION_MISMATCH: Fault.DRIVER_MISMATCH,
}


_RUNTIME = host("container runtime")
_HANDLE = "nvmlDeviceGetHandleByIndex "


def bound(gpu: Device) -> str | Missing | None:
    """The kernel driver that a GPU is bound to; None where there is none."""
    return Missing(Gap.ABSENT, f"/sys/bus/pci/devices/{gpu.bdf}") if gpu.function is None else gpu.function.driver


@or_gap
def gpu_nodes(box: Box) -> list[bool]:
    """For each ``/dev/nvidia<minor>``: can it be opened?"""
    return [node.opens is True for node in need(need(box.snapshot.device_nodes).gpus)]


def _nvml_state(box: Box) -> Judgement:
    """Fails if there are GPUs on PCI and NVML cannot be initialised, or no longer responds at the second reading, or if
    a container that has their device nodes may open none; unknown if this user may not use it, or if it does not report
    its version. GPUs that are bound to another driver or are not assigned to this container are not judged.

    Source: nvmlInit, nvmlDeviceGetCount, nvmlSystemGetDriverVersion, nvmlSystemGetNVMLVersion,
    nvmlSystemGetCudaDriverVersion
    """
    nvml = box.nvml
    again = box.growth.new.gpu_counters if isinstance(box.growth, Growth) else None
    if not isinstance(nvml, Missing) and isinstance(again, Missing) and again.gap not in (Gap.UNRECORDED, Gap.UNASKED):
        nvml = again
    if not isinstance(nvml, Missing):
        version = nvml.driver_version
        gaps = [each for each in (version, nvml.nvml_version, nvml.cuda_version) if isinstance(each, Missing)]
        if refused := [missing for missing in gaps if missing.code not in (None, NvmlReturn.FUNCTION_NOT_FOUND)]:
            message = f"NVML does not report its version: {refused[0].where}: {refused[0]}"
            return Judgement(Status.UNKNOWN, message, evidence=of_gaps(refused))
        return Judgement(Status.PASS, f"NVML responds, driver {'unknown' if isinstance(version, Missing) else version}")
    evidence = of_gaps([nvml])
    no_error_code = nvml.gap is Gap.GARBLED and nvml.code is None
    held = [gpu for gpu in box.topology.gpus if bound(gpu) == "nvidia"]
    if nvml.gap is Gap.UNRECORDED and held:
        message = f"NVML was not asked about {counted(len(held), 'GPU')} bound to nvidia: {nvml}"
        return Judgement(Status.UNKNOWN, message, evidence=evidence)
    if no_error_code or nvml.gap in (Gap.UNRECORDED, Gap.TIMEOUT):
        return unjudged(nvml)
    if not box.topology.gpus and not _pci_unrecorded(box):
        return skip("not-visible", "no NVIDIA GPU is visible")
    drivers = {name for name in map(bound, box.topology.gpus) if isinstance(name, str)}
    if drivers and "nvidia" not in drivers:
        return skip("not-visible", f"the GPUs are bound to {', '.join(sorted(drivers))}")
    nodes = gpu_nodes(box)
    shut = in_container(box) and (isinstance(nodes, Missing) or not any(nodes))
    if shut and nvml.gap in (Gap.ABSENT, Gap.DENIED):
        return skip("not-visible", "no GPU is assigned to this container: no device node can be opened")
    if shut and not isinstance(nodes, Missing) and nodes and nvml.code == NvmlReturn.UNKNOWN:
        message = f"this container may not open any of its GPUs' device nodes: {nvml}"
        return Judgement(Status.FAIL, message, evidence=evidence, fault=Fault.CONTAINER_DEVICES)
    fault = _NVML_FAULTS.get(nvml.code or 0, Fault.DRIVER_FAILED)
    when = " at the second reading" if nvml is again else ""
    on_pci = f", {counted(len(box.topology.gpus), 'NVIDIA GPU')} on PCI" if box.topology.gpus else ""
    message = f"{nvml}{when}; NVML is not available{on_pci}"
    if nvml.gap is Gap.DENIED:
        return Judgement(Status.UNKNOWN, message, evidence=evidence, remedy=remedy_of("driver.library", "denied"))
    remedy = remedy_of("driver.version-match") if fault is Fault.DRIVER_MISMATCH else ""
    if fault is Fault.LIBRARY_MISSING and not held and not in_container(box) and _is_not_loaded(box):
        message = f"{nvml}{when}, nor is the module nvidia loaded; NVML is not available{on_pci}"
        remedy = remedy_of("driver.library", "no driver")
    return Judgement(Status.FAIL, message, evidence=evidence, fault=fault, remedy=remedy)


def _is_not_loaded(box: Box) -> bool:
    """Is there no kernel module?"""
    module = box.snapshot.modules.driver if isinstance(box.snapshot.modules, Modules) else None
    return isinstance(module, Missing) and module.gap is Gap.ABSENT


def _pci_unrecorded(box: Box) -> bool:
    """Is nothing known of the PCI bus? Where nvidia-smi was asked on such a machine, somebody expects GPUs there."""
    pci = box.snapshot.pci
    return isinstance(pci, Missing) and pci.gap is Gap.UNRECORDED


def _responsive(box: Box) -> Judged:
    """Fails if a query to the driver hung until the deadline (--deadline) or ended the process that made it: the GPU,
    where all such queries are about one and the driver answers of the others, else the driver. Unknown if the system
    let no process start that could ask, had no CPU free for it, or ended it for lack of memory.

    Source: dgxcheck's own deadline
    """
    unanswered = [gap for gap in box.gaps if gap.gap is Gap.TIMEOUT and is_driver_query(gap)]
    late = [gap for gap in unanswered if gap.code != NO_WORKER]
    if unanswered and not late:
        queries = counted(len(unanswered), "driver query was", "driver queries were")
        message = f"{queries} not asked: {unanswered[0]}; first {unanswered[0].where}"
        remedy = remedy_of("driver.responsive", "not asked")
        yield HOST, Judgement(Status.UNKNOWN, message, evidence=of_gaps(unanswered), remedy=remedy)
    elif late:
        silent = _one_silent(box, late)
        queries = counted(len(late), "driver query", "driver queries")
        message = f"no response to {queries}; first {late[0].where}: {late[0]}"
        yield HOST if silent is None else box.subject(silent), Judgement(
            Status.FAIL, message, len(late), 0, "queries", of_gaps(late), fault=Fault.DRIVER_UNRESPONSIVE
        )  # fmt: skip
    else:
        responded = Judgement(Status.PASS, "the driver responded to every query", 0, 0, "queries")
        yield HOST, nvml_unavailable(box) or responded


def _one_silent(box: Box, unanswered: Sequence[Missing]) -> Device | None:
    """The GPU that all of these queries are about, while the driver answers what it is asked about others alone: by its
    bus id, or, where NVML lists every other one, by its index."""
    asked = {gap.where for gap in unanswered}
    unlisted = [gpu for gpu in box.topology.gpus if gpu.index is None]
    if len(asked) == len(unlisted) == 1 and unanswered[0].where.startswith(_HANDLE):
        silent = [gpu for gpu in unlisted if gpu in box.gpus]
    else:
        silent = [gpu for gpu in box.gpus if all(involves(gap, gpu.bdf) for gap in unanswered)
                  and any(is_about(gap, gpu.bdf) for gap in unanswered)]  # fmt: skip
    return silent[0] if silent and len(box.gpus) > 1 else None


_OF_DESKTOPS = LazyPattern(r"(?:NVIDIA )?(?:GeForce|TITAN|GTX|Quadro|RTX|[MG]TX?\d|MX ?\d|T\d{3,4}\b|GB10\b)")
"""Models for displays, by their names in NVML."""
_OF_CONSUMERS = LazyPattern(r"(?:NVIDIA )?(?:GeForce|TITAN|GTX)")
_BRANDS_OF_CONSUMERS = (BRANDS["GeForce"], BRANDS["GeForce RTX"], BRANDS["Titan"], BRANDS["Titan RTX"])


def _usually_off(box: Box) -> bool:
    """Are these the GPUs of a desktop or laptop? Display models all, and the only one, with a display, or consumers'.

    A driver that serves a display is never idle; servers full of workstation cards have none.
    """
    gpus = box.snapshot.listed_gpus
    if not gpus or not all(_is_model(box, gpu, _OF_DESKTOPS) for gpu in gpus):
        return False
    if len(gpus) == 1 or all(_is_model(box, gpu, _OF_CONSUMERS) for gpu in gpus):
        return True
    modes = (box.gpu(gpu.bdf).modes for gpu in gpus)
    return any(isinstance(each, GpuModes) and True in (each.display_mode, each.display_active) for each in modes)


def _is_model(box: Box, gpu: Gpu, names: LazyPattern) -> bool:
    """By name, which a table may cut, or a brand for consumers."""
    board = box.gpu(gpu.bdf).board
    by_name = isinstance(gpu.name, str) and names.match(gpu.name) is not None
    return by_name or (isinstance(board, GpuBoard) and board.brand in _BRANDS_OF_CONSUMERS)


def _persistence(box: Box, modes: GpuModes) -> Judgement:
    """Warns if persistence mode is off: the driver then re-initialises a GPU for each first client and loses its
    volatile error counters and settings. Passes on desktops: all GPUs are GeForce or TITAN; or, with Quadro or RTX too,
    there is a single GPU or one of them drives a display; on other boxes of Quadro or RTX it can wait.

    Source: nvmlDeviceGetPersistenceMode; https://docs.nvidia.com/deploy/driver-persistence/index.html
    """
    persistence = need(modes.persistence)
    evidence = (answered(int(persistence), "nvmlDeviceGetPersistenceMode", modes.bdf),)
    if persistence:
        return Judgement(Status.PASS, "persistence mode is on", "on", "on", evidence=evidence)
    message, fault = "persistence mode is off", Fault.PERSISTENCE_OFF
    if _usually_off(box):
        message = f"{message}, as is usual on a desktop"
        return Judgement(Status.PASS, message, "off", evidence=evidence)
    # boards with display outputs are VGA controllers, those for servers 3D controllers
    if all(_is_model(box, gpu, _OF_DESKTOPS) or box.subclass(gpu.bdf) == VGA for gpu in box.snapshot.listed_gpus):
        fault = Fault.PERSISTENCE_UNSET
    return Judgement(Status.WARN, message, "off", "on", evidence=evidence, fault=fault)


CHECKS = (
    Check("driver.library", per_host(_nvml_state),
        lambda *of: (_RUNTIME if of[2].fault is Fault.CONTAINER_DEVICES else driver)(*of)),
    Check("driver.responsive", _responsive, lambda *of: (driver if of[1].kind == "host" else itself)(*of)),
    Check("driver.persistence", per_gpu("gpu_modes", _persistence), part("persistence mode"),
        setting_of_all("persistence mode")),
)  # fmt: skip
