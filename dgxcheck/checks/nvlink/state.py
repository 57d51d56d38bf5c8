"""Are the NVLinks up, at both ends, and between the GPUs that the reference machine joins?

A link that is down is reported once: by nvlink.symmetry where it is up at the other end, by nvlink.state where the GPU
has no link left or the links run through NVSwitches, else by nvlink.graph, which names the pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from dgxcheck.checks.driver import fabric_manager
from dgxcheck.checks.engine.box import HOST, Box, gpu_unavailable, guest, mig_enabled, nvml_unavailable
from dgxcheck.checks.engine.check import Check, ruled
from dgxcheck.checks.engine.expected import siblings
from dgxcheck.checks.engine.finding import (
    Evidence,
    Instead,
    Judged,
    Judgement,
    Status,
    answered,
    counted,
    given,
    judged,
    skip,
    unless,
)
from dgxcheck.checks.engine.gaps import unjudged, unread
from dgxcheck.checks.nvlink.links import (
    MOST,
    GraphComparison,
    compare_graph,
    ends_of,
    graph_of,
    linked,
    links_down,
    links_of_both,
    links_up,
    nvlinks,
    nvlinks_of_all,
    severity,
    states_of,
    switched,
    without_reference,
)
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Gap, Missing, need, rows
from dgxcheck.topology.model import Device, DevicePair
from dgxcheck.topology.nvlinks import End
from dgxcheck.topology.reference import Reference


def _state(box: Box) -> Judged:
    """Fails if a GPU has no NVLink up, or fewer than the profile expects and no pair can be named: with NVSwitches, or
    without a graph to compare with; without a profile if one was up at the reading before. A link that is down between
    two GPUs is reported by nvlink.graph, one that is up at one end only by nvlink.symmetry. Unknown without a profile
    if NVML reports no NVLink of a GPU and has some of most others of the model. Of imported text that does not tell
    where the links lead: passes if all that the model has are up; warns if a GPU has fewer up than most others of its
    model, or none of a model all of whose links are wired on its board (A100 SXM4 to B300); fails if it has some of
    these down, or none up where others have; is unknown if some are down of the only GPU of another model that the text
    shows. Not judged without a profile otherwise, and on GPUs in MIG mode that have no NVLink up.

    Source: nvmlDeviceGetNvLinkState; the profile's nvlink.links or the degree of its graph
    """
    ends = ends_of(box)
    reference = graph_of(box)
    by_pairs = False
    if not isinstance(ends, Missing) and isinstance(reference, Reference) and not switched(ends):
        by_pairs = compare_graph(box, ends, reference) is not None
    expected, its = _expected_links(box, reference), box.reference_gpus
    for gpu in box.gpus:
        subject = box.subject(gpu)
        if (unavailable := gpu_unavailable(box, gpu)) is not None:
            yield subject, unavailable
        elif isinstance(ends, Missing):
            stated = without_reference(box, gpu, _evidence(gpu, states_of(box, gpu)))
            yield subject, stated if stated is not None and ends.gap is Gap.UNRECORDED else unjudged(ends)
        elif fabric_manager.down(box):
            yield subject, skip("dependency-failed", "the NVSwitch fabric is down: see driver.fabric")
        else:
            yield subject, ruled(_of_gpu, box, gpu, ends, expected if gpu in its else None, by_pairs)


def _expected_links(box: Box, reference: Reference | Judgement) -> int | None:
    """NVLinks per GPU of the reference machine."""
    if (number := box.number("nvlink.links")) is not None:
        return int(number.value)
    return None if isinstance(reference, Judgement) else max(sum(row) for row in reference.rows())


def _of_gpu(box: Box, gpu: Device, ends: Mapping[str, End], expected: int | None, by_pairs: bool) -> Judgement:
    view = ends[gpu.bdf or ""]
    states = states_of(box, gpu)
    evidence = _evidence(gpu, states)
    if view.gap is not None:
        unless(without_reference(box, gpu, evidence) if view.gap.gap is Gap.UNRECORDED else None)
        return unread(view.gap) if expected and guest(box) is None else unjudged(view.gap)
    if not view.positions:
        return _without_links(box, gpu, ends, expected)
    up = links_up(view)
    positions = f"{up} of {counted(view.positions, 'NVLink position')} up"
    if not up and mig_enabled(box, gpu.bdf):
        return skip("not-supported", f"{positions}: MIG mode is on", *evidence)
    if expected is None and (not up or switched(ends)) and (lost := _went_down(box, gpu)):
        were = f"link {lost[0]} was" if len(lost) == 1 else f"links {', '.join(map(str, lost))} were"
        message = f"{positions}; {were} up before"
        return Judgement(Status.FAIL, message, evidence=evidence, fault=Fault.NVLINK_DOWN)
    if expected is None:
        return skip("no-reference", f"{positions}, the number of wired links is not known", *evidence)
    message = f"{up} of {counted(expected, 'NVLink')} up"
    if up and by_pairs:
        return Judgement(Status.PASS, f"{message}; judged per pair", up, expected, "links", evidence)
    others = [device for device in linked(box, ends) if device.bdf != gpu.bdf]
    one_sided = sum(max(0, theirs - own) for own, theirs in (links_of_both(ends, gpu, device) for device in others))
    gpus = box.number("gpu.count")  # where some are missing, links that lead to them are down through no fault
    lacks_gpus = gpus is not None and sum(gpu.index is not None for gpu in box.reference_gpus) < gpus.value
    if up + one_sided >= expected or (not by_pairs and not switched(ends) and lacks_gpus):
        return Judgement(Status.PASS, message, up, expected, "links", evidence)
    if down := [link for link, state in states.items() if not state]:
        message += f"; {'link' if len(down) == 1 else 'links'} {', '.join(map(str, down))} down"
    return Judgement(severity(box, gpu), message, up, expected, "links", evidence, fault=Fault.NVLINK_DOWN)


def _went_down(box: Box, gpu: Device) -> list[int]:
    """Links that were up at the reading before, of this run or of an earlier one since the same boot."""
    before = () if isinstance(box.growth, Judgement) else rows(box.growth.old.nvlink)
    down = links_down(box, gpu)
    return [row.link for row in before if row.bdf == gpu.bdf and row.up is True and row.link in down]


def _evidence(gpu: Device, states: Mapping[int, bool]) -> tuple[Evidence, ...]:
    """The links that are down, or one that is up."""
    shown = [link for link, state in states.items() if not state] or [*states][:1]
    return tuple(answered(int(states[link]), "nvmlDeviceGetNvLinkState", gpu.bdf or "", link) for link in shown)


def _without_links(box: Box, gpu: Device, ends: Mapping[str, End], expected: int | None) -> Judgement:
    """Of a GPU whose driver calls all its NVLinks unsupported: a fault where the machine or its siblings have some."""
    evidence = Evidence(f"nvmlDeviceGetNvLinkState {gpu.bdf} 0", "not supported")
    if mig_enabled(box, gpu.bdf):
        return skip("not-supported", "no NVLink: MIG mode is on", evidence)
    if (vm := guest(box)) is not None:
        return skip("not-visible", f"no NVLink: {vm} may hide the links from its guest", evidence)
    if expected:
        message = f"NVML reports no NVLink, {expected} expected"
        return Judgement(severity(box, gpu), message, 0, expected, "links", (evidence,), fault=Fault.NVLINK_DOWN)
    others = siblings(box, gpu)
    having = [other for other in others if ends[other.bdf or ""].positions]
    if 2 * len(having) > len(others):
        message = f"NVML reports no NVLink, and has some of {counted(len(having), 'other GPU')} of the model"
        return Judgement(Status.UNKNOWN, message, 0, None, "links", (evidence,))
    return skip("not-supported", "this GPU has no NVLink")


def _graph(box: Box) -> Judged:
    """Fails for each pair of GPUs that has fewer or more NVLinks than in the reference machine's graph, under the
    numbering of the GPUs with the fewest differing pairs. Links that are up at one end only count as up; GPUs that are
    missing or have no link up are left out.

    Source: nvmlDeviceGetNvLinkRemotePciInfo of both ends; dgxcheck.topology.reference
    """
    reference, ends = given(graph_of(box)), _ends(box)
    gap = next((view.gap for view in ends.values() if view.gap is not None), None)
    if not linked(box, ends):
        raise Instead(skip("not-supported", "no GPU has NVLink") if gap is None else unjudged(gap))
    if switched(ends):
        raise Instead(skip("not-supported", "the links run through NVSwitches: see nvlink.state"))
    if not any(links_up(ends[gpu.bdf or ""]) for gpu in linked(box, ends)):
        raise Instead(skip("dependency-failed", "no NVLink is up: see nvlink.state"))
    graph = compare_graph(box, ends, reference)
    if graph is None:
        raise Instead(_another_graph(box, reference, ends))
    extra = {pair for pair, links in graph.links.items() if links > graph.expected[pair]}
    lacking = {pair for pair, links in graph.links.items() if links < graph.expected[pair]}
    miswired = {pair for pair in extra if any(set(pair) & set(other) for other in lacking)}
    for pair in graph.links:
        if pair[0] in box.gpus or pair[1] in box.gpus:
            wrong = pair in lacking or pair in extra - miswired
            instead = sorted(f"{a.name}-{b.name}" for a, b in miswired if pair in lacking and {a, b} & set(pair))
            yield box.pair(*pair), _of_pair(box, ends, pair, graph, wrong, instead)
    if not graph.links:
        yield HOST, skip("not-supported", "fewer than two GPUs have NVLinks up")


def _ends(box: Box) -> Mapping[str, End]:
    """Without NVML driver.library reports it."""
    ends = ends_of(box)
    unless(nvml_unavailable(box) if isinstance(ends, Missing) else None)
    return need(ends)


def _another_graph(box: Box, reference: Reference, ends: Mapping[str, End]) -> Judgement:
    links = {gpu.name: links_up(ends[gpu.bdf or ""]) for gpu in linked(box, ends)}
    message = f"the NVLink graph differs from that of {reference.machines} in more than {MOST} pairs"
    if box.guessed:
        return skip("no-reference", message)
    evidence = (Evidence("nvmlDeviceGetNvLinkState", dict(links)),)
    return Judgement(Status.FAIL, message, evidence=evidence, fault=Fault.NVLINK_MISWIRED)


def _of_pair(
    box: Box, ends: Mapping[str, End], pair: DevicePair, graph: GraphComparison, wrong: bool, instead: list[str]
) -> Judgement:
    """``instead``: pairs that have links which this one lacks."""
    a, b = pair
    links, expected = graph.links[pair], graph.expected[pair]
    ends_of = f"between {a.name} and {b.name}"
    message = f"{links} of {counted(expected, 'NVLink')} up {ends_of}"
    if links > expected:
        message = f"{counted(links, 'NVLink')} up {ends_of}, {expected} expected"
    evidence = _peers(ends, a, b)
    if not wrong:
        reported = "" if links == expected else "; reported at the pair that lacks it"
        return Judgement(Status.PASS, f"{message}{reported}", links, expected, "links", evidence)
    if instead:
        message += f"; wired to the wrong GPU: {', '.join(instead)} has more than expected"
    fault = Fault.NVLINK_MISWIRED if instead or links > expected else Fault.NVLINK_DOWN
    return Judgement(severity(box, a), message, links, expected, "links", evidence, fault=fault)


def _peers(ends: Mapping[str, End], a: Device, b: Device) -> tuple[Evidence, ...]:
    peers = ((gpu.bdf or "", dict(sorted(ends[gpu.bdf or ""].gpus.items()))) for gpu in (a, b))
    return tuple(Evidence(f"nvmlDeviceGetNvLinkRemotePciInfo {bdf}", {**gpus}) for bdf, gpus in peers)


def _symmetry(box: Box) -> Judged:
    """Fails if a GPU has more NVLinks up to a peer than the peer has up to it.

    Source: nvmlDeviceGetNvLinkState and nvmlDeviceGetNvLinkRemotePciInfo of both ends
    """
    unless(nvml_unavailable(box))
    ends = _ends(box)
    joined = [
        (a, b) for a, b in combinations(box.topology.listed_gpus, 2)
        if any(links_of_both(ends, a, b)) and {a.name, b.name} & {gpu.name for gpu in box.gpus}
    ]  # fmt: skip
    for a, b in joined:
        gap = next((view.gap for gpu in (a, b) if (view := ends[gpu.bdf or ""]).gap is not None), None)
        yield box.pair(a, b), _both_ends(ends, a, b) if gap is None else unjudged(gap)
    if not joined and switched(ends):
        yield HOST, skip("not-visible", "the far ends of the links are in NVSwitches")
    elif not joined:
        gap = next((view.gap for view in ends.values() if view.gap is not None), None)
        yield HOST, skip("not-supported", "no two GPUs are joined by NVLink") if gap is None else unjudged(gap)


def _both_ends(ends: Mapping[str, End], a: Device, b: Device) -> Judgement:
    own, theirs = links_of_both(ends, a, b)
    message = f"{a.name} has {counted(own, 'NVLink')} up to {b.name}, which has {theirs} up to it"
    evidence = _peers(ends, a, b)
    fewer, more = sorted((own, theirs))
    return judged(Fault.NVLINK_ONE_SIDED, message, fewer, more, "links", evidence, fails=fewer < more)


CHECKS = (
    Check("nvlink.state", _state, nvlinks, nvlinks_of_all),
    Check("nvlink.graph", _graph, nvlinks),
    Check("nvlink.symmetry", _symmetry, nvlinks),
)  # fmt: skip
