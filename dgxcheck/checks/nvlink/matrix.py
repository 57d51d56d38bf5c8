"""The NVLinks of an imported ``nvidia-smi topo -m``: against those of the box, and of each GPU against the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations

from dgxcheck.checks.engine.box import HOST, Box, unlisted_gpu
from dgxcheck.checks.engine.check import Check, component_of, remedy_of
from dgxcheck.checks.engine.expected import between_all
from dgxcheck.checks.engine.finding import (
    Evidence,
    Instead,
    Judged,
    Judgement,
    Status,
    Subject,
    counted,
    first_of,
    judged,
    skip,
)
from dgxcheck.checks.nvlink.links import nvlinks
from dgxcheck.components.component import Component
from dgxcheck.facts.bdf import IdPair
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.tool_outputs import MATRIX, NvidiaSmiTopo

FEWEST = 3
"""GPUs with NVLinks to two others or more, before one without any is odd: two bridged cards beside a third are not."""
_WHOLE = (4, 8, 16)
"""GPUs of boards; one beside them may be for a display (DGX Station A100)."""
_CUBE = 8
"""GPUs of a DGX-1 or one like it: NVLinks, one or two, to some of the others, as many of each GPU."""
SHOWN = 6


def _matrix(box: Box) -> Judged:
    """Of an imported nvidia-smi topo -m alone: fails if a GPU has no NVLink where three others or more are joined to
    each other, and warns if a pair has fewer than three quarters of all pairs have, a bridged pair fewer than another,
    a GPU of a cube mesh of eight (DGX-1) fewer than the others, or all fewer than boards with NVSwitches give GPUs of
    this model. Beside the facts of a box: warns if the matrix shows other labels than the box reports.

    Source: an imported nvidia-smi topo -m
    """
    stated = box.snapshot.stated
    if isinstance(stated, Missing) or not stated.labels:
        return
    names = {name: device.name for name in stated.names if (device := box.topology.device(name)) is not None}
    if own := _of_box(box, stated, names):
        raise Instead(_against(own))
    counts = _counts(stated, names)
    order = [names.get(name, name) for name in stated.names]
    gpus = sorted({name for pair in counts for name in pair}, key=order.index)
    complete = [gpu for gpu in gpus if all(frozenset((gpu, other)) in counts for other in gpus if other != gpu)]
    most, of_model = max(counts.values(), default=0), between_all(box, complete)
    if most < of_model:
        message = f"{f'NV{most}' if most else 'no NVLink'} between the GPUs, NV{of_model} on boards of their model"
        raise Instead(_fewer(message, most, of_model, Evidence(MATRIX, most)))
    if len(complete) < 2 or not any(counts.values()):
        raise Instead(skip("not-supported", "the imported matrix shows no NVLink, or one GPU alone"))
    yield from _odd(complete, counts)


def _counts(stated: NvidiaSmiTopo, names: Mapping[str, str]) -> dict[frozenset[str], int]:
    """NVLinks by pair of GPUs, as ``names`` call them; without cells that make no sense or differ from their mirror."""
    found: dict[frozenset[str], int] = {}
    for (a, b), label in stated.labels.items():
        gpus = all(name.startswith("GPU") or ":" in name for name in (a, b))
        if gpus and isinstance(label, str) and stated.labels.get((b, a), label) == label:
            found[frozenset((names.get(a, a), names.get(b, b)))] = int(label[2:]) if label.startswith("NV") else 0
    return found


def _of_box(box: Box, stated: NvidiaSmiTopo, names: Mapping[str, str]) -> dict[IdPair, tuple[str, str]]:
    """By pair: the matrix's label, and the box's own; only pairs of which both are known."""
    found: dict[IdPair, tuple[str, str]] = {}
    for (a, b), label in stated.labels.items():
        if a in names and b in names and isinstance(label, str):
            link = box.topology.links[names[a], names[b]]
            if link.nvlinks is not None and (link.nvlinks or link.pci is not None):
                found[names[a], names[b]] = label, link.label
    return found


def _against(own: Mapping[IdPair, tuple[str, str]]) -> Judgement:
    differing = {tuple(sorted(pair)): labels for pair, labels in own.items() if labels[0] != labels[1]}
    if not differing:
        return Judgement(Status.PASS, "the imported matrix shows what the box reports", 0, 0, "pairs")
    shown = [f"{a}-{b} {printed}, not {is_own}" for (a, b), (printed, is_own) in sorted(differing.items())]
    message = f"the imported matrix differs from what the box reports: {first_of(shown, SHOWN)}"
    evidence = (Evidence(MATRIX, ", ".join(shown[:SHOWN])),)
    return Judgement(Status.WARN, message, len(shown), 0, "pairs", evidence, fault=Fault.NVLINK_MISWIRED)


def _odd(gpus: list[str], counts: Mapping[frozenset[str], int]) -> Judged:
    """Does one GPU have no NVLink, or fewer to all others, where the rest are joined to each other alike?"""
    peers = {gpu: [counts[frozenset((gpu, other))] for other in gpus if other != gpu] for gpu in gpus}
    meshed = [gpu for gpu, links in peers.items() if sum(count > 0 for count in links) > 1]
    without = [gpu for gpu, links in peers.items() if not any(links)]
    if without and len(meshed) >= FEWEST and len(meshed) > len(without) and len(meshed) not in _WHOLE:
        evidence = Evidence(MATRIX, {gpu: sum(peers[gpu]) for gpu in gpus})
        text = f"no NVLink, {counted(len(meshed), 'other GPU has', 'other GPUs have')} some"
        yield from ((unlisted_gpu(gpu), _fewer(text, 0, None, evidence, fails=True)) for gpu in without)
        return
    pairs = {(a, b): counts[frozenset((a, b))] for a, b in combinations(gpus, 2)}
    (usual, often), *_ = Counter(pairs.values()).most_common(1)
    fewer = {pair: links for pair, links in pairs.items() if links < usual}
    are_bridged = max(map(len, ([count for count in links if count] for links in peers.values()))) == 1
    if are_bridged:
        usual = max(pairs.values())
        fewer = {pair: links for pair, links in pairs.items() if 0 < links < usual}
    if fewer and (are_bridged or 4 * often >= 3 * len(pairs)):
        shown = [f"{a}-{b} {links}" for (a, b), links in fewer.items()][:SHOWN]
        text = f"fewer NVLinks than the {usual} between {'others' if are_bridged else 'most GPUs'}: {', '.join(shown)}"
        alone = [gpu for gpu in gpus if all(gpu in pair for pair in fewer)]
        at = unlisted_gpu(alone[0]) if len(alone) == 1 else HOST
        yield at, _fewer(text, min(fewer.values()), usual, Evidence(MATRIX, ", ".join(shown)))
        return
    totals = {gpu: sum(links) for gpu, links in peers.items()}
    most = max(totals.values())
    lost = {gpu: most - links for gpu, links in totals.items() if links < most}
    if lost and len(gpus) == _CUBE and max(pairs.values()) < FEWEST and 0 in pairs.values():
        text = f"fewer NVLinks than the {most} of the others: {', '.join(f'{gpu} {totals[gpu]}' for gpu in lost)}"
        alone = [gpu for gpu, links in lost.items() if 2 * links == sum(lost.values())]
        at = unlisted_gpu(alone[0]) if len(alone) == 1 else HOST
        yield at, _fewer(text, min(totals.values()), most, Evidence(MATRIX, {**totals}))
        return
    yield HOST, Judgement(Status.PASS, "every GPU of the imported matrix has the NVLinks that the others have")


def _fewer(text: str, links: int, usual: int | None, evidence: Evidence, fails: bool = False) -> Judgement:
    remedy, figures = remedy_of("nvlink.matrix"), (links, usual, "links", (evidence,))
    return judged(Fault.NVLINK_REPORTED, text, *figures, warns=True, fails=fails, remedy=remedy)


def _blames(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    if at.kind == "gpu":
        yield component_of(box, at, "NVLink")
    else:
        yield from nvlinks(box, at, judgement)


CHECKS = (Check("nvlink.matrix", _matrix, _blames),)
