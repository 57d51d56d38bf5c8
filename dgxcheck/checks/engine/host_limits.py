"""Limits that the kernel's command line sets, and what the host hides of itself."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.expected import expected
from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.components.component import Component, host_part
from dgxcheck.facts.host import Cpu
from dgxcheck.facts.missing import Gap, Missing, known, rows, text_of


def parameters(cmdline: str) -> tuple[tuple[str, str], ...]:
    """``pci=nomsi,noaer quiet`` as ``(("pci", "nomsi"), ("pci", "noaer"), ("quiet", ""))``, in the kernel's order.

    What follows ``--`` is for init.
    """
    return tuple(_split(cmdline.partition(" -- ")[0]))


def _split(cmdline: str) -> Iterator[tuple[str, str]]:
    try:
        words = shlex.split(cmdline)
    except ValueError:
        words = cmdline.split()
    for word in words:
        name, _, value = word.partition("=")
        for each in value.split(",") if value else ("",):
            yield name, each


NUMA_SETTING = "NUMA setting"
COMMAND_LINE = "kernel command line"
CPU_PARAMETERS = ("maxcpus", "nr_cpus", "possible_cpus")
MEMORY_PARAMETERS = ("mem",)
NUMA_PARAMETERS = ("numa",)


def command_line(box: Box) -> tuple[tuple[str, str], ...]:
    """Parameters of the kernel and their values; empty where they are not known."""
    return parameters(text_of(box.snapshot.known_host.cmdline))


def left_out(box: Box, names: Collection[str]) -> Iterator[Component]:
    """The kernel command line, where one of these parameters is on it: what they leave out is not broken."""
    if any(name in names and value not in ("", "on") for name, value in command_line(box)):
        yield host_part(COMMAND_LINE)


def missing_socket(box: Box) -> Iterator[Component]:
    """The socket that is missing, where fewer have CPUs than in the reference machine.

    Its memory, GPUs and HCAs are missing with it. CPUs that the command line leaves out are no missing socket.
    """
    cpu, reference = box.snapshot.known_host.cpu, expected(box, "host.sockets")
    if not isinstance(cpu, Cpu) or isinstance(cpu.sockets, Missing) or isinstance(reference, Judgement):
        return
    if cpu.sockets < reference.value and not any(left_out(box, CPU_PARAMETERS)):
        yield host_part("missing socket")


def nodes_below_roots(box: Box) -> Mapping[str, Mapping[int, Sequence[str]]]:
    """By root bus the names of its GPUs and HCAs by NUMA node, where there is more than one.

    A root bus belongs to one node, and its devices have theirs from it. A node that is not known (-1) is left out.
    """
    below: dict[str, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for device in box.topology.devices:
        node = None if device.function is None else device.function.numa_node
        if isinstance(node, int) and node >= 0 and not isinstance(device.path, Missing):
            below[device.path[0]][node].append(device.name)
    return {root: by_node for root, by_node in sorted(below.items()) if len(by_node) > 1}


def nodes_without_memory(box: Box) -> tuple[int, ...]:
    """NUMA nodes with CPUs and no memory while others have some: no DIMM of theirs works."""
    cpus = {node.node for node in rows(box.snapshot.numa) if isinstance(node.cpulist, str) and node.cpulist}
    sizes = {row.node: row.memory_kb for row in rows(box.snapshot.numa_memory) if isinstance(row.memory_kb, int)}
    return tuple(sorted(node for node, size in sizes.items() if not size and node in cpus and any(sizes.values())))


def in_container(box: Box) -> bool:
    """Is this a container? It sees all GPUs of the host on PCI, also those that are not assigned to it."""
    return isinstance(box.snapshot.known_host.container, str)


def driver_parameter(box: Box, name: str) -> str:
    """Of the loaded NVIDIA driver, from ``/proc/driver/nvidia/params``; empty where it is not known."""
    modules = known(box.snapshot.modules)
    params = known(modules.driver_params) if modules is not None else None
    return (params or {}).get(name, "").strip('"')


def is_assigned(box: Box) -> bool:
    """Does a container or hypervisor choose what this machine sees of the host's devices?"""
    return in_container(box) or guest(box) is not None


def gpus_hidden(box: Box) -> str:
    """Why the machine may have more GPUs than are visible; empty on the host itself."""
    if in_container(box):
        return "a container sees only the GPUs assigned to it"
    host = box.snapshot.known_host
    if isinstance(host.vm, str):
        return "a virtual machine sees only the GPUs assigned to it"
    if host.gpus_named:
        return "these outputs name GPUs and list none: there may be others"
    return ""


def minors_gone(box: Box) -> tuple[int, ...]:
    """Minor numbers below the highest that no GPU has, where NVML lists all GPUs of PCI: those of GPUs that were
    removed. The driver gives the lowest that is free (nvidia_frontend_add_device)."""
    listed = box.snapshot.listed_gpus
    minors = {row.minor for row in listed if isinstance(row.minor, int)}
    if not minors or not len(minors) == len(listed) == len(box.topology.gpus) or in_container(box):
        return ()
    highest = max(minors)
    few = highest < 2 * len(minors) - 1  # fewer gone than there are, which bounds the range too
    return tuple(sorted({*range(highest)} - minors)) if few and min(minors) >= 0 else ()


def hcas_hidden(box: Box) -> str:
    """Why ``/sys/class/infiniband`` may be missing on a machine with HCAs; empty if it is present."""
    devices = box.snapshot.infiniband
    absent = isinstance(devices, Missing) and devices.gap is Gap.ABSENT
    return "hidden by a container" if absent and in_container(box) else ""


def cpus_hidden(box: Box) -> str:
    """Why the machine may have more CPUs and memory: LXCFS shows a container its share as if it were the whole."""
    lxc = text_of(box.snapshot.known_host.container).startswith("lxc")
    return "a container's share of the host" if lxc else ""


KVM = ("kvm_intel", "kvm_amd")


def guests_running(box: Box) -> str:
    """The sign, in words, that virtual machines run on this host; empty without one."""
    used = (row.name for row in box.modules if row.name in KVM and isinstance(row.refcnt, int) and row.refcnt > 0)
    return next((f"{name} is in use" for name in used), "")


def loaded(box: Box, *names: str) -> list[str]:
    """Which of these modules the kernel has."""
    return [module.name for module in box.modules if module.name in names and module.loaded is True]


_OF_VIRTUAL_MACHINES = ("vfio_pci", "vfio_pci_core", "mdev", "nvidia_vgpu_vfio")
"""Loaded on purpose, to pass devices to virtual machines; the second one by vfio_pci and by what vendors have in its
place, the last two for mediated devices."""
_VFIO = ("vfio-pci", "vfio_pci")
"""How drivers are named: those of the kernel's drivers/vfio/pci too, as mlx5_vfio_pci and nvgrace-gpu-vfio-pci."""


def hypervisor(box: Box) -> str:
    """The sign, in words, that this host passes devices to virtual machines; empty without one."""
    for function in box.topology.functions.values():
        if isinstance(function.driver, str) and function.driver.endswith(_VFIO):
            return f"{function.bdf} is bound to {function.driver}"
    if names := loaded(box, *_OF_VIRTUAL_MACHINES):
        return f"{names[0]} is loaded"
    return guests_running(box)


def hypervisor_gaps(box: Box) -> Iterator[Missing]:
    """Facts that ``hypervisor`` needs and that could not be read; a KVM built into the kernel has no use count."""
    modules = ((row.loaded, row.refcnt if row.name in KVM and row.loaded is True else None) for row in box.modules)
    drivers = (function.driver for function in box.topology.functions.values())
    facts = (box.snapshot.modules, *(fact for both in modules for fact in both), *drivers)
    yield from (fact for fact in facts if isinstance(fact, Missing))
