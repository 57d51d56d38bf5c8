"""A picture in words, for those who cannot see it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.checks.engine.wording import counted
from dgxcheck.output.picture.marks import Mark
from dgxcheck.output.picture.wiring import Panel, devices_below
from dgxcheck.topology.model import Topology


def description(
    topology: Topology, panels: Sequence[Panel], to_bar: Mapping[str, int | None], marks: Sequence[Mark]
) -> str:  # fmt: skip
    """``NUMA node 0: GPU0, GPU1, mlx5_0. ... NVLinks join 16 pairs of GPUs. FAIL: ...``"""
    told = [f"{panel.title}: {', '.join(node.name for node in devices_below(panel.children))}." for panel in panels]
    gpus = topology.gpus
    joined = sum(bool(topology.link(a, b).nvlinks) for number, a in enumerate(gpus) for b in gpus[number + 1 :])
    if to_bar:
        told.append(f"NVLinks of {counted(len(to_bar), 'GPU')} lead to NVSwitches.")
    elif joined:
        told.append(f"NVLinks join {counted(joined, 'pair')} of GPUs.")
    told += [f"{mark.words}." if not mark.words.endswith(".") else mark.words for mark in marks]
    return " ".join(told) or "No GPUs and no HCAs."
