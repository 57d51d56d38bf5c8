"""GPUDirect RDMA: how an HCA reaches the memory of a GPU, through a peer memory module or dma-buf."""

from __future__ import annotations

from dgxcheck.checks.engine.blame import host
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, skip
from dgxcheck.checks.engine.precondition import Precondition, needs_facts
from dgxcheck.checks.engine.visibility import in_container
from dgxcheck.checks.gpudirect.preconditions import PEER_MODULES, of_host
from dgxcheck.checks.host.modules import loaded
from dgxcheck.facts.host import Flavour, Modules
from dgxcheck.facts.missing import Gap, Json, Missing, need
from dgxcheck.facts.record import replace
from dgxcheck.topology.model import Device

_PEERS = "/sys/kernel/mm/memory_peers"
_CLIENTS = ("nv_mem", "nv_mem_nc")
_TURING = (7, 5)
_DMABUF_KERNEL, _DMABUF_CUDA = (5, 12), 11070
_PEERMEM_DRIVER = 470


@needs_facts
def peer_memory(box: Box, gpu: Device | None = None) -> Precondition:
    """A registered peer memory module, or dma-buf: for one GPU, or for all that were asked about."""
    modules = need(box.snapshot.modules)
    for module in modules.modules:
        need(module.loaded)
    names = loaded(box, *PEER_MODULES)
    evidence = tuple(Evidence(f"/sys/module/{name}", "loaded") for name in names)
    if len(names) > 1:
        message = "nvidia_peermem and nv_peer_mem are both loaded, and exclude each other"
        remedy = "unload nv_peer_mem: modprobe -r nv_peer_mem"
        return Precondition("no", Judgement(
            Status.WARN, message, evidence=evidence, remedy=remedy, fault=Fault.PEER_MEMORY
        ))  # fmt: skip
    return _registered(modules, names[0], evidence) if names else _without_module(box, gpu)


def _registered(modules: Modules, name: str, evidence: tuple[Evidence, ...]) -> Precondition:
    peers, holders = modules.memory_peers, modules.ib_core_holders
    clients = [] if isinstance(peers, Missing) else [client.name for client in peers if client.name in _CLIENTS]
    if clients or (not isinstance(holders, Missing) and name in holders):
        where = f"{_PEERS}/{clients[0]}" if clients else "ib_core"
        message = f"{name} is loaded and registered with {where}"
        return Precondition("ready", Judgement(Status.PASS, message, evidence=evidence))
    for fact in (peers, holders):
        if isinstance(fact, Missing) and fact.gap is not Gap.ABSENT:
            need(fact)
    others: Json = "absent" if isinstance(peers, Missing) else [client.name for client in peers]
    return Precondition("no", Judgement(
        Status.WARN, f"{name} is loaded, but not registered with ib_core",
        evidence=(*evidence, Evidence(_PEERS, others)), fault=Fault.PEER_MEMORY,
    ))  # fmt: skip


def _without_module(box: Box, gpu: Device | None) -> Precondition:
    reason = _no_dma_buf(box, gpu)
    if not reason:
        message = "no peer memory module is loaded; only a program with CUDA and verbs can show whether dma-buf works"
        return Precondition("?", skip("not-configured", f"{message}; NCCL_DEBUG=INFO reports whether NCCL uses it"))
    message = f"no peer memory module is loaded, and dma-buf requires {reason}"
    advice = _advice(box) + (", on the host of this container" if in_container(box) else "")
    return Precondition("no", replace(skip("not-configured", f"{message}; {advice}"), remedy=advice), message)


def _no_dma_buf(box: Box, gpu: Device | None) -> str:
    """What dma-buf lacks; empty where it may be available."""
    boards, modules = need(box.snapshot.gpu_board), need(box.snapshot.modules)
    system, nvml = need(box.snapshot.host), need(box.nvml)
    bdfs = {each.bdf for each in (box.gpus if gpu is None else (gpu,))}
    for board in boards:
        capability = board.compute_capability
        if board.bdf in bdfs and not isinstance(capability, Missing) and capability < _TURING:
            return "NVIDIA's open kernel modules (Turing and newer)"
    if need(modules.driver).flavour is not Flavour.OPEN:
        return "NVIDIA's open kernel modules, not the proprietary ones"
    if _major_minor(need(system.kernel_release)) < _DMABUF_KERNEL:
        return "Linux 5.12"
    return "a driver for CUDA 11.7" if need(nvml.cuda_version) < _DMABUF_CUDA else ""


def _major_minor(release: str) -> tuple[int, int]:
    """``5.15.0-126-generic`` -> 5, 15."""
    major, _, rest = release.partition(".")
    minor = rest.partition(".")[0]
    if not (major.isascii() and major.isdigit() and minor.isascii() and minor.isdigit()):
        return need(Missing(Gap.GARBLED, "/proc/sys/kernel/osrelease", release[:80]))
    return int(major[:6]), int(minor[:6])


def _advice(box: Box) -> str:
    modules = box.snapshot.modules
    driver = modules.driver if isinstance(modules, Modules) else None
    version = "" if driver is None or isinstance(driver, Missing) else str(driver.version)
    major = version.partition(".")[0]
    if major.isdecimal() and int(major[:6]) < _PEERMEM_DRIVER:
        return "to use GPUDirect RDMA, build nv_peer_mem for this driver and load it"
    return (
        "to use GPUDirect RDMA, run modprobe nvidia-peermem; on Invalid argument install MLNX_OFED or"
        " DOCA, then reinstall this driver"
    )


CHECKS = (
    Check(
        id="gdr.peer-memory",
        rule="Passes if nvidia_peermem or nv_peer_mem is loaded and registered; warns if one is loaded and not"
        " registered, or if both are loaded. Without either it is not judged: the site may not want GPUDirect RDMA, or"
        " use dma-buf, which requires the open kernel modules (Turing and newer), Linux 5.12 and a driver for CUDA"
        " 11.7.",
        source="/sys/module, /sys/module/ib_core/holders, /sys/kernel/mm/memory_peers, as NCCL (src/transport/net_ib)"
        " and UCX; https://docs.nvidia.com/cuda/gpudirect-rdma",
        remedy="reload the module: modprobe -r nvidia_peermem; modprobe nvidia_peermem; if it still does not register,"
        " install MLNX_OFED or DOCA and then reinstall the driver",
        judge=of_host(peer_memory),
        blames=host("peer memory module"),
    ),
)
