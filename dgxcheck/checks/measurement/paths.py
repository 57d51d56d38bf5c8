"""The components that the data of a measurement crossed, and those that a failed one can come from.

The likeliest to be slow comes first. Figures of one kind of traffic exonerate for each other what they crossed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from dgxcheck.bandwidth.links import physical
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import component_of, device_of
from dgxcheck.checks.engine.expected import between_all
from dgxcheck.checks.engine.finding import Judgement, Status, Subject
from dgxcheck.checks.measurement.comparisons import over_network
from dgxcheck.checks.measurement.lookup import collect
from dgxcheck.checks.pcie.isolation import between, blocking_settings, most_blocking_settings
from dgxcheck.components.component import DRIVER, FABRIC_MANAGER, PEER_TRAFFIC, Component, host_part
from dgxcheck.components.containment import NVSWITCHES
from dgxcheck.components.locate import (
    all_nvlinks,
    device_part,
    far_ends,
    is_below,
    link_of,
    links_above,
    nvlinks_between,
    peer_path,
)
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import rows
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import hops_between

HOST_MEMORY, P2P_SETTING, NCCL_SETTINGS = "memory bandwidth", "P2P setting", "settings of NCCL"
NCCL_NETWORK = "network of NCCL"
TRUNKS = host_part(NVSWITCHES.part, "trunk links")
"""Between the NVSwitches of two baseboards."""
RINGS = "rings"
"""Part of the host in findings about dgxcheck's own copies around rings of NVLinks."""


def host_copy(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """From a GPU up to host memory; of a GPU that is known by number alone, the GPU and host memory."""
    gpu = device_of(box, subject)
    if gpu is None:
        yield component_of(box, subject)
    else:
        yield from links_above(box, gpu)
        yield from _gpu_and_memory(box, gpu)
        if isinstance(gpu.numa_node, int):
            yield host_part(HOST_MEMORY, f"NUMA node {gpu.numa_node}")
    yield host_part(HOST_MEMORY)


def memory_copy(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The memory of a GPU. Where it is fast the GPU as a whole is too, which exonerates it for other copies."""
    gpu = device_of(box, subject)
    if gpu is not None and judgement.status is Status.PASS:
        yield device_part(box, gpu)
    yield component_of(box, subject, "memory")


def peer_copy(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The NVLinks or PCIe links between two GPUs, with settings in the way, then the GPUs; for the host, of all."""
    pair = _pair(box, subject)
    if pair is None:
        yield from _all_pairs(box) if subject.kind == "host" else _by_number(box, subject)
        return
    a, b = pair
    link = box.topology.link(a, b)
    if link.nvlinks:
        yield from _nvlinks(box, a, b)
    elif link.nvlinks is None and between_all(box, [gpu.name for gpu in box.topology.gpus]):
        yield from (*(device_part(box, end, "NVLink") for end in pair), all_nvlinks(box))
    else:
        yield from blocking_settings(box, a, b)
        yield from (link_of(box, hop) for hop in physical(rows(hops_between(a, b, box.topology.functions))))
        if link.pci == "SOC":
            nodes = sorted(str(gpu.numa_node) for gpu in pair)
            yield Component(kind="socket-interconnect", name=f"NUMA nodes {' and '.join(nodes)}")
        for bus in rows(a.path)[:1] if link.pci == "PHB" else ():
            below = tuple(gpu.name for gpu in box.topology.gpus if is_below(gpu, bus))
            yield Component(kind="host-bridge", name=bus, part=PEER_TRAFFIC, shared_by=below)
        yield peer_path(a, b)
        yield host_part(P2P_SETTING)
    yield from _gpu_and_memory(box, a)
    yield from _gpu_and_memory(box, b)


def small_copy(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """Of latency: settings that keep two GPUs from each other, else whether peer access is in use at all; of several
    pairs also that of all, and a GPU that several have."""
    pair = _pair(box, subject)
    if pair is None:
        yield from _by_number(box, subject)
        return
    yield from blocking_settings(box, *pair)
    yield peer_path(*pair)
    measured = {frozenset((row.a, row.b)) for row in collect(box).of_kinds("latency") if row.a != row.b}
    if len(measured) > 1:
        yield host_part(P2P_SETTING)
    yield from (device_part(box, end) for end in pair if sum(end.bdf in ends for ends in measured) > 1)


def collective(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """For NCCL its settings, which rings of dgxcheck's own copies do not depend on; then all NVLinks and GPUs.

    A collective alone does not tell one GPU from another: settings are looked at before anything is reset.
    """
    if _is_over_network(box, subject):
        yield host_part(NCCL_NETWORK)
        return
    if subject.part != RINGS:
        yield host_part(NCCL_SETTINGS)
    for a, b in combinations(box.topology.gpus, 2):
        if box.topology.link(a, b).nvlinks:
            yield from _nvlinks(box, a, b)
    for gpu in box.topology.gpus:
        yield from _gpu_and_memory(box, gpu)


def _is_over_network(box: Box, subject: Subject) -> bool:
    """Is the finding about a collective over several hosts, whose bandwidth is that of the network between them?"""
    of = " ".join(subject.part.split()[:2])
    return any(f"{row.a} {row.b}" == of and over_network(box, row) for row in rows(box.snapshot.measurement))


def nccl_or_nvlinks(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """Of failed or wrong collectives: that run of NCCL; of failed copies around rings: the NVLinks of all GPUs."""
    if subject.part == RINGS:
        yield all_nvlinks(box)
    else:
        yield host_part("results of NCCL", subject.part)


def _not_ready(fault: FaultKind | None) -> Component:
    """What keeps CUDA from starting."""
    return FABRIC_MANAGER if fault is Fault.FABRIC_MANAGER_DOWN else DRIVER


def gpu_or_driver(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """Of a failed measurement: the GPU; the driver where nothing could be measured."""
    yield _not_ready(judgement.fault) if subject.kind == "host" else component_of(box, subject)


def pair_or_driver(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """Of failed measurements between GPUs: what joins the two, then the GPUs; the driver where none could be made."""
    yield from (_not_ready(judgement.fault),) if subject.kind == "host" else between_pair(box, subject, judgement)


def pair_or_setting(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """Of wrong data between GPUs: what joins the two; the P2P setting of the host where the GPUs are not named."""
    yield from (host_part(P2P_SETTING),) if subject.kind == "host" else between_pair(box, subject, judgement)


def between_pair(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """Their NVLinks, or over PCIe the settings in the way and their peer access, then the two GPUs.

    No PCIe link: one that fails rather than is slow shows in the counters of the link.
    """
    pair = _pair(box, subject)
    yield from (component_of(box, subject),) if pair is None else between(box, *pair)


_PARTS: Mapping[FaultKind | None, str] = {
    Fault.POWER_BRAKE: "power supply", Fault.POWER_CAPPED: "power limit", Fault.CLOCKS_LOWERED: "clock setting",
    Fault.ECC_UNCORRECTED: "memory", Fault.OVERHEATING: "cooling", Fault.THERMAL_SLOWDOWN: "cooling",
    Fault.HARDWARE_SLOWDOWN: "cooling", Fault.CLOCKS_LIMITED: "versions and settings",
}  # fmt: skip
_LESS_LIKELY: Mapping[FaultKind | None, str] = {
    Fault.SLOW: "cooling", Fault.POWER_REACHED: "cooling", Fault.WRONG_DATA: "memory",
}  # fmt: skip


def loaded_gpu(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """Of a GPU under load: the part that its fault names, else the GPU; the run itself for the host."""
    fault = judgement.fault
    if subject.kind == "host":
        yield host_part("burn-in")
    elif fault in _PARTS:
        yield component_of(box, subject, _PARTS[fault])
    else:
        yield component_of(box, subject)
        if fault in _LESS_LIKELY:
            yield component_of(box, subject, _LESS_LIKELY[fault])


def shared_by_loaded_gpus(box: Box, subject: Subject, judgement: Judgement) -> Component | None:
    """Where every GPU has the fault under load: cooling or power supply of the host."""
    part = _PARTS.get(judgement.fault)
    return host_part(part) if part in ("cooling", "power supply") else None


def _pair(box: Box, subject: Subject) -> tuple[Device, Device] | None:
    a, b = device_of(box, subject), device_of(box, subject.peer)
    return None if a is None or b is None or a is b else (a, b)


def _by_number(box: Box, subject: Subject) -> Iterator[Component]:
    """Of a file imported without its box, the GPUs by their names; nothing of a pair that is known in part."""
    ends = [end for end in (subject, subject.peer) if end is not None]
    if all(device_of(box, end) is None for end in ends):
        yield from (component_of(box, end) for end in ends)


def _gpu_and_memory(box: Box, gpu: Device) -> Iterator[Component]:
    """Each copy of a GPU needs both."""
    yield device_part(box, gpu)
    yield device_part(box, gpu, "memory")


def _nvlinks(box: Box, a: Device, b: Device) -> Iterator[Component]:
    """The links of the pair. If NVSwitches join it: all links of either end that has other pairs too, after the trunk
    links between the NVSwitches of the two if they share none (DGX-2)."""
    if not box.topology.link(a, b).switched:
        yield nvlinks_between(box, a, b)
    elif {*far_ends(box, a).values()}.isdisjoint(far_ends(box, b).values()):
        yield TRUNKS
    for end in (a, b):
        if sum(bool(box.topology.link(end, gpu).nvlinks) for gpu in box.topology.gpus if gpu is not end) > 1:
            yield device_part(box, end, "NVLink")
    yield all_nvlinks(box)


def _all_pairs(box: Box) -> Iterator[Component]:
    """Where all pairs are slow: settings that stop most of them."""
    yield from most_blocking_settings(box)
    yield host_part(P2P_SETTING)
