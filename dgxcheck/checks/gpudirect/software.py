"""GPUDirect RDMA: the software that it needs: peer memory or dma-buf, verbs devices, memory that may be locked."""

from __future__ import annotations

import shlex
from math import inf

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, host, remedy_of
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, counted, judged, skip
from dgxcheck.checks.engine.host_limits import in_container, loaded
from dgxcheck.checks.engine.precondition import Precondition, needs_facts
from dgxcheck.checks.gpudirect.preconditions import PEER_MODULES, of_host, rdma_configured
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.host import Flavour, JobDaemon, Memlock, MemlockLimit, Modules, Setting
from dgxcheck.facts.missing import Gap, Json, Missing, known, need, rows
from dgxcheck.facts.record import replace
from dgxcheck.facts.sysfs import MEMORY_PEERS
from dgxcheck.topology.model import Device

_CLIENTS = ("nv_mem", "nv_mem_nc")
_TURING = (7, 5)
_DMABUF_KERNEL, _DMABUF_CUDA = (5, 12), 11070
_PEERMEM_DRIVER = 470


@needs_facts
def peer_memory(box: Box, gpu: Device | None = None) -> Precondition:
    """Passes if nvidia_peermem or nv_peer_mem is loaded and registered; warns if one is loaded and not registered, if
    both are loaded, or if nvidia_peermem is of another version than the driver. Without either it is not judged: the
    site may not want GPUDirect RDMA, or use dma-buf, which requires the open kernel modules (Turing and newer), Linux
    5.12 and a driver for CUDA 11.7.

    Source: /sys/module, /sys/module/ib_core/holders, /sys/kernel/mm/memory_peers, as NCCL (src/transport/net_ib) and
    UCX; https://docs.nvidia.com/cuda/gpudirect-rdma

    A registered peer memory module, or dma-buf: for one GPU, or for all that were asked about.
    """
    modules = need(box.snapshot.modules)
    for module in modules.modules:
        need(module.loaded)
    names = loaded(box, *PEER_MODULES)
    evidence = tuple(Evidence(f"/sys/module/{name}", "loaded") for name in names)
    if len(names) > 1:
        message = "nvidia_peermem and nv_peer_mem are both loaded, and exclude each other"
        remedy = remedy_of("gdr.peer-memory", "both")
        judgement = judged(Fault.PEER_MEMORY, message, evidence=evidence, warns=True, remedy=remedy)
        return Precondition("no", judgement)
    if (other := _of_another_version(modules)) is not None:
        return Precondition("no", other)
    return _registered(modules, names[0], evidence) if names else _without_module(box, gpu)


def _of_another_version(modules: Modules) -> Judgement | None:
    """Of nvidia_peermem, which is built with the driver: programs that do without GPUDirect RDMA do not need it."""
    driver = modules.driver if isinstance(modules.driver, Missing) else modules.driver.version
    own = next((row.version for row in modules.modules if row.name == "nvidia_peermem" and row.loaded is True), "")
    if isinstance(own, Missing) or isinstance(driver, Missing) or own in ("", driver):
        return None
    message = f"nvidia_peermem is of version {own}, the driver of {driver}"
    evidence = (Evidence("/sys/module/nvidia_peermem/version", own), Evidence("/proc/driver/nvidia/version", driver))
    remedy = remedy_of("gdr.peer-memory", "another version")
    return judged(Fault.PEER_MEMORY, message, own, driver, evidence=evidence, warns=True, remedy=remedy)


def _registered(modules: Modules, name: str, evidence: tuple[Evidence, ...]) -> Precondition:
    peers, holders = modules.memory_peers, modules.ib_core_holders
    clients = [] if isinstance(peers, Missing) else [client.name for client in peers if client.name in _CLIENTS]
    if clients or (not isinstance(holders, Missing) and name in holders):
        where = f"{MEMORY_PEERS}/{clients[0]}" if clients else "ib_core"
        message = f"{name} is loaded and registered with {where}"
        return Precondition("ready", Judgement(Status.PASS, message, evidence=evidence))
    for fact in (peers, holders):
        if isinstance(fact, Missing) and fact.gap is not Gap.ABSENT:
            need(fact)
    others: Json = "absent" if isinstance(peers, Missing) else [client.name for client in peers]
    message = f"{name} is loaded, but not registered with ib_core"
    evidence = (*evidence, Evidence(MEMORY_PEERS, others))
    remedy = remedy_of("gdr.peer-memory")
    return Precondition("no", judged(Fault.PEER_MEMORY, message, evidence=evidence, warns=True, remedy=remedy))


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
    bdfs = {other.bdf for other in (box.gpus if gpu is None else (gpu,))}
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
    if not (major.isdecimal() and minor.isdecimal()):
        return need(Missing(Gap.GARBLED, "/proc/sys/kernel/osrelease", release[:80]))
    return int(major[:6]), int(minor[:6])


def _advice(box: Box) -> str:
    driver = known(need(box.snapshot.modules).driver)
    major = "" if driver is None else str(driver.version).partition(".")[0]
    if major.isdecimal() and int(major[:6]) < _PEERMEM_DRIVER:
        return remedy_of("gdr.peer-memory", "old driver")
    return remedy_of("gdr.peer-memory", "not loaded")


_OF_OLD_KERNELS = ("2.2-1", "3.0-1", "5.0-0")
"""``DRIVER_VERSION`` in Linux drivers/infiniband/hw/mlx5/main.c, which has none any more."""


@needs_facts
def stack(box: Box) -> Precondition:
    """Warns if an HCA has a verbs device that this user cannot open. A machine without verbs devices is not set up for
    RDMA and not judged.

    Source: open of /dev/infiniband/uverbs*

    Can programs open the verbs devices?
    """
    verbs = need(box.snapshot.device_nodes).verbs
    listed = () if isinstance(verbs, Missing) and verbs.gap is Gap.ABSENT else need(verbs)
    if not listed:
        if in_container(box):
            return Precondition("no", skip("not-visible", "this container has no /dev/infiniband/uverbs*"))
        message = "no /dev/infiniband/uverbs*; to use RDMA, run modprobe ib_uverbs"
        return Precondition("no", skip("not-configured", message))
    closed = [node for node in listed if node.opens is not True]
    for node in closed:
        if isinstance(node.opens, Missing) and node.opens.gap is not Gap.DENIED:
            need(node.opens)
    names = ", ".join(node.path for node in closed)
    if closed and in_container(box):
        return Precondition("no", skip("not-visible", f"this container may not open {names}"))
    if closed:
        evidence = tuple(Evidence(node.path, False) for node in closed)
        message = f"this user cannot open verbs devices; {names}"
        return Precondition("no", Judgement(Status.WARN, message, evidence=evidence, fault=Fault.VERBS))
    hcas = rows(box.snapshot.infiniband)
    devices = counted(len(listed), "verbs device")
    if len(listed) < len(hcas):
        message = f"{devices} for {len(hcas)} HCAs: it is not visible which HCAs have none"
        return Precondition("?", skip("not-visible", message))
    evidence = (Evidence("/dev/infiniband", len(listed)),)
    return Precondition("ready", Judgement(Status.PASS, f"{devices} can be opened; {_origin(box)}", evidence=evidence))


def _origin(box: Box) -> str:
    """MLNX_OFED's modules have versions of their own, those of current kernels have none."""
    version = next((module.version for module in box.modules if module.name == "mlx5_ib"), None)
    if not isinstance(version, str):
        return "inbox drivers"
    return f"drivers {version}, as in old kernels" if version in _OF_OLD_KERNELS else "drivers of MLNX_OFED or DOCA"


_OWN = "/proc/self/limits"
_SYSTEM = "/etc/systemd/system.conf"
_RESTART = {"slurmd": "run {} (running jobs continue with the old limit)"}
_DRAIN = "drain this node and run {}"
_RELOADS = "; where jobs run in containers, at the next drain: a reload of systemd can take their GPUs from these"
"""NVIDIA Container Toolkit, troubleshooting: containers losing access to GPUs."""


@needs_facts
def memlock(box: Box) -> Precondition:
    """Warns if a peer memory module is loaded and the user who runs dgxcheck, or the jobs of slurmd or pbs_mom, may
    lock less memory than a GPU has. Root's own limit is not judged: it does not apply to root, and jobs have another. A
    line of limits.conf, limits.d or systemd's files that sets this very limit is named.

    Source: Max locked memory in /proc/self/limits and, the hard one, in those of the daemons; ib_umem_get in Linux
    drivers/infiniband/core/umem.c; limits.conf(5), systemd.exec(5)

    The limits of this session and of the jobs of each daemon; root itself is not limited.
    """
    facts = need(box.snapshot.memlock)
    for daemon in facts.daemons:
        hard = daemon.limit.hard if isinstance(daemon.limit, MemlockLimit) else None
        if isinstance(hard, int) and not _covers_gpu(box, hard):
            return _jobs(box, facts, daemon, hard)
    soft = need(need(facts.own).soft)
    if soft is None:
        evidence = Evidence(_OWN, "unlimited")
        return Precondition("ready", Judgement(Status.PASS, "locked memory is unlimited", evidence=(evidence,)))
    return _session(box, facts, soft)


def _session(box: Box, facts: Memlock, soft: int) -> Precondition:
    evidence = Evidence(_OWN, soft)
    message = f"this session can lock {soft >> 10} KiB"
    if _covers_gpu(box, soft):
        message += ", more than a GPU's memory"
        return Precondition("ready", Judgement(Status.PASS, message, evidence=(evidence,)))
    if any(not isinstance(row.express, Missing) for row in rows(box.snapshot.config_space)):  # only root can read it
        message += ", which does not apply to root"
        if free := [each for each in facts.daemons if isinstance(each.limit, MemlockLimit) and each.limit.hard is None]:
            message += f"; jobs of {free[0].name} have no limit"
            return Precondition("ready", Judgement(Status.PASS, message, evidence=(evidence,)))
        message += "; jobs have the limit of their own session or daemon"
        return Precondition("ready", skip("not-configured", message, evidence))
    if not rdma_configured(box):
        return Precondition("no", skip("not-configured", message, evidence))
    line = _line_with(facts, soft)
    remedy = "" if line is None or _is_unit(line) else f"set unlimited in {_place(line)}, then log in again"
    return _too_low(message, soft, evidence, line, remedy)


def _jobs(box: Box, facts: Memlock, daemon: JobDaemon, hard: int) -> Precondition:
    """Of a job slurmd sets the soft limit alone (Slurm src/slurmd/slurmstepd/ulimits.c), pbs_mom passes on its own."""
    evidence = Evidence(f"hard limit in /proc/<pid of {daemon.name}>/limits", hard)
    message = f"jobs of {daemon.name} can lock {hard >> 10} KiB"
    if not rdma_configured(box):
        return Precondition("no", skip("not-configured", message, evidence))
    line = _line_with(facts, hard)
    line = line if line is not None and _is_unit(line) else None
    own = line is not None and not line.path.startswith(_SYSTEM)
    unit = shlex.quote(daemon.unit)
    where = f"systemctl edit {unit}: LimitMEMLOCK=infinity under [Service]"
    where = f"set LimitMEMLOCK=infinity in {_place(line)}" if line is not None and own else where
    restart = f"systemctl daemon-reload; systemctl restart {unit}"
    remedy = f"{where}, then {_RESTART.get(daemon.name, _DRAIN).format(restart)}"
    remedy += _RELOADS if daemon.name in _RESTART else ""
    return _too_low(message, hard, evidence, line, remedy)


def _too_low(message: str, limit: int, evidence: Evidence, line: Setting | None, remedy: str) -> Precondition:
    of_line = () if line is None else (Evidence(_place(line), line.text),)
    message = message if line is None else f"{message}; by {_place(line)}"
    facts = (limit, "unlimited", "bytes", (evidence, *of_line))
    return Precondition("no", judged(Fault.MEMLOCK, message, *facts, warns=True, remedy=remedy))


def _line_with(facts: Memlock, limit: int) -> Setting | None:
    """The last line that sets exactly this limit."""
    return next((line for line in reversed(facts.settings) if limit in line.limits), None)


def _is_unit(line: Setting) -> bool:
    return "/systemd/" in line.path


def _place(line: Setting) -> str:
    return f"line {line.line} of {line.path}"


def _covers_gpu(box: Box, limit: int) -> bool:
    """Is it at least the memory of the largest GPU?"""
    totals = [row.total for row in rows(box.snapshot.gpu_memory) if not isinstance(row.total, Missing)]
    return limit >= max(totals, default=inf)


CHECKS = (
    Check("gdr.peer-memory", of_host(peer_memory), host("peer memory module")),
    Check("gdr.stack", of_host(stack), host("verbs device nodes")),
    Check("gdr.memlock", of_host(memlock), host("memlock limit")),
)  # fmt: skip
