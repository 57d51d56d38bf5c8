"""Are the NVLinks up, at both ends, and between the GPUs that the reference machine joins?

One link that is down is told once: by nvlink.symmetry where only one end sees it, by nvlink.state where the GPU has no
link left or the links run through NVSwitches, else by nvlink.graph, which names the pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from dgxcheck.checks.driver import fabric_manager
from dgxcheck.checks.engine.box import HOST, Box, gpu_unavailable, in_mig, nvml_unavailable
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.nvlink.endpoints import (
    MOST,
    Compared,
    Pair,
    compared,
    ends_of,
    graph_of,
    linked,
    seen,
    severity,
    switched,
    up,
)
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nvlink import NvLink
from dgxcheck.topology.model import Device
from dgxcheck.topology.nvlinks import End
from dgxcheck.topology.reference import Reference

Judged = Iterator[tuple[Subject, Judgement]]


def _state(box: Box) -> Judged:
    ends = ends_of(box)
    reference = graph_of(box)
    by_pairs = False
    if not isinstance(ends, Missing) and isinstance(reference, Reference) and not switched(ends):
        by_pairs = compared(box, ends, reference) is not None
    due = _links(box, reference)
    for gpu in box.gpus:
        subject = box.subject(gpu)
        if (quiet := gpu_unavailable(box, gpu)) is not None:
            yield subject, quiet
        elif isinstance(ends, Missing):
            yield subject, unjudged(ends)
        elif fabric_manager.down(box):
            yield subject, skip("dependency-failed", "the NVSwitch fabric is not up: see driver.fabric")
        else:
            yield subject, _up(box, gpu, ends, due, by_pairs)


def _links(box: Box, reference: Reference | Judgement) -> int | None:
    """NVLinks that a GPU of the reference has."""
    number = box.choice.number("nvlink.links") if box.choice else None
    if number is not None:
        return int(number.value)
    return None if isinstance(reference, Judgement) else max(sum(row) for row in reference.rows())


def _up(box: Box, gpu: Device, ends: Mapping[str, End], due: int | None, by_pairs: bool) -> Judgement:
    view = ends[gpu.bdf or ""]
    if view.gap is not None:
        return unjudged(view.gap)
    if not view.positions:
        return skip("not-supported", "this GPU has no NVLink")
    count = up(view)
    evidence = _states(box, gpu)
    message = f"{count} of {view.positions} link positions are up"
    if not count and in_mig(box, gpu.bdf):
        return skip("not-supported", f"{message}: MIG is on", *evidence)
    if due is None:
        return skip("no-reference", f"{message}; how many are wired is not known", *evidence)
    others = [each for each in linked(box, ends) if each.bdf != gpu.bdf]
    lone = sum(max(0, theirs - own) for own, theirs in (seen(ends, gpu, each) for each in others))
    absent = 0 if by_pairs or switched(ends) else _to_absent(box, due)
    if count and by_pairs:
        return Judgement(Status.PASS, f"{message}, judged by pairs", count, due, "links", evidence)
    if count + lone + absent >= due:
        return Judgement(Status.PASS, message, count, due, "links", evidence)
    down = ", ".join(str(link.link) for link in _positions(box, gpu) if link.up is False)
    message = f"{count} of {due} NVLinks are up; down: {down or 'none that the driver knows'}"
    return Judgement(severity(box), message, count, due, "links", evidence)


def _to_absent(box: Box, due: int) -> int:
    """Links that may be down for want of GPUs that are not there: not the links' fault."""
    number = box.choice.number("gpu.count") if box.choice else None
    return (
        due
        if number is not None and len([gpu for gpu in box.topology.gpus if gpu.index is not None]) < number.value
        else 0
    )


def _positions(box: Box, gpu: Device) -> list[NvLink]:
    links = box.snapshot.nvlink
    return [] if isinstance(links, Missing) else [link for link in links if link.bdf == gpu.bdf]


def _states(box: Box, gpu: Device) -> tuple[Evidence, ...]:
    """The links that are down, or the first one."""
    known = [link for link in _positions(box, gpu) if isinstance(link.up, bool)]
    told = [link for link in known if not link.up] or known[:1]
    return tuple(answered(int(link.up is True), "nvmlDeviceGetNvLinkState", link.bdf, link.link) for link in told)


def _graph(box: Box) -> Judged:
    reference, ends = graph_of(box), ends_of(box)
    if isinstance(reference, Judgement) or isinstance(ends, Missing) or box.choice is None:
        yield HOST, reference if isinstance(reference, Judgement) else _nvlink_gap(box, ends)
        return
    gaps = [view.gap for view in ends.values() if view.gap is not None]
    gpus = linked(box, ends)
    if switched(ends) or not gpus:
        word = "links run through NVSwitches: nvlink.state judges each GPU's" if gpus else "no GPU has NVLink"
        yield HOST, unjudged(gaps[0]) if gaps and not gpus else skip("not-supported", word)
        return
    found = compared(box, ends, reference)
    if found is None:
        yield HOST, _another(box, reference, ends)
        return
    extra = {pair for pair, links in found.has.items() if links > found.due[pair]}
    lacking = {pair for pair, links in found.has.items() if links < found.due[pair]}
    told = {pair for pair in extra if any(set(pair) & set(other) for other in lacking)}
    for pair in found.has:
        if pair[0] in box.gpus or pair[1] in box.gpus:
            wrong = pair in lacking or pair in extra - told
            beside = sorted(f"{a.name}-{b.name}" for a, b in told if pair in lacking and {a, b} & set(pair))
            yield box.pair(*pair), _joined(box, ends, pair, found, wrong, beside)
    if not found.has:
        yield HOST, skip("not-supported", "no pair of GPUs is joined here or in the reference")


def _nvlink_gap(box: Box, ends: dict[str, End] | Missing) -> Judgement:
    """NVML as a whole is told by driver.library."""
    return nvml_unavailable(box) or (
        unjudged(ends) if isinstance(ends, Missing) else skip("not-supported", "no GPU has NVLink")
    )


def _another(box: Box, reference: Reference, ends: Mapping[str, End]) -> Judgement:
    counts = {gpu.name: up(ends[gpu.bdf or ""]) for gpu in linked(box, ends)}
    message = f"the NVLink graph differs from that of {reference.machines} in more than {MOST} pairs"
    if not any(counts.values()):
        return skip("dependency-failed", "no NVLink is up: nvlink.state judges each GPU's")
    if box.choice is not None and box.choice.how == "gpus":
        return skip("no-reference", message)
    return Judgement(Status.FAIL, message, evidence=(Evidence("nvmlDeviceGetNvLinkState", dict(counts)),))


def _joined(
    box: Box, ends: Mapping[str, End], pair: Pair, found: Compared, wrong: bool, beside: list[str]
) -> Judgement:
    a, b = pair
    has, due = found.has[pair], found.due[pair]
    message = f"{has} NVLinks between {a.name} and {b.name}, {due} expected"
    if beside and wrong:
        message += f"; wired to the wrong peer: {', '.join(beside)} has more than expected"
    evidence = tuple(
        Evidence(f"nvmlDeviceGetNvLinkRemotePciInfo {gpu.bdf}", dict(sorted(ends[gpu.bdf or ""].gpus.items())))
        for gpu in pair
    )
    status = severity(box) if wrong else Status.PASS
    if not wrong and has != due:
        message += ", told at the pair that lacks it"
    return Judgement(status, message, has, due, "links", evidence)


def _symmetry(box: Box) -> Judged:
    ends = ends_of(box)
    if isinstance(ends, Missing) or isinstance(box.nvml, Missing):
        yield HOST, _nvlink_gap(box, ends)
        return
    listed = [gpu for gpu in box.topology.gpus if gpu.index is not None and gpu.bdf is not None]
    judged = 0
    for a, b in combinations(listed, 2):
        own, theirs = seen(ends, a, b)
        if (not own and not theirs) or not {a.name, b.name} & {gpu.name for gpu in box.gpus}:
            continue
        judged += 1
        gap = next((view.gap for gpu in (a, b) if (view := ends[gpu.bdf or ""]).gap is not None), None)
        yield box.pair(a, b), unjudged(gap) if gap is not None else _both(ends, a, b)
    if not judged:
        yield HOST, _nothing_joined(ends)


def _nothing_joined(ends: Mapping[str, End]) -> Judgement:
    if switched(ends):
        return skip("not-visible", "the far ends of the links are in NVSwitches")
    gap = next((view.gap for view in ends.values() if view.gap is not None), None)
    return skip("not-supported", "no NVLink joins two GPUs here") if gap is None else unjudged(gap)


def _both(ends: Mapping[str, End], a: Device, b: Device) -> Judgement:
    own, theirs = seen(ends, a, b)
    message = f"{a.name} has {own} NVLinks up to {b.name}, {b.name} has {theirs} up to {a.name}"
    evidence = tuple(
        Evidence(f"nvmlDeviceGetNvLinkRemotePciInfo {gpu.bdf}", dict(sorted(ends[gpu.bdf or ""].gpus.items())))
        for gpu in (a, b)
    )
    status = Status.PASS if own == theirs else Status.FAIL
    return Judgement(status, message, min(own, theirs), max(own, theirs), "links", evidence)


CHECKS = (
    Check(
        id="nvlink.state",
        rule="Fails where a GPU has no NVLink up, or where fewer are up than the profile says and no pair can be named:"
        " with NVSwitches, or without a graph to compare with. A link between two GPUs is told by nvlink.graph, one"
        " that is up at one end by nvlink.symmetry. Without a profile, links that are down are not judged, nor where"
        " MIG is on and none is up.",
        source="nvmlDeviceGetNvLinkState; the profile's nvlink.links or the degree of its graph",
        remedy="look for Xid 74 and the fabric manager's log; power the machine off and on, then reseat GPU or bridge",
        judge=_state,
    ),
    Check(
        id="nvlink.graph",
        rule="Fails for each pair of GPUs that has fewer NVLinks than in the reference machine's graph, or more, up to"
        " other numbers of the GPUs and with the fewest differing pairs. Links that are up at one end count as up"
        " here; GPUs that are gone or have no link up are left out.",
        source="nvmlDeviceGetNvLinkRemotePciInfo of both ends; dgxcheck.topology.reference",
        remedy="look for Xid 74 of the two GPUs; power the machine off and on, then reseat both, or the bridge",
        judge=_graph,
    ),
    Check(
        id="nvlink.symmetry",
        rule="Fails where a GPU has more NVLinks up to a peer than the peer has back.",
        source="nvmlDeviceGetNvLinkState and nvmlDeviceGetNvLinkRemotePciInfo of both ends",
        remedy="power the machine off and on to train the link anew; if it stays, reseat both GPUs, or the bridge",
        judge=_symmetry,
    ),
)
