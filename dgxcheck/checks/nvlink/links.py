"""NVLinks of a GPU: where they end, how many are expected, and what a finding about them can come from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

from dgxcheck.checks.engine.box import Box, guest, mig_enabled
from dgxcheck.checks.engine.check import device_of, remedy_of
from dgxcheck.checks.engine.expected import model_family, siblings
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, counted, skip
from dgxcheck.checks.nvlink.nvswitches import lacking
from dgxcheck.components.component import FABRIC_MANAGER, Component, host_part
from dgxcheck.components.containment import NVSWITCHES
from dgxcheck.components.device_facts import architecture
from dgxcheck.components.locate import (
    all_nvlinks,
    device_part,
    far_ends,
    missing_nvswitch,
    nvlinks_between,
    nvlinks_disabled,
    nvlinks_of,
)
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Missing, need, or_gap, rows
from dgxcheck.facts.nvml.gpu import Fabric
from dgxcheck.facts.record import Record
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.topology.model import Device, DevicePair
from dgxcheck.topology.nvlinks import End, end
from dgxcheck.topology.reference import ALL, Reference, Rows, fewest_differences
from dgxcheck.xid.table import AMPERE

MOST = 6
"""Pairs that may differ before the graph counts as that of another machine."""


class GraphComparison(Record, kw_only=False):
    """NVLinks per pair that is joined in this machine or in its reference machine."""

    links: Mapping[DevicePair, int]
    expected: Mapping[DevicePair, int]


@or_gap
def ends_of(box: Box) -> dict[str, End]:
    """What each GPU reports of its links, by the GPU's bdf."""
    links = need(box.snapshot.nvlink)
    bdfs = {gpu.bdf for gpu in box.topology.gpus if gpu.bdf is not None}
    return {bdf: end((link for link in links if link.bdf == bdf), bdfs, box.topology.functions) for bdf in sorted(bdfs)}


def linked(box: Box, ends: Mapping[str, End]) -> list[Device]:
    """GPUs with link positions, all of which answered."""
    return [gpu for gpu in box.topology.listed_gpus
            if ends[gpu.bdf or ""].positions and ends[gpu.bdf or ""].gap is None]  # fmt: skip


def links_up(view: End) -> int:
    """How many links a GPU has up, to GPUs, NVSwitches and others."""
    return view.gpus.total() + view.switches.total() + view.elsewhere.total()


def links_of_both(ends: Mapping[str, End], a: Device, b: Device) -> tuple[int, int]:
    """How many links ``a`` has up to ``b``, and ``b`` to ``a``."""
    return ends[a.bdf or ""].gpus[b.bdf or ""], ends[b.bdf or ""].gpus[a.bdf or ""]


def graph_of(box: Box) -> Reference | Judgement:
    """The graph that this machine is compared with, or why there is none."""
    if box.choice is None:
        return skip("no-reference", "no reference machine is known for this box")
    name = box.choice.profile.nvlink_graph
    graph = next((graph for graph in ALL if graph.name == name), None)
    return graph or skip("no-reference", f"the profile {box.choice.profile.name} has no NVLink graph")


def severity(box: Box, gpu: Device) -> Status:
    """Warn only, where the reference machine was guessed from the GPUs alone; but from A100 on every board for
    NVSwitches has all its links wired, in whoever's machine."""
    wired = box.board_number(gpu, "nvlinks") is not None and (architecture(box, gpu.bdf or "") or 0) >= AMPERE
    return Status.WARN if box.guessed and (not wired or guest(box) is not None) else Status.FAIL


def compare_graph(box: Box, ends: Mapping[str, End], reference: Reference) -> GraphComparison | None:
    """Links per pair, of the end that reports more; without GPUs that have no link up; None if too many differ."""
    gpus = [gpu for gpu in linked(box, ends) if links_up(ends[gpu.bdf or ""])]
    rows = [[max(links_of_both(ends, a, b)) if a is not b else 0 for b in gpus] for a in gpus]
    wanted = reference.rows()
    labels = _labels(rows, wanted, _most_differences(box, len(gpus), reference))
    if labels is None:
        return None
    places = list(combinations(range(len(gpus)), 2))
    links = {(gpus[i], gpus[j]): rows[i][j] for i, j in places}
    expected = {(gpus[i], gpus[j]): wanted[labels[i]][labels[j]] for i, j in places}
    joined = [pair for pair in links if links[pair] or expected[pair]]
    return GraphComparison({pair: links[pair] for pair in joined}, {pair: expected[pair] for pair in joined})


def _labels(rows: Rows, wanted: Rows, most: int) -> tuple[int, ...] | None:
    """Numbers of the reference's GPUs for those of this machine; its own where all pairs of the reference are alike."""
    if len({links for i, row in enumerate(wanted) for j, links in enumerate(row) if i != j}) > 1:
        return fewest_differences(rows, wanted, most)
    differing = sum(rows[i][j] != wanted[i][j] for i, j in combinations(range(min(len(rows), len(wanted))), 2))
    return tuple(range(len(rows))) if len(rows) <= len(wanted) and differing <= most else None


def _most_differences(box: Box, gpus: int, reference: Reference) -> int:
    """A machine guessed from its GPUs may be another: with fewer of them, fewer pairs may differ."""
    if not box.guessed:
        return MOST
    peers = max(sum(links > 0 for links in row) for row in reference.rows())
    return min(MOST, gpus - 1, peers - (reference.gpus - gpus))


def switched(ends: Mapping[str, End]) -> bool:
    """Do links run through NVSwitches?"""
    return any(view.switches for view in ends.values())


_ALL_WIRED = LazyPattern(
    r"NVIDIA (?:A100-SXM4\b|H100(?: \d+GB)? HBM3|H20(?!0)|H200(?! NVL)|B[23]00|GB[23]00).*|NVIDIA H[12]00"
)
"""Models that exist only on baseboards where each of their NVLinks leads to a switch or another GPU (HGX A100 to B300,
GB200 NVL72); those of V100 and P100 boxes may lead nowhere."""


_SWITCHED = 8
"""GPUs of these models that only NVSwitches join; four may be joined by NVLinks alone (HGX A100 4-GPU)."""


def only_switches_join(box: Box) -> bool:
    """Must there be NVSwitches, which what is known of the machine does not show?"""
    models = [model_family(box, gpu) for gpu in box.gpus]
    return isinstance(box.snapshot.pci, Missing) and len(models) >= _SWITCHED and all(map(_ALL_WIRED.fullmatch, models))


def states_of(box: Box, gpu: Device) -> Mapping[int, bool]:
    """By link position: is it up? Without positions that did not answer."""
    listed = rows(box.snapshot.nvlink)
    return {row.link: row.up for row in listed if row.bdf == gpu.bdf and isinstance(row.up, bool)}


def without_reference(box: Box, gpu: Device, evidence: tuple[Evidence, ...]) -> Judgement | None:
    """Judged by the link states in imported text; None if links that are down may be unused, or some are not shown."""
    states = states_of(box, gpu)
    up, down = sum(states.values()), [link for link, state in states.items() if not state]
    if mig_enabled(box, gpu.bdf) or guest(box) is not None:
        return None
    others_of = siblings(box, gpu) or (_unnamed_siblings(box, gpu, len(states)) if up and down else ())
    listed = [link_states for device in others_of if (link_states := states_of(box, device))]
    if not down:
        return _all_up(box, gpu, up, [len(link_states) for link_states in listed], evidence)
    others = [sum(link_states.values()) for link_states in listed]
    links = f"{'link' if len(down) == 1 else 'links'} {', '.join(map(str, down))} down"
    more = [other for other in others if other > up]
    if 2 * len(more) > len(others):
        most = max(more)
        of_model = " of the model" if model_family(box, gpu) else ""
        message = f"{counted(up, 'NVLink')} up, {most} at {counted(len(more), 'other GPU')}{of_model}; {links}"
        status = Status.WARN if up and not _ALL_WIRED.fullmatch(model_family(box, gpu)) else Status.FAIL
        return Judgement(status, message, up, most, "links", evidence, fault=Fault.NVLINK_DOWN)
    model = model_family(box, gpu)
    if not model and not up:
        message = f"none of {counted(len(states), 'NVLink')} is up; whether they are wired depends on the model"
        return Judgement(Status.UNKNOWN, message, evidence=evidence, remedy=remedy_of("nvlink.state", "which model"))
    if model and up and not others and not _ALL_WIRED.fullmatch(model):
        message = f"{up} of {counted(len(states), 'NVLink')} up ({links}); how many are wired depends on the machine"
        figures, remedy = (up, len(states), "links", evidence), remedy_of("nvlink.state", "how many")
        return Judgement(Status.UNKNOWN, message, *figures, remedy=remedy)
    if not _ALL_WIRED.fullmatch(model):
        return None
    whole = states.keys() == {*range(len(states))}
    some = f"{up} of {counted(len(states), 'NVLink')} up ({links})" if up else "no NVLink up" if whole else links
    message = f"{some}, and all of this model are wired on its board"
    status = Status.FAIL if up else Status.WARN
    return Judgement(status, message, up, len(states), "links", evidence, fault=Fault.NVLINK_DOWN)


def _unnamed_siblings(box: Box, gpu: Device, links: int) -> tuple[Device, ...]:
    """The other GPUs of a text that names no model, if all that have links have as many positions."""
    others = tuple(other for other in box.topology.gpus if other.bdf != gpu.bdf and states_of(box, other))
    alike = all(not model_family(box, each) and len(states_of(box, each)) == links for each in (gpu, *others))
    return others if alike else ()


def _all_up(box: Box, gpu: Device, up: int, others: Sequence[int], evidence: tuple[Evidence, ...]) -> Judgement | None:
    """Every link that is shown is up; None where the model, or another GPU of it, has more: the text is cut."""
    number = box.board_number(gpu, "nvlinks")
    required = max([*others, int(number.value) if number is not None else 0])
    if not up or up < required:
        return None
    which = "all of this model" if number is not None else "none down"
    return Judgement(Status.PASS, f"{counted(up, 'NVLink')} up, {which}", up, required or None, "links", evidence)


def nvlinks(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The NVLinks of the pair, or those to the far end of one link or of all links of a GPU; then the NVLink ports of
    the GPUs, and the NVSwitch to which all of the links lead, or the one that is missing. The NVLink graph for a
    finding about the host.
    """
    gpu = device_of(box, subject)
    if gpu is None:
        yield host_part("NVLink graph")
        return
    peer = device_of(box, subject.peer)
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
        if graph is not None:
            fewer = [pair for pair, number in graph.links.items() if gpu in pair and number < graph.expected[pair]]
            yield from (nvlinks_between(box, *pair) for pair in fewer)


def links_down(box: Box, gpu: Device) -> set[int]:
    """The NVLinks of a GPU that NVML reports as down."""
    return {row.link for row in rows(box.snapshot.nvlink) if row.bdf == gpu.bdf and row.up is False}


def nvlinks_of_all(box: Box, subject: Subject, judgement: Judgement) -> Component:
    """Where every GPU has its NVLinks down: what sets up the NVSwitches, else the driver's setting.

    In a rack no NVSwitch is on PCI; there are some where GPUs have a fabric.
    """
    if nvlinks_disabled(box):
        return all_nvlinks(box)
    modes = rows(box.snapshot.gpu_modes) if guest(box) is None else ()
    states = [row.fabric.state for row in modes if isinstance(row.fabric, Fabric)]
    fabric = any(isinstance(state, int) and state for state in states)
    return FABRIC_MANAGER if only_switches_join(box) else NVSWITCHES if fabric else all_nvlinks(box)
