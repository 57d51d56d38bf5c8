"""Do the parts of the driver fit each other, and can its device nodes be opened?"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box, gpu_unavailable
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.visibility import in_container
from dgxcheck.facts.gpu import Nvml
from dgxcheck.facts.host import DeviceNode, DeviceNodes, Modules
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]
_MISMATCH = "NVML 18:"
_PROC = "/proc/driver/nvidia/version"
_MODULE = "/sys/module/nvidia/version"


def _versions(box: Box) -> Judged:
    yield HOST, _versions_judged(box)


def _versions_judged(box: Box) -> Judgement:
    loaded, library = _loaded(box.snapshot.modules), _library(box.snapshot.gpu)
    told = {where: said for where, said in (loaded | library).items() if isinstance(said, str)}
    evidence = tuple(Evidence(where, said) for where, said in told.items())
    nvml = box.snapshot.gpu
    if isinstance(nvml, Missing) and nvml.detail.startswith(_MISMATCH):
        module = next(iter(told.values()), None)
        message = f"NVML's library refuses the loaded kernel module, which is {module or 'of a version not known'}"
        return Judgement(Status.FAIL, message, module, evidence=(Evidence(nvml.where, nvml.reason), *evidence))
    for side in (loaded, library):
        gaps = [said for said in side.values() if isinstance(said, Missing)]
        if len(gaps) == len(side):
            return unjudged(gaps[0])
    if len(set(told.values())) == 1:
        version = str(evidence[0].value)
        if (turned_away := _refused(box, version)) is not None:
            return turned_away
        return Judgement(Status.PASS, f"library and kernel module are of version {version}", evidence=evidence)
    message = f"versions differ: {', '.join(f'{version} by {where}' for where, version in told.items())}"
    return Judgement(Status.FAIL, message, evidence=evidence)


def _refused(box: Box, version: str) -> Judgement | None:
    """Programs with another library, in a container or started before an upgrade, are told by the kernel log alone."""
    log = box.snapshot.kernel_log
    events = () if isinstance(log, Missing) else log.refused
    now = [each for each in events if not each.past and each.version != version]
    if isinstance(log, Missing) or not now:
        return None
    message = f"the driver, which is {version}, turned away programs with a library of {now[-1].version}"
    evidence = tuple(Evidence(log.where, each.line) for each in now[-10:])
    remedy = "start those programs anew; in containers use the library that the container toolkit mounts, not their own"
    return Judgement(Status.WARN, message, now[-1].version, version, "", evidence, remedy=remedy)


def _loaded(modules: Modules | Missing) -> dict[str, str | Missing]:
    """What the kernel has loaded, by the file that says so."""
    if isinstance(modules, Missing):
        return {_MODULE: modules}
    of_proc = modules.driver if isinstance(modules.driver, Missing) else modules.driver.version
    module = next((each.version for each in modules.modules if each.name == "nvidia"), Missing(Gap.ABSENT, _MODULE))
    return {_PROC: of_proc, _MODULE: module}


def _library(nvml: Nvml | Missing) -> dict[str, str | Missing]:
    """What NVML says: its own version is ``<CUDA major>.<driver version>``."""
    if isinstance(nvml, Missing):
        return {"nvmlInit": nvml}
    own = nvml.nvml_version
    tail = own if isinstance(own, Missing) or "." not in own else own.partition(".")[2]
    return {"nvmlSystemGetNVMLVersion": tail, "nvmlSystemGetDriverVersion": nvml.driver_version}


def _nodes(box: Box) -> Judged:
    nodes = box.snapshot.device_nodes
    yield HOST, _shared_nodes(box, nodes)
    for gpu in box.gpus:
        yield box.subject(gpu), gpu_unavailable(box, gpu) or _gpu_node(box, nodes, gpu)


def _shared_nodes(box: Box, nodes: DeviceNodes | Missing) -> Judgement:
    if isinstance(box.nvml, Missing):
        return unjudged(box.nvml) if box.nvml.gap is Gap.UNRECORDED else skip("dependency-failed", "NVML tells nothing")
    if isinstance(nodes, Missing):
        return unjudged(nodes)
    asked = [nodes.control, nodes.uvm] if _loaded_uvm(box.snapshot.modules) else [nodes.control]
    return _opened(box, asked)


def _loaded_uvm(modules: Modules | Missing) -> bool:
    """``nvidia-modprobe`` makes /dev/nvidia-uvm when the first program on CUDA starts, and loads this module."""
    return isinstance(modules, Modules) and any(
        each.name == "nvidia_uvm" and each.loaded is True for each in modules.modules
    )


def _gpu_node(box: Box, nodes: DeviceNodes | Missing, gpu: Device) -> Judgement:
    rows = box.snapshot.gpu.gpus if isinstance(box.snapshot.gpu, Nvml) else ()
    minor = next((row.minor for row in rows if row.bdf == gpu.bdf), Missing(Gap.UNRECORDED, "nvmlDeviceGetMinorNumber"))
    known = nodes if isinstance(nodes, Missing) else nodes.gpus
    for gap in (minor, known):
        if isinstance(gap, Missing):
            return unjudged(gap)
    assert not isinstance(known, Missing)
    node = next((each for each in known if each.path == f"/dev/nvidia{minor}"), None)
    if node is None:
        return skip("not-recorded", f"nobody looked for /dev/nvidia{minor}")
    return _opened(box, [node])


def _opened(box: Box, nodes: list[DeviceNode]) -> Judgement:
    said: list[tuple[str, Json]] = []
    shut: list[str] = []
    for node in nodes:
        opens = node.opens
        if isinstance(opens, Missing) and opens.gap not in (Gap.ABSENT, Gap.DENIED):
            return unjudged(opens)
        said.append((node.path, opens.reason if isinstance(opens, Missing) else opens))
        if opens is not True:
            shut.append(f"{node.path}: {opens if isinstance(opens, Missing) else 'not permitted'}")
    evidence = tuple(Evidence(path, value) for path, value in said)
    if not shut:
        return Judgement(Status.PASS, f"can be opened: {', '.join(path for path, _ in said)}", evidence=evidence)
    if in_container(box):
        return skip("not-visible", f"this container was not given {', '.join(shut)}", *evidence)
    return Judgement(Status.WARN, f"NVML answers, but programs cannot open {', '.join(shut)}", evidence=evidence)


CHECKS = (
    Check(
        id="driver.version-match",
        rule="Fails where NVML's library and the loaded kernel module are of different versions, also where NVML"
        " refuses to start for it. Warns where the module turned away programs of another version since it was loaded.",
        source="NVML_ERROR_LIB_RM_VERSION_MISMATCH; API mismatch in the kernel log; nvmlSystemGetNVMLVersion against"
        " /proc/driver/nvidia/version and /sys/module/nvidia/version",
        remedy="unload the NVIDIA modules and load the installed ones, or reboot; hold the driver's packages back",
        judge=_versions,
    ),
    Check(
        id="driver.device-nodes",
        rule="Warns where the device node of a GPU that NVML lists cannot be opened from here, nor nvidiactl, nor"
        " nvidia-uvm once its module is loaded; what a container was not given is not judged.",
        source="open of /dev/nvidia<minor>, /dev/nvidiactl and /dev/nvidia-uvm",
        remedy="run nvidia-modprobe -c MINOR, -c 255 for nvidiactl, -u -c 0 for nvidia-uvm; then check the nodes'"
        " mode, udev rules and the cgroup's device list",
        judge=_nodes,
    ),
)
