"""The wiring of a machine as a picture, with what the wiring alone shows to be wrong marked."""

from __future__ import annotations

import time
from collections.abc import Sequence

from dgxcheck.assessment.machine import Machine
from dgxcheck.assessment.node_facts import gpu_models
from dgxcheck.bandwidth.expected import between
from dgxcheck.checks.engine.wording import counted
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.output import provenance
from dgxcheck.output.picture import dot, layout, svg
from dgxcheck.output.picture.marks import At, Mark, box, link, pair
from dgxcheck.output.plain_text import visible
from dgxcheck.output.topo import path
from dgxcheck.output.topo.matrix import cell
from dgxcheck.output.topo.tree import hop_text
from dgxcheck.source.protocol import Origin
from dgxcheck.topology.graph import nvlink_generation, nvlink_graph
from dgxcheck.topology.model import Device, Topology
from dgxcheck.topology.paths import Hop, hops_above, hops_between, sharers
from dgxcheck.topology.reference import PairDifference, nearest


def wiring_marks(topology: Topology) -> list[Mark]:
    """One for each narrow link above a GPU or NIC, and for each pair with fewer NVLinks than the nearest reference."""
    marks: list[Mark] = []
    for hop in _hops(topology):
        if hop.narrow is True:
            behind = ", ".join(map(visible, sharers(hop, topology)))
            words = f"link {hop}{f' of {behind}' if behind else ''}: {hop_text(hop)}"
            marks.append(
                Mark(number=len(marks) + 1, tone="fail", sign="FAIL", tag="", words=words, at=(link(hop.device),))
            )
    for each, machines in lacking_nvlinks(topology):
        words = (
            f"{visible(each.a)} - {visible(each.b)}: {each.has} of {each.expected} NVLinks up, expected of {machines}"
        )
        at, down = (pair(_key(topology, each.a), _key(topology, each.b)),), each.expected - each.has
        marks.append(Mark(number=len(marks) + 1, tone="fail", sign="FAIL", tag="", words=words, at=at, down=down))
    return marks


def lacking_nvlinks(topology: Topology) -> list[tuple[PairDifference, str]]:
    """Pairs of GPUs with fewer NVLinks up than in the nearest reference graph, and the machines that have it."""
    graph = nvlink_graph(topology)
    near = None if isinstance(graph, Missing) or not graph.pairs else nearest(graph, nvlink_generation(topology))
    if near is None:
        return []
    return [(each, near.reference.machines) for each in near.differences if each.has < each.expected]


def down_by_pair(topology: Topology) -> dict[At, int]:
    """How many NVLinks each pair lacks."""
    return {
        pair(_key(topology, each.a), _key(topology, each.b)): each.expected - each.has
        for each, _ in lacking_nvlinks(topology)
    }


def _key(topology: Topology, name: str) -> str:
    device = topology.device(name)
    return name if device is None else device.bdf or name


def path_mark(topology: Topology, a: Device, b: Device, words: str) -> Mark:
    """The way from one device to the other: over NVLink where links are up, else over PCI."""
    ends = (box(a.bdf or a.name), box(b.bdf or b.name))
    if topology.link(a, b).nvlinks:
        return Mark(
            number=0, tone="way", sign="", tag="", words=words, at=(*ends, pair(a.bdf or a.name, b.bdf or b.name))
        )
    links = tuple(link(hop.device) for hop in rows(hops_between(a, b, topology.functions)))
    return Mark(number=0, tone="way", sign="", tag="", words=words, at=(*ends, *links, *_roots(a, b)))


def _roots(a: Device, b: Device) -> tuple[At, ...]:
    """The host bridges, where the two are below different root ports."""
    if isinstance(a.path, Missing) or isinstance(b.path, Missing) or a.path[:2] == b.path[:2]:
        return ()
    return tuple(box(root) for root in {a.path[0], b.path[0]})


def _hops(topology: Topology) -> list[Hop]:
    found = {
        hop.device: hop
        for device in topology.devices
        for hop in (() if isinstance(device.path, Missing) else hops_above(device.path, topology.functions))
    }
    return [*found.values()]


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
    first = f"{counted(len(topology.gpus), 'GPU')}, {counted(nics, 'HCA')}: {provenance.describe(origin)}"
    return "\n".join(filter(None, (first, "; ".join(filter(None, (*about, visible(day)))))))


def path_mark_of(machine: Machine, a: Device, b: Device, labels: str) -> Mark:
    """The way between two devices, with its label and its expected bandwidth."""
    label = cell(machine.topology.link(a, b), False, labels)
    expected = path.bandwidth_text(between(machine, a, b))
    words = f"{visible(a.name)} - {visible(b.name)}: {label}. {expected[0] if expected else ''}".rstrip(". ")
    return path_mark(machine.topology, a, b, words)
