"""The cores, memory and HCA ports that belong to each GPU, and one process on them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile

from dgxcheck.facts.bdf import is_unplaced
from dgxcheck.facts.host import Cpu
from dgxcheck.facts.infiniband import PortState
from dgxcheck.facts.missing import BadInput, Gap, Missing, rows
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import ranges
from dgxcheck.facts.typical import majority
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import PCI_CLASSES, Device, Topology
from dgxcheck.topology.paths import NEAR


class Placement(Record, kw_only=False):
    """What a process on one GPU should use."""

    gpu: Device
    ports: tuple[str, ...]
    """The nearest ports of the compute fabric, ``mlx5_0:1``, its own one first; empty without any."""
    cpulist: str | Missing
    numa_node: int | Missing

    @property
    def port(self) -> str:
        """Its own port: GPUs with the same ports take them in turn. Empty without one."""
        return self.ports[0] if self.ports else ""


def placements(snapshot: Snapshot, topology: Topology) -> tuple[Placement, ...]:
    """One per GPU, in the order of the bus, which is CUDA's with ``CUDA_DEVICE_ORDER=PCI_BUS_ID``.

    A GPU that NVML does not open is left out, as CUDA does; so is one without a bus id, whose place is not known.
    """
    asked = any(gpu.index is not None for gpu in topology.gpus)
    usable = [gpu for gpu in topology.gpus if not is_unplaced(gpu.bdf) and (gpu.index is not None or not asked)]
    gpus = sorted(usable, key=lambda gpu: gpu.bdf or "")
    fabric = compute_ports(snapshot, topology)
    turns: Counter[tuple[str, ...]] = Counter()
    found = []
    for gpu in gpus:
        near = _nearest(topology, gpu, fabric)
        first = turns[near] % len(near) if near else 0
        turns[near] += 1
        found.append(Placement(gpu, near[first:] + near[:first], gpu.cpu_affinity, gpu.numa_node))
    return tuple(found)


def doubt(snapshot: Snapshot) -> str:
    """Why the numbers of the GPUs are not certain: those after one that NVML does not open may shift. Empty if none.

    Without NVML nothing tells which of the GPUs on the bus CUDA sees: a container has all of them in /sys.
    """
    if isinstance(nvml := snapshot.gpu, Missing):
        return f"NVML names no GPU ({nvml})"
    if nvml.lost:
        return f"NVML does not open {len(nvml.lost)} of {len(nvml.lost) + len(nvml.gpus)} GPUs ({nvml.lost[0].where})"
    if any(is_unplaced(gpu.bdf) for gpu in nvml.gpus):
        return "the bus id of a GPU is not known"
    return ""


def near_cpus(placed: Placement, permitted: Collection[int]) -> set[int]:
    """The CPUs near a GPU that a process may run on, of those that its cgroup and affinity permit.

    Empty where the near ones are unknown, or none of them is permitted.
    """
    near = ranges(placed.cpulist) if isinstance(placed.cpulist, str) else None
    return {cpu for cpu in permitted if any(cpu in run for run in near or ())}


def compute_ports(snapshot: Snapshot, topology: Topology) -> Mapping[str, tuple[str, ...]]:
    """The ports of the compute fabric by HCA: ``{"mlx5_0": ("mlx5_0:1",)}``.

    Storage and management ports are left out: where some HCAs share a PCIe switch with a GPU, only those count, and of
    these the ports that are up and of the link layer that most of them have. No single fact tells the fabrics apart.
    """
    hcas = [device for device in topology.adapters if device.bdf]
    below = [hca for hca in hcas if _class(topology, hca) in NEAR]
    up = {
        hca.name: [port for each in rows(snapshot.ib_ports) if each.device == hca.name
                   for port in rows(each.ports) if port.state is PortState.ACTIVE]
        for hca in below or hcas
    }  # fmt: skip
    layers = Counter(port.link_layer for ports in up.values() for port in ports if isinstance(port.link_layer, str))
    layer = layers.most_common(1)[0][0] if layers else None
    found = {name: tuple(f"{name}:{port.port}" for port in ports if port.link_layer == layer)
             for name, ports in up.items()}  # fmt: skip
    return {name: ports for name, ports in found.items() if ports}


def _class(topology: Topology, hca: Device) -> str:
    """The best way to any GPU; empty where none is known."""
    linked = {link.pci for gpu in topology.gpus if (link := topology.link(gpu, hca)).pci}
    return next((each for each in PCI_CLASSES if each in linked), "")


def _nearest(topology: Topology, gpu: Device, fabric: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    classes = {hca.name: PCI_CLASSES.index(link.pci) for hca in topology.devices
               if hca.name in fabric and (link := topology.link(gpu, hca)).pci}
    best = min(classes.values(), default=None)
    return tuple(port for name, rank in classes.items() if rank == best for port in fabric[name])


def cores_of_nodes(snapshot: Snapshot) -> Mapping[int, range]:
    """By node that has CPUs; empty where it cannot be told: CPUs offline, or nodes of different size.

    Nodes are in the order of their first CPU, which is that of the sockets; ``lstopo`` numbers cores (``Core L#``) so.
    """
    cpu, numa = snapshot.known_host.cpu, snapshot.numa
    if not isinstance(cpu, Cpu) or isinstance(cpu.cores, Missing) or isinstance(numa, Missing):
        return {}
    lists = {node.node: ranges(node.cpulist) for node in numa if isinstance(node.cpulist, str) and node.cpulist}
    cpus = {node: runs for node, runs in lists.items() if runs}
    sizes = {sum(map(len, runs)) for runs in cpus.values()}
    if not cpus or len(sizes) != 1 or cpu.cores % len(cpus) or sizes.pop() * len(cpus) != cpu.threads:
        return {}
    each = cpu.cores // len(cpus)
    ordered = sorted(cpus, key=lambda node: min(run.start for run in cpus[node]))
    return {node: range(number * each, (number + 1) * each) for number, node in enumerate(ordered)}


LOCAL_RANK = {
    "LOCAL_RANK": "torchrun", "OMPI_COMM_WORLD_LOCAL_RANK": "Open MPI", "MPI_LOCALRANKID": "Intel MPI and MPICH",
    "MV2_COMM_WORLD_LOCAL_RANK": "MVAPICH", "PALS_LOCAL_RANKID": "Cray PALS", "PMI_LOCAL_RANK": "Cray PMI",
    "JSM_NAMESPACE_LOCAL_RANK": "IBM JSM", "FLUX_TASK_LOCAL_ID": "Flux", "SLURM_LOCALID": "Slurm",
}  # fmt: skip
"""Where launchers say it; the first that is set counts. Schedulers come last: a launcher that one task of a job starts
leaves ``SLURM_LOCALID=0`` to all its processes."""
VISIBLE = "CUDA_VISIBLE_DEVICES"
_INDEX = LazyPattern(r"\s*([+-]?)0*(\d{1,18})", flags=re.ASCII)
_UNSURE = (Gap.DENIED, Gap.GARBLED, Gap.LOST, Gap.TIMEOUT)


def local_rank(environment: Mapping[str, str]) -> int | None:
    """Of this process on its node; None where no launcher says it. Raises BadInput for what is no number."""
    for name, launcher in LOCAL_RANK.items():
        if text := environment.get(name, ""):
            if not (text.isascii() and text.isdigit() and len(text) < 7):
                raise BadInput(f"{name}={text[:40]}: not a local rank of {launcher}")
            return int(text)
    return None


def of_rank(placed: Sequence[Placement], rank: int, visible: str | None) -> Placement:
    """The GPU of a local rank among those of ``CUDA_VISIBLE_DEVICES``; more ranks take turns.

    Indexes are in the order of the bus: ``bind`` sets ``CUDA_DEVICE_ORDER``. Raises BadInput where CUDA sees none, or
    where it is not certain which.
    """
    seen = [*placed] if visible is None else _visible(placed, visible)
    if not seen:
        raise BadInput("no GPU found; see dgxcheck health" if visible is None else
                       f"{_shown(visible)}: no GPU of this machine")  # fmt: skip
    return seen[rank % len(seen)]


def unlike(placed: Sequence[Placement], own: Placement) -> str:
    """Why a rank's GPU may not be meant, and the list that leaves it out: most are of another model, as beside the GPU
    of a display. Empty where it is as most are."""
    models = ["" if each.gpu.function is None else each.gpu.function.ids for each in placed]
    model = majority(models)
    if model in (None, models[placed.index(own)]):
        return ""
    others = ",".join(str(index) for index, each in enumerate(models) if each == model)
    return f"{own.gpu.name} is not of the model of the other GPUs; {VISIBLE}={others} leaves it out"


def divided(snapshot: Snapshot, placed: Sequence[Placement], visible: str | None) -> str:
    """Why ranks do not get whole GPUs; empty where they do, and where the list names a MIG device.

    Where CUDA sees a MIG device it sees no other, nor a GPU (MIG user guide, CUDA device enumeration).
    """
    modes_of = {modes.bdf: modes.mig for modes in rows(snapshot.gpu_modes)}
    mig = {bdf for bdf, mode in modes_of.items() if mode is True}
    unsure = {bdf for bdf, mode in modes_of.items() if isinstance(mode, Missing) and mode.gap in _UNSURE}
    seen = placed if visible is None else _visible(placed, visible)
    if (visible or "").startswith("MIG-"):
        return ""
    found = [each.gpu.name for each in seen if each.gpu.bdf in mig]
    unread = [each.gpu.name for each in seen if each.gpu.bdf in unsure]
    if found:
        return f"MIG is enabled on {found[0]}: CUDA sees one MIG device and no other GPU"
    return f"whether MIG is enabled on {unread[0]} is not known" if unread else ""


def _visible(placed: Sequence[Placement], visible: str) -> list[Placement]:
    """What CUDA sees, in its order: what follows the first entry that names no GPU it does not see.

    https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html has the rules; those
    that it leaves out are as ``_parse_visible_devices`` of PyTorch has them (torch/cuda/__init__.py): the first entry
    says whether all are indexes, which strtol reads, or UUIDs, and none is seen where one is named twice. Of MIG
    devices CUDA uses the first (MIG user guide, CUDA device enumeration).
    """
    words = visible.split(",")
    kind = next((each for each in ("GPU-", "MIG-") if words[0].strip().startswith(each)), "")
    if kind and any(word != word.strip() for word in words):
        raise BadInput(f"{_shown(visible)}: blanks beside a UUID; leave them out")
    entries = words[:1] if kind == "MIG-" else words
    find = _by_uuid if kind else _by_index
    seen = [each for each in takewhile(bool, (find(placed, word, kind) for word in entries)) if each is not None]
    if len({placement.gpu.bdf for placement in seen}) != len(seen):
        raise BadInput(f"{_shown(visible)}: names a GPU twice, which CUDA refuses")
    return seen


def _shown(visible: str) -> str:
    return f"{VISIBLE}={' '.join(visible[:60].split())}"


def _by_index(placed: Sequence[Placement], text: str, _: str) -> Placement | None:
    """``0``, `` +1``, ``2x``; None for what names no GPU."""
    number = int(match[1] + match[2]) if (match := _INDEX.match(text)) else -1
    return placed[number] if 0 <= number < len(placed) else None


def _by_uuid(placed: Sequence[Placement], text: str, kind: str) -> Placement | None:
    """``GPU-8932f937``, ``MIG-GPU-8932f937/13/0``; None for what names no GPU, or several."""
    if not text.startswith(kind):
        return None
    uuid = text.removeprefix("MIG-").partition("/")[0]
    if not uuid.startswith("GPU-") and len(placed) == 1:
        return placed[0]  # where a job has one MIG device, its cgroup shows it no other GPU
    found = [each for each in placed if isinstance(each.gpu.uuid, str) and each.gpu.uuid.startswith(uuid)]
    unread = [placement.gpu.name for placement in placed if not isinstance(placement.gpu.uuid, str)]
    if not uuid.startswith("GPU-") or (unread and (len(found) != 1 or found[0].gpu.uuid != uuid)):
        why = f"the UUID of {unread[0]} is not known" if unread else "of which GPU it is a part is not known"
        raise BadInput(f"{_shown(text)}: {why}; give the index of the GPU")
    return found[0] if len(found) == 1 else None
