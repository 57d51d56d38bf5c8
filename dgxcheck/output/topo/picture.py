"""The wiring of a machine as a picture, with what the wiring alone shows to be wrong marked."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from dgxcheck.assessment.machine import Machine
from dgxcheck.assessment.node_facts import gpu_models
from dgxcheck.bandwidth.expected import between
from dgxcheck.checks.engine.finding import counted
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.output.origin import source_text
from dgxcheck.output.picture import dot, layout, svg
from dgxcheck.output.picture.marks import At, Mark, box, link, pair
from dgxcheck.output.plain_text import visible
from dgxcheck.output.topo import path
from dgxcheck.output.topo.matrix import cell
from dgxcheck.output.topo.tree import link_words
from dgxcheck.source.protocol import Origin
from dgxcheck.topology.model import Device, Topology
from dgxcheck.topology.nvlinks import nvlink_generation, nvlink_graph
from dgxcheck.topology.paths import hops_between, hops_of
from dgxcheck.topology.reference import PairDifference, nearest


def wiring_marks(topology: Topology) -> list[Mark]:
    """One for each narrow link above a GPU or NIC, and for each pair with fewer NVLinks than the nearest reference."""
    hops = hops_of(topology.devices, topology.functions)
    found = [(link_words(hop, topology), link(at), 0) for at, hop in hops.items() if hop.narrow is True]
    for each, at_pair, machines in _lacking_nvlinks(topology):
        ends = f"{visible(each.a)} - {visible(each.b)}"
        words = f"{ends}: {each.has} of {each.expected} NVLinks up, expected of {machines}"
        found.append((words, at_pair, each.expected - each.has))
    return [
        Mark(number=number, tone="fail", sign="FAIL", tag="", words=words, at=(at,), down=down)
        for number, (words, at, down) in enumerate(found, 1)
    ]


def _lacking_nvlinks(topology: Topology) -> list[tuple[PairDifference, At, str]]:
    """Pairs of GPUs with fewer NVLinks up than in the nearest reference graph, and the machines that have it."""
    graph = nvlink_graph(topology)
    near = None if isinstance(graph, Missing) or not graph.pairs else nearest(graph, nvlink_generation(topology))
    lacking = [] if near is None else [each for each in near.differences if each.has < each.expected]
    machines = "" if near is None else near.reference.machines
    return [(each, pair(_key(topology, each.a), _key(topology, each.b)), machines) for each in lacking]


def down_by_pair(topology: Topology) -> dict[At, int]:
    """How many NVLinks each pair lacks."""
    return {at: each.expected - each.has for each, at, _ in _lacking_nvlinks(topology)}


def _key(topology: Topology, name: str) -> str:
    device = topology.device(name)
    return name if device is None else device.bdf or name


def render(machine: Machine, form: str, marks: Sequence[Mark], nvme: bool) -> str:
    """``form`` is ``svg`` or ``dot``; ``nvme``: NVMe disks too."""
    topology, numa = machine.topology, machine.snapshot.numa
    models = ", ".join(f"{count} x {visible(name)}" for name, count in gpu_models(machine.snapshot).items())
    title = title_of(topology, machine.origin, models)
    if form == "dot":
        return dot.render(topology, numa, title, marks, nvme)
    return svg.render([layout.drawn(topology, numa, title, marks, topology.notes, nvme)])


def title_of(topology: Topology, origin: Origin, *about: str) -> str:
    """``8 GPUs, 4 HCAs: this machine``, and a line with what is known about it, and of which day."""
    nics = len(topology.devices) - len(topology.gpus)
    day = origin.recorded_at[:10] or (time.strftime("%Y-%m-%d", time.gmtime()) if origin.kind == "live" else "")
    first = f"{counted(len(topology.gpus), 'GPU')}, {counted(nics, 'HCA')}: {source_text(origin)}"
    return "\n".join(filter(None, (first, "; ".join(filter(None, (*about, visible(day)))))))


def path_mark_of(machine: Machine, a: Device, b: Device, labels: str) -> Mark:
    """The way between two devices, with its label and its expected bandwidth."""
    label = cell(machine.topology.link(a, b), False, labels)
    expected = path.bandwidth_text(between(machine, a, b))
    words = f"{visible(a.name)} - {visible(b.name)}: {label}. {expected[0] if expected else ''}".rstrip(". ")
    return Mark(number=0, tone="way", sign="", tag="", words=words, at=(*_way(machine.topology, a, b),))


def _way(topology: Topology, a: Device, b: Device) -> Iterator[At]:
    """From one device to the other: over NVLink where links are up, else over PCI."""
    ends = a.bdf or a.name, b.bdf or b.name
    yield from map(box, ends)
    if topology.link(a, b).nvlinks:
        yield pair(*ends)
        return
    yield from (link(hop.device) for hop in rows(hops_between(a, b, topology.functions)))
    if not isinstance(a.path, Missing) and not isinstance(b.path, Missing) and a.path[:2] != b.path[:2]:
        yield from map(box, {a.path[0], b.path[0]})  # the host bridges, for the root ports are different
