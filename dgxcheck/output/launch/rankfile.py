"""A rankfile of Open MPI: which cores the process of each GPU runs on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dgxcheck.facts.missing import Missing
from dgxcheck.launch.placement import Placement
from dgxcheck.output.plain_text import lines


def render(placed: Sequence[Placement], cores: Mapping[int, range]) -> str:
    """``rank N=+n0 slot=A-B``: the cores of a NUMA node shared evenly among its GPUs; mpirun(1), Rankfiles."""
    return lines(_lines(placed, cores))


def complete(placed: Sequence[Placement], cores: Mapping[int, range]) -> bool:
    """Has every GPU cores?"""
    return bool(placed) and all(each.numa_node in cores for each in placed)


def _lines(placed: Sequence[Placement], cores: Mapping[int, range]) -> Iterator[str]:
    nodes = [each.numa_node for each in placed]
    for rank, each in enumerate(placed):
        run = None if isinstance(each.numa_node, Missing) else cores.get(each.numa_node)
        if run is None:
            yield f"# {each.gpu.name} {each.gpu.bdf}: its cores are not known"
            continue
        share, place = len(run) // nodes.count(each.numa_node), nodes[:rank].count(each.numa_node)
        first = run.start + place * max(share, 1) % len(run)
        yield f"rank {rank}=+n0 slot={first}-{first + max(share, 1) - 1}"
