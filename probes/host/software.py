"""Kernel modules, services, the device nodes of GPUs and HCAs, and how much memory jobs may lock and what sets that."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain, islice

from dgxcheck.facts.host import (
    DeviceNode,
    DeviceNodes,
    Flavour,
    Imex,
    JobDaemon,
    Memlock,
    MemlockLimit,
    MemoryPeer,
    Module,
    Modules,
    NvidiaDriver,
    Setting,
    Unit,
)
from dgxcheck.facts.missing import Gap, Missing, need, or_gap
from dgxcheck.facts.sysfs import MEMORY_PEERS, SERVICE_GROUPS
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.source.protocol import Source
from probes.ask import ask, decimal, files, garbled, is_decimal, line, mapped, numbered
from probes.pci.tree import roles

WATCHED = (
    "nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem", "nv_peer_mem", "nvidia_fs", "gdrdrv",
    "nouveau", "mlx5_core", "mlx5_ib", "mlx4_core", "mlx4_ib", "ib_core", "ib_uverbs", "vfio_pci", "vfio_pci_core",
    "kvm_intel", "kvm_amd", "mdev", "nvidia_vgpu_vfio",
)  # fmt: skip
_MODULES = "/sys/module"
_DRIVER = "/proc/driver/nvidia"


def modules(source: Source) -> Modules:
    """``/sys/module``, ``/sys/kernel/mm/memory_peers``, ``/proc/driver/nvidia``."""
    names = source.names(_MODULES)
    loaded = names if isinstance(names, Missing) else frozenset(names)
    return Modules(
        modules=tuple(_module(source, name, loaded) for name in WATCHED),
        ib_core_holders=source.names(f"{_MODULES}/ib_core/holders"),
        memory_peers=_peers(source),
        driver=ask(source, f"{_DRIVER}/version", driver_version),
        driver_params=ask(source, f"{_DRIVER}/params", driver_params),
    )


def _module(source: Source, name: str, loaded: frozenset[str] | Missing) -> Module:
    base = f"{_MODULES}/{name}"
    if isinstance(loaded, Missing) or name not in loaded:
        gap = loaded if isinstance(loaded, Missing) else Missing(Gap.ABSENT, base, "not loaded")
        is_loaded = loaded if isinstance(loaded, Missing) else False
        return Module(name=name, loaded=is_loaded, version=gap, refcnt=gap, state=gap)
    facts = files(source, Module, base, version=line, refcnt=decimal, state=line)
    return Module(name=name, loaded=True, **facts)


def _peers(source: Source) -> tuple[MemoryPeer, ...] | Missing:
    def peer(name: str) -> MemoryPeer:
        return MemoryPeer(name=name, version=ask(source, f"{MEMORY_PEERS}/{name}/version", line))

    return mapped(source.names(MEMORY_PEERS), peer)


SERVICES = (
    "nvidia-persistenced", "nvidia-dcgm", "dcgm", "dcgm-exporter", "nvidia-dcgm-exporter", "nvidia_gpu_exporter",
    "nvsm", "nvsm-core", "nvsm-mqtt", "nvsm-api-gateway", "nvidia-fabricmanager", "nvidia-imex", "nvidia-vgpu-mgr",
    "nvidia-vgpud", "display-manager", "gdm", "gdm3", "lightdm", "sddm", "slurmd", "pbs", "kubelet",
)  # fmt: skip
_ALWAYS = "systemd-journald.service"
"""Runs wherever systemd does: without its group the groups of the host are not seen from here."""
_TARGETS = ("multi-user.target.wants", "graphical.target.wants")


def units(source: Source) -> tuple[Unit, ...]:
    """A unit runs while it has a control group (systemd.resource-control(5)); it is enabled where a target wants it.

    Each unit is asked for by its name, so that a recording holds the names of no others.
    """
    seen = any(not isinstance(source.names(f"{group}/{_ALWAYS}"), Missing) for group in SERVICE_GROUPS)
    return tuple(Unit(name=name, running=_runs(source, name, seen), enabled=_enabled(source, name))
                 for name in SERVICES)  # fmt: skip


def _runs(source: Source, name: str, seen: bool) -> bool | Missing:
    if not seen:
        return Missing(Gap.UNRECORDED, SERVICE_GROUPS[0], "control groups of the host not seen")
    return any(not isinstance(source.names(f"{group}/{name}.service"), Missing) for group in SERVICE_GROUPS)


def _enabled(source: Source, name: str) -> bool | Missing:
    answers = [source.link(f"/etc/systemd/system/{target}/{name}.service") for target in _TARGETS]
    if any(not isinstance(answer, Missing) for answer in answers):
        return True
    gaps = [answer for answer in answers if isinstance(answer, Missing) and answer.gap is not Gap.ABSENT]
    return gaps[0] if gaps else False


_IMEX, _IMEX_NODES = "nvidia-imex", "/etc/nvidia-imex/nodes_config.cfg"


def imex(source: Source) -> Imex:
    """The nodes in IMEX's list, a name or address per line."""
    unit = next(unit for unit in units(source) if unit.name == _IMEX)
    if True not in (unit.running, unit.enabled):
        return Imex(nodes=Missing(Gap.UNASKED, _IMEX_NODES, f"{_IMEX} neither runs nor is enabled"))
    listed = source.text(_IMEX_NODES)
    if isinstance(listed, Missing):
        return Imex(nodes=listed)
    return Imex(nodes=sum(bool(line.partition("#")[0].strip()) for line in listed.splitlines()))


_VERBS = "/dev/infiniband"


def device_nodes(source: Source) -> DeviceNodes:
    """``/dev/nvidiactl``, ``/dev/nvidia-uvm``, a ``/dev/nvidia<minor>`` per GPU, ``/dev/infiniband/uverbs*``."""
    return DeviceNodes(control=_node(source, "/dev/nvidiactl"), uvm=_node(source, "/dev/nvidia-uvm"),
                       gpus=_gpus(source), verbs=_verbs(source))


@or_gap
def _gpus(source: Source) -> tuple[DeviceNode, ...]:
    """The driver gives out minor numbers from 0 (``nvidia_frontend.c``)."""
    return tuple(_node(source, f"/dev/nvidia{minor}") for minor in range(len(need(roles(source)).gpus)))


def _verbs(source: Source) -> tuple[DeviceNode, ...] | Missing:
    """``/dev/infiniband`` holds ``umad``, ``issm`` and ``rdma_cm`` too."""
    return mapped(numbered(source, _VERBS, "uverbs"), lambda number: _node(source, f"{_VERBS}/uverbs{number}"))


def _node(source: Source, path: str) -> DeviceNode:
    return DeviceNode(path=path, opens=source.opens(path))


_VERSION = LazyPattern(r"[0-9]{2,4}\.[0-9]{1,4}(?:\.[0-9]{1,4})?", ".")


def driver_version(text: str, where: str) -> NvidiaDriver | Missing:
    """``NVRM version: NVIDIA UNIX x86_64 Kernel Module  418.67``; the open driver says Open Kernel Module."""
    first = text.partition("\n")[0]
    label, _, rest = first.partition(":")
    if label.strip() != "NVRM version" or "Kernel Module" not in rest:
        return garbled(text, where)
    flavour = Flavour.OPEN if "Open Kernel Module" in rest else Flavour.PROPRIETARY
    for field in rest.partition("Kernel Module")[2].split():
        if _VERSION.fullmatch(field):
            return NvidiaDriver(version=field, flavour=flavour)
    return garbled(first, where)


def driver_params(text: str, where: str) -> dict[str, str] | Missing:
    """``EnableMSI: 1`` per line."""
    params = {}
    for row in text.splitlines():
        name, colon, value = row.partition(":")
        if not colon or not name.strip():
            return garbled(row, where)
        params[name.strip()] = value.strip()
    return params or garbled(text, where)


_LABEL = "Max locked memory "
DAEMONS = (("slurmd", "slurmd.service"), ("pbs_mom", "pbs.service"))
"""Name of the process, and of its unit. Containers are left out: whoever starts one gives it a limit."""
_MOST_PIDS, _MOST_FILES, _MOST_LINES, _LONGEST = 16, 100, 1000, 200
_PAM, _PAM_MORE = "/etc/security/limits.conf", "/etc/security/limits.d"
_SYSTEMD = "/etc/systemd/system.conf"
_UNITS = ("/usr/lib/systemd/system", "/etc/systemd/system")


def memlock(source: Source) -> Memlock:
    """``/proc/<pid>/limits`` of this process and of the daemons that start jobs; pam_limits and systemd set them."""
    daemons = tuple(_daemons(source))
    units = [daemon.unit for daemon in daemons]
    return Memlock(
        own=ask(source, "/proc/self/limits", max_locked_memory),
        daemons=daemons,
        settings=tuple(islice(chain(_of(source, of_pam, _PAM, _PAM_MORE), _of_units(source, units)), _MOST_LINES)),
    )


def max_locked_memory(text: str, where: str) -> MemlockLimit | Missing:
    """``Max locked memory         8388608              unlimited            bytes``."""
    row = next((row for row in text.splitlines() if row.startswith(_LABEL)), None)
    if row is None:
        return Missing(Gap.GARBLED, where, "no line of locked memory")
    words = row[len(_LABEL) :].split()
    if len(words) != 3 or words[2] != "bytes":
        return garbled(row, where)
    return MemlockLimit(soft=_bytes(words[0], where), hard=_bytes(words[1], where))


def _bytes(word: str, where: str) -> int | Missing | None:
    if word == "unlimited":
        return None
    return int(word) if is_decimal(word) else garbled(word, where)


def _daemons(source: Source) -> Iterator[JobDaemon]:
    """Those that run, known by the process of that name in the control group of their unit, or by their pid file."""
    for name, unit in DAEMONS:
        places = [f"{group}/{unit}/cgroup.procs" for group in SERVICE_GROUPS] + [f"/run/{name}.pid"]
        for pid in dict.fromkeys(pid for place in places for pid in _pids(source, place)):
            if ask(source, f"/proc/{pid}/comm", line) == name:
                yield JobDaemon(name=name, unit=unit, limit=ask(source, f"/proc/{pid}/limits", max_locked_memory))
                break


def _pids(source: Source, path: str) -> list[str]:
    text = source.text(path)
    words = [] if isinstance(text, Missing) else text.split(maxsplit=_MOST_PIDS)[:_MOST_PIDS]
    return [word for word in words if is_decimal(word)]


def _of_units(source: Source, units: list[str]) -> Iterator[Setting]:
    if not units:
        return
    yield from _of(source, of_systemd, _SYSTEMD, f"{_SYSTEMD}.d")
    for folder in _UNITS:
        for unit in units:
            yield from _of(source, of_systemd, f"{folder}/{unit}", f"{folder}/{unit}.d")


def _of(source: Source, limits_of: Callable[[str], Limits | None], file: str, folder: str) -> Iterator[Setting]:
    """What a file and the ``*.conf`` of a directory set; files that cannot be read set nothing that could be shown."""
    names = source.names(folder)
    more = () if isinstance(names, Missing) else tuple(name for name in names if name.endswith(".conf"))[:_MOST_FILES]
    for path in (file, *(f"{folder}/{name}" for name in more)):
        text = source.text(path)
        for number, row in enumerate(() if isinstance(text, Missing) else text.split("\n"), 1):
            if (limits := limits_of(row)) is not None:
                yield Setting(path=path, line=number, text=" ".join(row.split())[:_LONGEST], limits=limits)


Limits = tuple["int | None", ...]
_UNLIMITED = ("unlimited", "infinity", "-1")
_TYPES = ("soft", "hard", "-")
_KIB = 1024
_UNIT = LazyPattern(r"(?:Default)?LimitMEMLOCK\s*=\s*(?P<value>[^\s:]+)(?::(?P<hard>\S+))?\s*", flags=re.ASCII)
_SIZES = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = LazyPattern(r"(\d{1,18})([BKMGT]?)", flags=re.ASCII)


def of_pam(line: str) -> Limits | None:
    """``* hard memlock 64`` in KiB (limits.conf(5)); None for what sets no memlock."""
    words = line.partition("#")[0].split()
    if len(words) != 4 or words[1] not in _TYPES or words[2] != "memlock":
        return None
    if words[3] in _UNLIMITED:
        return (None,)
    return (int(words[3]) * _KIB,) if is_decimal(words[3]) else None


def of_systemd(line: str) -> Limits | None:
    """``LimitMEMLOCK=8M``, ``DefaultLimitMEMLOCK=64K:infinity`` (systemd.exec(5)); None for what sets no memlock."""
    match = _UNIT.fullmatch(line.strip())
    found = [] if match is None else [_size(match[part]) for part in ("value", "hard") if match[part]]
    return tuple(None if size < 0 else size for size in found if size is not None) or None


def _size(word: str) -> int | None:
    """Bytes, -1 for unlimited; None for what is no size."""
    if word in _UNLIMITED:
        return -1
    match = _SIZE.fullmatch(word)
    return int(match[1]) * _SIZES[match[2]] if match else None
