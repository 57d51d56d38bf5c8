"""The NVLinks of a machine: between pairs of GPUs, or from each GPU to NVSwitches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dgxcheck.components.locate import is_nvswitch
from dgxcheck.facts.record import Record
from dgxcheck.output.picture.marks import Mark, numbered, pair
from dgxcheck.topology.model import Topology

_SINGLE = 12
"""More NVLinks at one GPU are drawn as one thick line for each pair, with their number."""


class Joint(Record):
    """The NVLinks of two GPUs, by key of their boxes."""

    a: str
    b: str
    up: int
    down: int
    marks: tuple[Mark, ...]
    generation: int | None = None


def joints(topology: Topology, marks: Sequence[Mark]) -> list[Joint]:
    """Pairs of GPUs with NVLinks of their own, and pairs that are marked and have none."""
    found = []
    keys = {gpu.name: gpu.bdf or gpu.name for gpu in topology.gpus}
    marked = {at for mark in marks for at in mark.at if at[0] == "pair"}
    gpus = topology.gpus
    for number, a in enumerate(gpus):
        for b in gpus[number + 1 :]:
            link = topology.link(a, b)
            up = 0 if link.switched else link.nvlinks or 0
            at = pair(keys[a.name], keys[b.name])
            if not up and (at not in marked or (link.switched and link.nvlinks)):
                continue
            own = tuple(numbered(marks, at))
            down = max((mark.down for mark in own), default=0) or int(not up)
            found.append(Joint(a=keys[a.name], b=keys[b.name], up=up, down=down, marks=own,
                               generation=link.nvlink_generation))  # fmt: skip
    return found


def is_single(found: Sequence[Joint]) -> bool:
    """Is there room for an arc for each NVLink?"""
    per_gpu = Counter(key for joint in found for key in (joint.a, joint.b) for _ in range(joint.up + joint.down))
    return max(per_gpu.values(), default=0) <= _SINGLE


def switched(topology: Topology) -> dict[str, int | None]:
    """NVLinks of each GPU to NVSwitches, by key of its box, None where unknown; empty where there are no NVSwitches."""
    gpus = topology.gpus
    links = [topology.link(a, b) for number, a in enumerate(gpus) for b in gpus[number + 1 :]]
    joined = [link for link in links if link.nvlinks]
    on_pci = any(map(is_nvswitch, topology.functions.values()))
    if not (joined[0].switched if joined else on_pci and len(gpus) > 1):
        return {}
    keys = {gpu.name: gpu.bdf or gpu.name for gpu in gpus}
    found: dict[str, int | None] = dict.fromkeys(keys.values())
    for link in links:
        for key in (keys[link.a], keys[link.b]):
            if link.nvlinks is not None:
                found[key] = max(found[key] or 0, link.nvlinks)
    return found
