"""The measurement plan: the steps of the CUDA worker, in order.

First each GPU alone, then every ordered pair (integrity before bandwidth), last the steps with concurrent traffic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, combinations, permutations

from dgxcheck.facts.missing import Json, Missing, rows
from dgxcheck.facts.sysfs import ranges
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Device, Topology
from dgxcheck.topology.nvlinks import find_rings, nvlink_graph
from dgxcheck.topology.paths import hops_between

MeasureStep = dict[str, Json]
OF_ONE = (
    "under-load", "host-to-device", "device-to-host", "host-both", "device-copy", "device-copy-sm", "memory-integrity",
    "compute",
)  # fmt: skip
ORDERED = ("access", "p2p-integrity", "p2p", "latency", "latency-sm", "p2p-off", "latency-off")
UNORDERED = ("p2p-both", "p2p-off-both")
MOST_CPUS = 8192
PROHIBITED = 2


def skipped_gpus(gpus: Sequence[Device], facts: Snapshot) -> dict[str, Json]:
    """GPUs that cannot be measured in their configuration, by bus id: a ``skipped`` fact."""
    modes_of = {row.bdf: row for row in rows(facts.gpu_modes)}
    skipped: dict[str, Json] = {}
    for modes in filter(None, (modes_of.get(gpu.bdf or "") for gpu in gpus)):
        if modes.mig is True:
            detail = "MIG is enabled: an instance is not the whole GPU"
            skipped[modes.bdf] = {"skipped": "not-supported", "detail": detail}
        elif modes.compute_mode == PROHIBITED:
            skipped[modes.bdf] = {"skipped": "not-configured", "detail": "the compute mode is Prohibited"}
    return skipped


def steps(topology: Topology, gpus: Sequence[Device], long: bool = False) -> list[MeasureStep]:
    """All steps for these GPUs, without those that NVML does not list."""
    listed = [gpu for gpu in gpus if gpu.index is not None and gpu.bdf is not None]
    steps = [_step(kind, gpu) for gpu in listed for kind in OF_ONE]
    for a, b in permutations(listed, 2):
        steps += [_step(kind, a, b) for kind in ORDERED]
    for a, b in combinations(listed, 2):
        steps += [_step(kind, a, b) for kind in UNORDERED]
    steps += [*_shared(topology, listed), *_rings(topology, listed)]
    return [step | {"long": True} for step in steps] if long else steps


def _step(kind: str, *gpus: Device) -> MeasureStep:
    bdfs: list[Json] = [gpu.bdf for gpu in gpus]
    near: list[Json] = [*cpus(gpus[0].cpu_affinity)]
    return {"key": f"measure {kind} {' '.join(map(str, bdfs))}", "gpus": bdfs, "cpus": near}


def cpus(listed: str | Missing) -> Iterator[int]:
    """The CPU numbers of a kernel cpulist; none if it is Missing or malformed."""
    runs = None if isinstance(listed, Missing) else ranges(listed)
    return chain.from_iterable(run for run in runs or () if run.stop <= MOST_CPUS)


def _shared(topology: Topology, gpus: Sequence[Device]) -> Iterator[MeasureStep]:
    """One step per physical link that several disjoint pairs without NVLink share: the first, others running."""
    crossing: dict[str, list[tuple[Device, Device]]] = {}
    for a, b in permutations(gpus, 2):
        hops = hops_between(a, b, topology.functions)
        if topology.link(a, b).nvlinks != 0 or isinstance(hops, Missing):
            continue
        for hop in hops:
            if not hop.skip_reason:
                crossing.setdefault(str(hop), []).append((a, b))
    planned: set[tuple[str, ...]] = set()
    for hop_name, pairs in crossing.items():
        disjoint = _disjoint(pairs)
        name = tuple(sorted(f"{a.bdf} {b.bdf}" for a, b in disjoint))
        if len(disjoint) < 2 or name in planned:
            continue
        planned.add(name)
        others: list[Json] = [[a.bdf, b.bdf] for a, b in disjoint[1:]]
        yield _step("p2p-shared", *disjoint[0]) | {"with": others, "hop": hop_name}


def _disjoint(pairs: Sequence[tuple[Device, Device]]) -> list[tuple[Device, Device]]:
    """Pairs of which no two have a GPU in common, in their order."""
    used: set[str] = set()
    disjoint = []
    for a, b in pairs:
        if not {a.name, b.name} & used:
            disjoint.append((a, b))
            used |= {a.name, b.name}
    return disjoint


def _rings(topology: Topology, gpus: Sequence[Device]) -> Iterator[MeasureStep]:
    """One step per ring of the NVLink graph, with the others running; none unless all GPUs of the box take part."""
    if isinstance(graph := nvlink_graph(topology), Missing) or len(graph.names) < 2:
        return
    gpu_by_name = {gpu.name: gpu for gpu in gpus}
    orders = find_rings(graph).orders or ((graph.names,) if graph.switched else ())
    if not all(name in gpu_by_name for order in orders for name in order):
        return
    bdfs: list[list[Json]] = [[gpu_by_name[name].bdf for name in order] for order in orders]
    for number, order in enumerate(bdfs):
        others: list[Json] = [*bdfs[:number], *bdfs[number + 1 :]]
        yield {"key": f"measure ring {number} all", "gpus": order, "with": others, "cpus": []}
