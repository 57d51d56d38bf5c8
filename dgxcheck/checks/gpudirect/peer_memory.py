"""GPUDirect RDMA: what lets an HCA reach the memory of a GPU, a peer-memory module or dma-buf."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, skip
from dgxcheck.checks.engine.precondition import Said, unsaid
from dgxcheck.checks.engine.visibility import in_container
from dgxcheck.checks.gpudirect.preconditions import PEER_MODULES, of_box
from dgxcheck.checks.host.modules import loaded
from dgxcheck.facts.gpu import Nvml
from dgxcheck.facts.host import Flavour, Host, Modules
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import replace
from dgxcheck.topology.model import Device

_PEERS = "/sys/kernel/mm/memory_peers"
_CLIENTS = ("nv_mem", "nv_mem_nc")
_TURING = (7, 5)
_DMABUF_KERNEL, _DMABUF_CUDA = (5, 12), 11070
_PEERMEM_DRIVER = 470


def peer_memory(box: Box, gpu: Device | None = None) -> Said:
    """One way for an HCA to reach GPU memory: a registered peer-memory module, or dma-buf."""
    modules = box.snapshot.modules
    if isinstance(modules, Missing):
        return unsaid(modules)
    unknown = next((each.loaded for each in modules.modules if isinstance(each.loaded, Missing)), None)
    if unknown is not None:
        return unsaid(unknown)
    names = loaded(box, *PEER_MODULES)
    evidence = tuple(Evidence(f"/sys/module/{name}", "loaded") for name in names)
    if len(names) > 1:
        message = "nvidia_peermem and nv_peer_mem are both loaded, and exclude each other"
        return Said("no", Judgement(Status.WARN, message, evidence=evidence, remedy="unload nv_peer_mem"))
    return _registered(modules, names[0], evidence) if names else _without_module(box, gpu)


def _registered(modules: Modules, name: str, evidence: tuple[Evidence, ...]) -> Said:
    peers, holders = modules.memory_peers, modules.ib_core_holders
    clients = [] if isinstance(peers, Missing) else [each.name for each in peers if each.name in _CLIENTS]
    holds = not isinstance(holders, Missing) and name in holders
    if clients or holds:
        how = f"with {_PEERS}/{clients[0]}" if clients else "with ib_core"
        message = f"{name} is loaded and registered {how}"
        return Said("ready", Judgement(Status.PASS, message, evidence=evidence))
    for gap in (peers, holders):
        if isinstance(gap, Missing) and gap.gap is not Gap.ABSENT:
            return unsaid(gap)
    seen = (*evidence, Evidence(_PEERS, "absent" if isinstance(peers, Missing) else [each.name for each in peers]))
    return Said("no", Judgement(Status.WARN, f"{name} is loaded, but has not registered", evidence=seen))


def _without_module(box: Box, gpu: Device | None) -> Said:
    why_not = _no_dma_buf(box, gpu)
    if isinstance(why_not, Missing):
        return unsaid(why_not)
    if not why_not:
        message = "no peer-memory module; dma-buf may do it, which only a program with CUDA and verbs can tell"
        return Said("?", skip("not-configured", f"{message}; NCCL_DEBUG=INFO says whether NCCL uses it"))
    message = f"no peer-memory module is loaded, and dma-buf cannot stand in: {why_not}"
    advice = _advice(box) + (", on the host of this container" if in_container(box) else "")
    return Said("no", replace(skip("not-configured", f"{message}; {advice}"), remedy=advice), message)


def _no_dma_buf(box: Box, gpu: Device | None) -> str | Missing:
    """Why dma-buf cannot work here; empty where it may."""
    modules, host, nvml, boards = box.snapshot.modules, box.snapshot.host, box.nvml, box.snapshot.gpu_board
    for gap in (boards, modules, host, nvml):
        if isinstance(gap, Missing):
            return gap
    assert isinstance(modules, Modules)
    assert isinstance(host, Host)
    assert isinstance(nvml, Nvml)
    assert not isinstance(boards, Missing)
    asked = {gpu.bdf} if gpu is not None else {each.bdf for each in box.gpus}
    for board in boards:
        able = board.compute_capability
        if board.bdf in asked and not isinstance(able, Missing) and able < _TURING:
            return "it takes NVIDIA's open kernel modules, which begin with Turing"
    if isinstance(modules.driver, Missing):
        return modules.driver
    if modules.driver.flavour is not Flavour.OPEN:
        return "it takes NVIDIA's open kernel modules, these are the proprietary ones"
    release = _numbers(host.kernel_release)
    if isinstance(release, Missing):
        return release
    if release < _DMABUF_KERNEL:
        return "it takes Linux 5.12"
    cuda = nvml.cuda_version
    return cuda if isinstance(cuda, Missing) else "it takes a driver of CUDA 11.7" if cuda < _DMABUF_CUDA else ""


def _numbers(release: str | Missing) -> tuple[int, int] | Missing:
    """``5.15.0-126-generic`` -> 5, 15."""
    if isinstance(release, Missing):
        return release
    major, _, rest = release.partition(".")
    minor = rest.partition(".")[0]
    if not (major.isascii() and major.isdigit() and minor.isascii() and minor.isdigit()):
        return Missing(Gap.GARBLED, "/proc/sys/kernel/osrelease", release[:80])
    return int(major[:6]), int(minor[:6])


def _advice(box: Box) -> str:
    modules = box.snapshot.modules
    driver = modules.driver if isinstance(modules, Modules) else None
    version = _numbers(f"{driver.version}.0") if driver is not None and not isinstance(driver, Missing) else None
    if isinstance(version, tuple) and version[0] < _PEERMEM_DRIVER:
        return "where it is wanted, build nv_peer_mem for this driver and load it"
    return (
        "where it is wanted, run modprobe nvidia-peermem; if that says Invalid argument, install MLNX_OFED or DOCA and"
        " then this driver again"
    )


CHECKS = (
    Check(
        id="gdr.peer-memory",
        rule="Passes where nvidia_peermem or nv_peer_mem is loaded and registered; warns where one is loaded and has"
        " not registered, or both are. Without either it is not judged: the site may not want GPUDirect RDMA, or use"
        " dma-buf, which takes the open kernel modules (Turing and newer), Linux 5.12 and a driver of CUDA 11.7.",
        source="/sys/module, /sys/module/ib_core/holders, /sys/kernel/mm/memory_peers, as NCCL (src/transport/net_ib)"
        " and UCX look; https://docs.nvidia.com/cuda/gpudirect-rdma",
        remedy="unload and load the module again: modprobe -r nvidia_peermem; modprobe nvidia_peermem; if it still does"
        " not register, install MLNX_OFED or DOCA and then the driver again",
        judge=of_box(peer_memory),
    ),
)
