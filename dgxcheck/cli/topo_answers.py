"""What ``dgxcheck topo`` answers to each of its questions: a text, and whether all of it is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from dgxcheck.frozen import Record
from dgxcheck.output import topo_text
from dgxcheck.output.plain import visible
from dgxcheck.reading import Gap, Json, Missing
from dgxcheck.source.protocol import Source
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Device, Topology

CAPABILITIES = {"r": "read", "w": "write", "n": "nvlink", "a": "atomics", "p": "prop"}
Known = tuple[str, bool]


class Asked(Record, kw_only=False):
    """A question with everything that its answer is made of."""

    topology: Topology
    box: Snapshot
    source: Source
    value: Any
    """The value of the option that asks."""
    ids: str | None
    form: str
    labels: str
    width: int | None

    def either(self, text: Callable[[], str], members: Callable[[], dict[str, Json]]) -> str:
        """The text, or the JSON document with ``members``; only what is wanted is made."""
        if self.form == "json":
            from dgxcheck.output import topo_json

            return topo_json.document(self.topology, self.source.origin, members())
        return text()


def _matrix(asked: Asked) -> Known:
    from dgxcheck.output import nvlink_graph

    topology = asked.topology
    complete = _known(asked) and all(link.nvlinks is not None for link in topology.links)
    if asked.form == "nvidia-smi":
        return _smi(asked, False), complete
    remarks = [*nvlink_graph.text(topology), *_origin(asked.source)]
    return asked.either(
        lambda: topo_text.matrix(topology, False, asked.labels, asked.width, remarks),
        lambda: nvlink_graph.as_json(topology),
    ), complete


def _matrix_pci(asked: Asked) -> Known:
    remarks = _origin(asked.source)
    if asked.form == "nvidia-smi":
        return _smi(asked, True), _known(asked)
    return asked.either(
        lambda: topo_text.matrix(asked.topology, True, asked.labels, asked.width, remarks), dict
    ), _known(asked)


def _smi(asked: Asked, pci_only: bool) -> str:
    from dgxcheck.output import topo_smi

    return topo_smi.matrix(asked.topology, pci_only)


def _p2p(asked: Asked) -> Known:
    from dgxcheck.output import topo_p2p

    capability = CAPABILITIES[asked.value]
    statuses = asked.box.p2p
    if isinstance(statuses, Missing):
        text = f"Peer-to-peer status is not known: {visible(str(statuses))}\n"
        return asked.either(lambda: text, lambda: {"p2p": None, "p2p_reason": str(statuses)}), False
    complete = not any(isinstance(getattr(each, capability), Missing) for each in statuses)
    return asked.either(
        lambda: topo_p2p.matrix(asked.topology, statuses, capability, asked.form == "nvidia-smi"),
        lambda: topo_p2p.as_json(asked.topology, statuses, capability),
    ), complete


def _cpu(asked: Asked) -> Known:
    from dgxcheck.output import topo_queries

    found, unknown = topo_queries.gpus_of_cpu(asked.topology, asked.value)
    return _names(asked, f"GPUs near CPU {asked.value}", found, unknown), not unknown


def _nearest(asked: Asked) -> Known:
    from dgxcheck.output import topo_queries

    gpu = _gpus(asked, 1, "-n takes one GPU")[0]
    pairs = () if isinstance(asked.box.gpu_pairs, Missing) else asked.box.gpu_pairs
    boards = {frozenset((pair.a, pair.b)) for pair in pairs if pair.common_ancestor == 0}
    found, unknown = topo_queries.nearest(asked.topology, gpu, asked.value, boards)
    if asked.value == 0 and isinstance(asked.box.gpu_pairs, Missing):
        # only NVML knows boards: the PCI tree shows the same switch on a K80 board and outside one
        found, unknown = (), tuple(other for other in asked.topology.gpus if other is not gpu)
    return _names(asked, f"GPUs within level {asked.value} of {gpu.name}", found, unknown), not unknown


def _names(asked: Asked, question: str, found: Sequence[Device], unknown: Sequence[Device]) -> str:
    from dgxcheck.output import topo_queries

    names: Json = {"gpus": [gpu.name for gpu in found], "not_known": [gpu.name for gpu in unknown]}
    return asked.either(lambda: topo_queries.listed(question, found, unknown), lambda: {"answer": names})


def _gpu_path(asked: Asked) -> Known:
    from dgxcheck.output import topo_path

    a, b = _gpus(asked, 2, "-p takes two GPUs")
    link = asked.topology.matrix()[a.name, b.name]
    text = topo_path.sentence(a, b, link, topo_text.cell(link, False, asked.labels))
    known = link.label != "?" and link.nvlinks is not None
    return asked.either(lambda: f"{text}\n", lambda: {"answer": text}), known


def _path(asked: Asked) -> Known:
    from dgxcheck.cli import select
    from dgxcheck.output import topo_path

    a, b = (select.device(asked.topology, word) for word in asked.value)
    _distinct((a, b), "--path takes two devices")
    link = asked.topology.matrix()[a.name, b.name]
    return asked.either(
        lambda: topo_path.path(asked.topology, a, b, topo_text.cell(link, False, asked.labels)),
        lambda: topo_path.as_json(asked.topology, a, b),
    ), link.pci is not None and link.nvlinks is not None


def _per_gpu(what: str, value: Callable[[Asked, Device], object]) -> Callable[[Asked], Known]:
    def answer(asked: Asked) -> Known:
        from dgxcheck.cli import select
        from dgxcheck.output import topo_json, topo_queries

        answers = [(gpu, value(asked, gpu)) for gpu in select.gpus(asked.topology, asked.ids or "")]
        members: list[Json] = [{"gpu": gpu.name, **topo_json.either("value", found)} for gpu, found in answers]
        complete = not any(isinstance(found, Missing) for _, found in answers)
        return asked.either(lambda: topo_queries.per_gpu(what, answers), lambda: {"answer": members}), complete

    return answer


def _near_memory(asked: Asked, gpu: Device) -> object:
    """The GPU's own node where that has memory, else the nearest that has."""
    node, nodes = gpu.numa_node, asked.box.numa_memory
    if isinstance(node, Missing) or isinstance(nodes, Missing):
        return node
    with_memory = {each.node for each in nodes if each.memory_kb != 0}
    own = next((each for each in nodes if each.node == node), None)
    if node in with_memory or own is None or isinstance(own.distances, Missing):
        return node
    ways = zip((each.node for each in nodes), own.distances, strict=False)
    return min(((far, other) for other, far in ways if other in with_memory), default=(0, node))[1]


def _own_memory(asked: Asked, gpu: Device) -> object:
    """N/A where the driver says that this GPU's memory is no NUMA node."""
    value = gpu.gpu_numa_id
    return None if isinstance(value, Missing) and value.gap is Gap.UNSUPPORTED else value


def _tree(asked: Asked) -> Known:
    from dgxcheck.output import topo_tree

    found = asked.box.pci_names
    names = {} if isinstance(found, Missing) else {ids: name for ids, name in found.items() if isinstance(name, str)}
    known = not isinstance(asked.box.pci, Missing)
    return asked.either(
        lambda: topo_tree.tree(asked.topology, names), lambda: topo_tree.as_json(asked.topology)
    ), known


def _rings(asked: Asked) -> Known:
    from dgxcheck.output import nvlink_graph, topo_rings
    from dgxcheck.topology import graph

    return asked.either(
        lambda: topo_rings.rings(asked.topology),
        lambda: topo_rings.as_json(asked.topology) | nvlink_graph.as_json(asked.topology),
    ), not isinstance(graph.nvlink_graph(asked.topology), Missing)


def _gpus(asked: Asked, count: int, needs: str) -> tuple[Device, ...]:
    from dgxcheck.cli import select

    found = tuple(select.gpus(asked.topology, asked.ids or ""))
    if len(found) != count:
        raise click.UsageError(f"{needs}: -i {','.join(['ID'] * count)}, not -i {asked.ids}")
    _distinct(found, needs)
    return found


def _distinct(devices: tuple[Device, ...], needs: str) -> None:
    if len(set(map(id, devices))) != len(devices):
        raise click.UsageError(f"{needs}, not {devices[0].name} twice")


def _known(asked: Asked) -> bool:
    """Is every PCI path known, and every GPU? That there is no NVML, here or in a tree of files, is an answer too."""
    nvml = asked.box.gpu
    silent = isinstance(nvml, Missing) and nvml.gap not in (Gap.ABSENT, Gap.UNRECORDED)
    return not silent and not isinstance(asked.box.pci, Missing) and all(link.pci for link in asked.topology.links)


def _origin(source: Source) -> list[str]:
    """A recording that was not taken from hardware says so wherever it is shown."""
    origin = source.origin
    if origin.provenance == "reconstructed":
        return [f"Source: recording {visible(origin.name)}, reconstructed from published facts."]
    return [f"Source: {origin.kind} {visible(origin.name)}."] if origin.kind != "live" else []


ANSWERS: dict[str, Callable[[Asked], Known]] = {
    "matrix": _matrix,
    "matrix_pci": _matrix_pci,
    "p2p": _p2p,
    "cpu": _cpu,
    "level": _nearest,
    "gpu_path": _gpu_path,
    "numa_cpu": _per_gpu("NUMA node of the nearest CPUs", lambda _, gpu: gpu.numa_node),
    "numa_memory": _per_gpu("NUMA node of the nearest memory", _near_memory),
    "gpu_numa": _per_gpu("Own NUMA node", _own_memory),
    "tree": _tree,
    "rings": _rings,
    "path": _path,
}
