"""Slow figures: what the data crossed, less what other figures crossed as fast as they should."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from dgxcheck.checks.engine.check import Box
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.diagnosis.component import (
    Component,
    Key,
    links_above,
    of_all_nvlinks,
    of_device,
    of_hop,
    of_host,
    of_nvlinks,
    of_path,
)
from dgxcheck.diagnosis.p2p_settings import stop_most, stops
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import hops_between

COPIES = ("measure.p2p-bandwidth", "measure.host-bandwidth", "measure.collective")
LATENCY, MEMORY = "measure.p2p-latency", "measure.memory-bandwidth"


def is_slow(finding: Finding) -> bool:
    """Does it say that something is slow, and not what? Without a figure something hung; wrong values are none."""
    said = finding.judgement
    return finding.id in (*COPIES, LATENCY, MEMORY) and said.measured is not None and said.unit != "values"


def crossed(box: Box, finding: Finding) -> tuple[Component, ...]:
    """What the data of one figure went through, the likeliest to blame first."""
    subject = finding.subject
    one = box.topology.device(subject.bdf or subject.name)
    if one is None:
        return tuple(dict.fromkeys(_of_all(box, finding) if subject.kind == "host" else _unplaced(finding)))
    if finding.id == MEMORY:
        return (of_device(box, one, "memory"),)
    if subject.peer is None:
        return tuple(_to_host(box, one))
    other = box.topology.device(subject.peer.bdf or subject.peer.name)
    return () if other is None else tuple(_to_peer(box, finding.id, one, other))


def cleared(box: Box, findings: Sequence[Finding], check: str) -> set[Key]:
    """What good figures crossed; small copies say nothing of large ones, nor these of small ones."""
    good = [each for each in findings if each.status is Status.PASS and each.subject.part == ""]
    like = COPIES if check in COPIES else (check,)
    keys = {component.key for each in good if each.id in like for component in crossed(box, each)}
    if check in COPIES:  # a GPU whose memory is fast is fast itself
        keys |= {part.key for each in good if each.id == MEMORY for part in _whole(box, each.subject.bdf)}
    return keys


def _whole(box: Box, bdf: str | None) -> Iterator[Component]:
    """The GPU and its memory, which each of its copies needs."""
    gpu = box.topology.device(bdf or "")
    if gpu is not None:
        yield of_device(box, gpu)
        yield of_device(box, gpu, "memory")


def _unplaced(finding: Finding) -> Iterator[Component]:
    """Of a file that was imported without its box: the GPUs by their names, and what all of them use."""
    for end in (finding.subject, finding.subject.peer):
        if end is not None:
            yield Component(kind="gpu", name=end.name, part="memory" if finding.id == MEMORY else "")
    if finding.id == "measure.host-bandwidth":
        yield of_host("memory bandwidth")


def _to_host(box: Box, gpu: Device) -> Iterator[Component]:
    yield from links_above(box, gpu)
    yield from _whole(box, gpu.bdf)
    if isinstance(gpu.numa_node, int):
        yield of_host(f"memory bandwidth at NUMA node {gpu.numa_node}")
    yield of_host("memory bandwidth")


def _to_peer(box: Box, check: str, a: Device, b: Device) -> Iterator[Component]:
    link = box.topology.link(a, b)
    if check == LATENCY:
        yield from stops(box, a, b)
        yield of_path(a, b)
        return
    if link.nvlinks:
        yield from _nvlinks(box, a, b)
    else:
        yield from stops(box, a, b)
        hops = hops_between(a, b, box.topology.functions)
        for hop in () if isinstance(hops, Missing) else hops:
            if not hop.unjudged:
                yield of_hop(box, hop)
        if link.pci == "SOC":
            nodes = sorted(str(each.numa_node) for each in (a, b))
            yield Component(kind="socket interconnect", name=f"NUMA nodes {' and '.join(nodes)}")
        yield of_path(a, b)
        yield of_host("P2P setting")
    yield from _whole(box, a.bdf)
    yield from _whole(box, b.bdf)


def _nvlinks(box: Box, a: Device, b: Device) -> Iterator[Component]:
    """Those of the pair, where switches give it none of its own; then all of either end, where it has others too."""
    if not box.topology.link(a, b).switched:
        yield of_nvlinks(box, a, b)
    for end in (a, b):
        if sum(bool(box.topology.link(end, each).nvlinks) for each in box.topology.gpus if each is not end) > 1:
            yield of_device(box, end, "NVLink")
    yield of_all_nvlinks(box)


def _of_all(box: Box, finding: Finding) -> Iterator[Component]:
    """Of all GPUs at once: whatever joins any two, and for NCCL what it was told."""
    if finding.id == COPIES[0]:
        yield from stop_most(box)
        yield of_host("P2P setting")
        return
    for a, b in combinations(box.topology.gpus, 2):
        if box.topology.link(a, b).nvlinks:
            yield from _nvlinks(box, a, b)
    for gpu in box.topology.gpus:
        yield from _whole(box, gpu.bdf)
    if not finding.subject.part.startswith("rings"):
        yield of_host("settings of NCCL")
