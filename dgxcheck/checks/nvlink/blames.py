"""Which NVLinks and GPUs a finding about NVLink can come from."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dgxcheck.checks.engine.blame import device_of
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, Subject
from dgxcheck.checks.nvlink.endpoints import compare_graph, ends_of, graph_of
from dgxcheck.checks.nvlink.nvswitches import lacking, missing_nvswitch
from dgxcheck.checks.nvlink.unreferenced import only_switches_join
from dgxcheck.components.component import FABRIC_MANAGER, Component, host_part
from dgxcheck.components.far_end import far_ends, nvlinks_of
from dgxcheck.components.locate import all_nvlinks, device_part, nvlinks_between
from dgxcheck.facts.missing import rows
from dgxcheck.topology.model import Device
from dgxcheck.topology.reference import Reference


def nvlinks(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The NVLinks of the pair, or those to the far end of one link or of all links of a GPU; then the NVLink ports of
    the GPUs, and the NVSwitch to which all of the links lead, or the one that is missing. The NVLink graph for a
    finding about the host.
    """
    gpu = device_of(box, subject)
    if gpu is None:
        yield host_part("NVLink graph")
        return
    peer = device_of(box, subject.peer) if subject.peer is not None else None
    if peer is None:
        named = {int(subject.part)} if subject.part.isdecimal() else None
        far = tuple(far_nvlinks(box, gpu, named or links_down(box, gpu) or None))
        yield from (component for component in far if component.kind == "nvlink")
        yield device_part(box, gpu, "NVLink")
        yield from (component for component in far if component.kind == "nvswitch")
        if links_down(box, gpu) and lacking(box):
            yield missing_nvswitch(box)
        return
    yield nvlinks_between(box, gpu, peer)
    yield device_part(box, gpu, "NVLink")
    yield device_part(box, peer, "NVLink")


def far_nvlinks(box: Box, gpu: Device, links: Collection[int] | None) -> Iterator[Component]:
    """What these links of a GPU, or all of them, have at their far ends; where NVML does not say it, the NVLinks to
    GPUs to which this one has fewer than in the reference machine's graph.
    """
    yield from nvlinks_of(box, gpu, links)
    reference, ends = graph_of(box), ends_of(box)
    if links and not {*links} <= {*far_ends(box, gpu)} and isinstance(reference, Reference) and isinstance(ends, dict):
        graph = compare_graph(box, ends, reference)
        for pair, number in () if graph is None else graph.links.items():
            if gpu in pair and graph is not None and number < graph.expected[pair]:
                yield nvlinks_between(box, *pair)


def links_down(box: Box, gpu: Device) -> set[int]:
    """The NVLinks of a GPU that NVML reports as down."""
    return {row.link for row in rows(box.snapshot.nvlink) if row.bdf == gpu.bdf and row.up is False}


def nvlinks_of_all(box: Box, subject: Subject, judgement: Judgement) -> Component:
    """Where every GPU has its NVLinks down: what sets up the NVSwitches, else the driver's setting."""
    return FABRIC_MANAGER if only_switches_join(box) else all_nvlinks(box)
