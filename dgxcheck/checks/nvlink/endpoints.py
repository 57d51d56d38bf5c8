"""What both ends of each NVLink say, and the graph of the box beside that of its reference machine."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, Status, skip
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Device
from dgxcheck.topology.nvlinks import End, end
from dgxcheck.topology.reference import ALL, Reference
from dgxcheck.topology.relabel import Rows, fewest_differences

Pair = tuple[Device, Device]
MOST = 6
"""Pairs that may differ before the graph is another one, not a faulty one."""


class Compared(Record):
    """The box's graph beside the reference's: links per pair that is joined in either."""

    has: Mapping[Pair, int]
    due: Mapping[Pair, int]


def ends_of(box: Box) -> dict[str, End] | Missing:
    """What each GPU says of its links, by the GPU's bdf."""
    links = box.snapshot.nvlink
    if isinstance(links, Missing):
        return links
    bdfs = {gpu.bdf for gpu in box.topology.gpus if gpu.bdf is not None}
    return {bdf: end((link for link in links if link.bdf == bdf), bdfs, box.topology.functions) for bdf in sorted(bdfs)}


def linked(box: Box, ends: Mapping[str, End]) -> list[Device]:
    """GPUs with link positions, all of which answered."""
    listed = (gpu for gpu in box.topology.gpus if gpu.index is not None and gpu.bdf is not None)
    return [gpu for gpu in listed if ends[gpu.bdf or ""].positions and ends[gpu.bdf or ""].gap is None]


def up(view: End) -> int:
    """Links that a GPU has up."""
    return view.gpus.total() + view.switches.total() + view.elsewhere.total()


def seen(ends: Mapping[str, End], a: Device, b: Device) -> tuple[int, int]:
    """How many links each of two GPUs has up to the other."""
    return ends[a.bdf or ""].gpus[b.bdf or ""], ends[b.bdf or ""].gpus[a.bdf or ""]


def graph_of(box: Box) -> Reference | Judgement:
    """The graph that this box is held to, or why there is none."""
    if box.choice is None:
        return skip("no-reference", "no reference machine is known for this box")
    name = box.choice.profile.nvlink_graph
    found = next((each for each in ALL if each.name == name), None)
    return found or skip("no-reference", f"the profile {box.choice.profile.name} has no NVLink graph")


def severity(box: Box) -> Status:
    """A reference that was guessed from the GPUs alone makes no failure."""
    return Status.WARN if box.choice is not None and box.choice.how == "gpus" else Status.FAIL


def compared(box: Box, ends: Mapping[str, End], reference: Reference) -> Compared | None:
    """Links per pair as the end that sees more has them; GPUs without any link are left out; None if too different."""
    gpus = [gpu for gpu in linked(box, ends) if up(ends[gpu.bdf or ""])]
    rows = [[max(seen(ends, a, b)) if a is not b else 0 for b in gpus] for a in gpus]
    due = reference.rows()
    labels = _labels(rows, due, _most(box, len(gpus), reference))
    if labels is None:
        return None
    places = list(combinations(range(len(gpus)), 2))
    has = {(gpus[i], gpus[j]): rows[i][j] for i, j in places}
    wanted = {(gpus[i], gpus[j]): due[labels[i]][labels[j]] for i, j in places}
    joined = [pair for pair in has if has[pair] or wanted[pair]]
    return Compared(has={pair: has[pair] for pair in joined}, due={pair: wanted[pair] for pair in joined})


def _labels(rows: Rows, due: Rows, most: int) -> tuple[int, ...] | None:
    """Where all pairs of the reference are alike no labels are better than the box's own."""
    if len({links for i, row in enumerate(due) for j, links in enumerate(row) if i != j}) > 1:
        return fewest_differences(rows, due, most)
    differing = sum(rows[i][j] != due[i][j] for i, j in combinations(range(min(len(rows), len(due))), 2))
    return tuple(range(len(rows))) if len(rows) <= len(due) and differing <= most else None


def _most(box: Box, gpus: int, reference: Reference) -> int:
    """A machine guessed from its GPUs may be another: with fewer of them, fewer pairs may differ."""
    if box.choice is None or box.choice.how != "gpus":
        return MOST
    peers = max(sum(links > 0 for links in row) for row in reference.rows())
    return min(MOST, gpus - 1, peers - (reference.gpus - gpus))


def switched(ends: Mapping[str, End]) -> bool:
    """Do links run through NVSwitches?"""
    return any(view.switches for view in ends.values())
