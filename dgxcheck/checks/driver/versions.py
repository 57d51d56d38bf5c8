"""The versions of the NVIDIA driver: of its module, its libraries, and what the site expects."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.checks.engine.box import HOST, Box, guest, nvml_unavailable
from dgxcheck.checks.engine.check import (
    Check,
    host,
    itself,
    part,
    per_host,
    per_listed_gpu,
    remedy_of,
    ruled,
    setting_of_all,
)
from dgxcheck.checks.engine.finding import (
    Evidence,
    Judged,
    Judgement,
    Status,
    Subject,
    answered,
    as_evidence,
    first_of,
    judged,
    skip,
)
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.host_limits import in_container, minors_gone
from dgxcheck.components.component import DRIVER, FABRIC_MANAGER, Component, host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.host import DeviceNode, Modules
from dgxcheck.facts.ids import NvmlReturn
from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.kernel_log import Refused
from dgxcheck.facts.missing import Gap, Missing, known, need, or_none, rows
from dgxcheck.facts.nvml.gpu import REGISTERED, Fabric, Nvml
from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.facts.values import cuda_version
from dgxcheck.topology.model import Device

_PROC = "/proc/driver/nvidia/version"
_MODULE = "/sys/module/nvidia/version"
_OF_ONE_DRIVER = ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm")
"""Modules that are built and installed together, and without which no program runs."""
_CLIENT_OF: Mapping[FaultKind | None, Component] = {
    Fault.CLIENT_MISMATCH: host_part("programs with another driver library"),
    Fault.FABRIC_MANAGER_VERSION: FABRIC_MANAGER,
}


def _versions_match(box: Box) -> Judgement:
    module, library = _module_versions(box.snapshot.modules), _library_versions(box.snapshot.gpu)
    versions = {where: version for where, version in (module | library).items() if isinstance(version, str)}
    evidence = tuple(Evidence(where, version) for where, version in versions.items())
    nvml = box.snapshot.gpu
    if isinstance(nvml, Missing) and nvml.code == NvmlReturn.LIB_RM_VERSION_MISMATCH:
        loaded = next(iter(versions.values()), "")
        client = _refused(box, loaded)
        loaded = loaded or (client[-1].module if client else "")
        library_is = f" (version {client[-1].version} by the kernel log)" if client else ""
        message = f"NVML's library{library_is} does not match the loaded kernel module, version {loaded or 'unknown'}"
        evidence = (Evidence(nvml.where, nvml.reason), *evidence)
        return Judgement(Status.FAIL, message, loaded or None, evidence=evidence, fault=Fault.DRIVER_MISMATCH)
    for side in (module, library):
        gaps = [version for version in side.values() if isinstance(version, Missing)]
        if len(gaps) == len(side):
            return _refused_clients(box, next(iter(versions.values()), "")) or unjudged(gaps[0])
    if len(set(versions.values())) > 1:
        where_by_version = gathered((version, where) for where, version in versions.items())
        message = ", ".join(f"{version} ({first_of(where, 2)})" for version, where in where_by_version.items())
        message = f"versions differ: {message}"
        return Judgement(Status.FAIL, message, evidence=evidence, fault=Fault.DRIVER_MISMATCH)
    version = str(evidence[0].value)
    message = f"library and kernel module are both version {version}"
    return _refused_clients(box, version) or _older_cuda(nvml) or Judgement(Status.PASS, message, evidence=evidence)


@or_none
def _older_cuda(nvml: Nvml | Missing) -> Judgement | None:
    """A libcuda.so.1, which NVML asks for its version, of an earlier driver: cuda-compat is of a later one alone."""
    cuda, major = need(need(nvml).cuda_version), need(need(nvml).nvml_version).partition(".")[0]
    if not major.isdecimal() or cuda // 1000 >= int(major):
        return None
    evidence = (Evidence("nvmlSystemGetCudaDriverVersion", cuda), Evidence("nvmlSystemGetNVMLVersion", major))
    message = f"the libcuda.so.1 that is found is of CUDA {cuda_version(cuda)}, the driver of CUDA {major}"
    return Judgement(Status.WARN, message, evidence=evidence, fault=Fault.DRIVER_MISMATCH)


def _refused_clients(box: Box, version: str) -> Judgement | None:
    """Programs with another library, in a container or started before an upgrade: only the kernel log has them."""
    refused = _refused(box, version)
    if not refused:
        return None
    client = refused[-1].version
    message = f"{f'driver {version}' if version else 'the driver'} refused programs with library version {client}"
    evidence = tuple(Evidence(box.log.where, event.line) for event in refused[-10:])
    facts = (client, version, "", evidence)
    if not _is_newer(client, version or refused[-1].module):
        return judged(Fault.CLIENT_MISMATCH, message, *facts, warns=True)
    return judged(Fault.DRIVER_MISMATCH, message, *facts, warns=True, remedy=remedy_of("driver.version-match"))


def _is_newer(client: str, module: str) -> bool:
    """Is the library of a later release? An upgrade leaves that until its module is loaded."""
    first, second = ([int(part) for part in version.split(".") if part.isdecimal()] for version in (client, module))
    return bool(second) and first > second


def _refused(box: Box, version: str) -> list[Refused]:
    """Programs with another version of the library that the loaded module sent away."""
    return [other for other in box.log.refused if not (other.past or other.fabric) and other.version != version]


def _of_driver(box: Box) -> Judged:
    """Fails if NVML's library and the loaded kernel module have different versions, also if NVML cannot be initialised
    because of that. Warns if the kernel module has refused programs with another library version since it was loaded,
    and fails if that was fabric manager and no GPU is in a fabric since. Warns if libcuda.so.1 is of a CUDA before that
    of the driver's NVML.

    Source: NVML_ERROR_LIB_RM_VERSION_MISMATCH; API mismatch in the kernel log; nvmlSystemGetNVMLVersion against
    /proc/driver/nvidia/version, /sys/module/nvidia/version and nvmlSystemGetCudaDriverVersion;
    cudaErrorSystemDriverMismatch
    """
    yield from per_host(_versions_match)(box)
    if (refused := _refused_fabric_manager(box)) is not None:
        yield replace(HOST, part="Fabric Manager"), refused


def _refused_fabric_manager(box: Box) -> Judgement | None:
    """A Fabric Manager that the driver of the NVSwitches sent away; not where GPUs are in a fabric since, or joined."""
    refused = [each for each in box.log.refused if each.fabric and not each.past]
    fabrics = [row.fabric for row in rows(box.snapshot.gpu_modes)]
    states = [fabric.state for fabric in fabrics if isinstance(fabric, Fabric) and fabric.state != 0]
    joined = REGISTERED in states if states else any(link.up is True for link in rows(box.snapshot.nvlink))
    if not refused or joined:
        return None
    message = f"the driver refused a fabric manager of version {refused[-1].version}"
    evidence = tuple(Evidence(box.log.where, each.line) for each in refused[-10:])
    return judged(Fault.FABRIC_MANAGER_VERSION, message, refused[-1].version, evidence=evidence, fails=True)


def _module_versions(modules: Modules | Missing) -> dict[str, str | Missing]:
    """The version of the loaded kernel module, by the file that has it."""
    if isinstance(modules, Missing):
        return {_MODULE: modules}
    proc = modules.driver if isinstance(modules.driver, Missing) else modules.driver.version
    absent = Missing(Gap.ABSENT, _MODULE)
    own = {f"/sys/module/{row.name}/version": row.version for row in modules.modules
           if row.name in _OF_ONE_DRIVER and isinstance(row.version, str)}  # fmt: skip
    return {_PROC: proc, _MODULE: absent} | own


def _library_versions(nvml: Nvml | Missing) -> dict[str, str | Missing]:
    """By NVML function; the library's own version is ``<CUDA major>.<driver version>``."""
    if isinstance(nvml, Missing):
        return {"nvmlInit": nvml}
    own = nvml.nvml_version
    tail = own if isinstance(own, Missing) or "." not in own else own.partition(".")[2]
    return {"nvmlSystemGetNVMLVersion": tail, "nvmlSystemGetDriverVersion": nvml.driver_version}


def _nodes(box: Box) -> Judged:
    """Warns if the device node of a GPU that NVML lists, /dev/nvidiactl or, once its module is loaded, /dev/nvidia-uvm
    cannot be opened. Unknown if NVML gives a GPU a minor number while the node of another belongs to no GPU. Nodes that
    are not assigned to a container are not judged.

    Source: open of /dev/nvidia<minor>, /dev/nvidiactl and /dev/nvidia-uvm
    """
    yield HOST, nvml_unavailable(box) or ruled(_shared_nodes, box)
    yield from per_listed_gpu(_gpu_node)(box)


def _shared_nodes(box: Box) -> Judgement:
    """``nvidia-modprobe`` makes /dev/nvidia-uvm when the first CUDA program starts, and loads this module."""
    nodes = need(box.snapshot.device_nodes)
    uvm = any(row.name == "nvidia_uvm" and row.loaded is True for row in box.modules)
    return _opened(box, [nodes.control, nodes.uvm] if uvm else [nodes.control])


def _gpu_node(box: Box, gpu: Device) -> Judgement:
    minor = need(need(box.gpu(gpu).listed).minor)
    nodes = need(need(box.snapshot.device_nodes).gpus)
    node = next((node for node in nodes if node.path == f"/dev/nvidia{minor}"), None)
    if node is not None:
        return _opened(box, [node])
    others = {row.minor for row in need(box.nvml).gpus if row.bdf != gpu.bdf}
    spare = [each.path for number, each in enumerate(nodes) if each.opens is True and number not in others]
    lost = any(box.topology.device(event.bdf) is None for event in box.log.off_bus)
    gone = lost or minors_gone(box)  # the node of such a GPU stays
    if not spare or gone or in_container(box) or len(nodes) != len(box.topology.gpus) or guest(box) is not None:
        return skip("not-recorded", f"/dev/nvidia{minor} was not checked")
    evidence = (answered(minor, "nvmlDeviceGetMinorNumber", gpu.bdf or ""), Evidence(spare[0], True))
    message = f"NVML gives it minor number {minor}, while {', '.join(spare)} belongs to no GPU"
    return Judgement(Status.UNKNOWN, message, minor, evidence=evidence)


def _opened(box: Box, nodes: list[DeviceNode]) -> Judgement:
    gaps = {node.path: node.opens for node in nodes if isinstance(node.opens, Missing)}
    for gap in gaps.values():
        if gap.gap not in (Gap.ABSENT, Gap.DENIED):
            return unjudged(gap)
    evidence = tuple(Evidence(node.path, as_evidence(node.opens)) for node in nodes)
    failed = [f"{node.path}: {gaps.get(node.path, 'permission denied')}" for node in nodes if node.opens is not True]
    if not failed:
        paths = ", ".join(node.path for node in nodes)
        return Judgement(Status.PASS, f"can be opened: {paths}", evidence=evidence)
    if in_container(box):
        return skip("not-visible", f"not assigned to this container: {', '.join(failed)}", *evidence)
    message = f"programs cannot open {', '.join(failed)}; NVML works"
    return Judgement(Status.WARN, message, evidence=evidence, fault=Fault.DEVICE_NODE)


def _site_versions(box: Box) -> Judged:
    """Warns if the version of the driver, of a GPU's VBIOS or of an HCA's firmware is not one that the configuration
    pins. Without pinned versions nothing is judged.

    Source: [versions] of dgxcheck-config(5)
    """
    pinned = box.settings
    if not (pinned.driver or pinned.vbios or pinned.hca_firmware):
        yield HOST, skip("not-configured", "the configuration pins no version")
    if pinned.driver:
        yield replace(HOST, part="driver"), ruled(_driver, box)
    if pinned.vbios:
        yield from per_listed_gpu(_vbios)(box)
    if pinned.hca_firmware:
        yield from _hcas(box)


def _driver(box: Box) -> Judgement:
    """As NVML reports it, else the version of the loaded kernel module."""
    if not isinstance(box.nvml, Missing) and not isinstance(version := box.nvml.driver_version, Missing):
        return _compare("driver", version, box.settings.driver, answered(version, "nvmlSystemGetDriverVersion", ""))
    loaded = need(need(box.snapshot.modules).driver).version
    return _compare("driver", loaded, box.settings.driver, Evidence(_PROC, loaded))


def _vbios(box: Box, gpu: Device) -> Judgement:
    version = need(need(box.gpu(gpu).listed).vbios)
    return _compare("VBIOS", version, box.settings.vbios, answered(version, "nvmlDeviceGetVbiosVersion", gpu.bdf or ""))


def _hcas(box: Box) -> Judged:
    devices = box.snapshot.infiniband
    hcas = [hca for hca in rows(devices) if hca.is_vf is not True]  # a virtual function has its parent's firmware
    if not hcas:
        nothing = skip("not-visible", "no HCA is visible")
        yield replace(HOST, part="hca_firmware"), unjudged(devices) if isinstance(devices, Missing) else nothing
    for hca in hcas:
        subject = Subject(kind="hca", name=hca.name, bdf=known(hca.bdf))
        yield subject, ruled(_firmware, box, hca)


def _firmware(box: Box, hca: IbDevice) -> Judgement:
    version = need(hca.fw_ver)
    evidence = Evidence(f"/sys/class/infiniband/{hca.name}/fw_ver", version)
    return _compare("firmware", version, box.settings.hca_firmware, evidence)


def _compare(what: str, version: str, pinned: tuple[str, ...], evidence: Evidence) -> Judgement:
    accepted = " or ".join(pinned)
    message, differs = f"{what} {version}, pinned {accepted}", version.strip().lower() not in map(str.lower, pinned)
    return judged(Fault.VERSION, message, version, accepted, "", (evidence,), warns=differs)


CHECKS = (
    Check("driver.version-match", _of_driver, lambda box, at, judgement: (_CLIENT_OF.get(judgement.fault, DRIVER),)),
    Check("driver.device-nodes", _nodes,
        lambda box, at, judgement: part(f"device node{'s' * (at.kind == 'host')}")(box, at, judgement),
        setting_of_all("device node")),
    Check("site.versions", _site_versions,
        lambda box, at, judgement: (host("versions") if at.kind == "host" else itself)(box, at, judgement)),
)  # fmt: skip
