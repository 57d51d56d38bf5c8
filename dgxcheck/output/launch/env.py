"""Environment variables for NCCL and UCX, as lines for a shell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.facts.missing import Missing
from dgxcheck.launch.placement import Placement
from dgxcheck.output.plain_text import lines, visible


def render(placed: Sequence[Placement]) -> str:
    """``NCCL_IB_HCA`` for all processes; what differs by process is in comments, and set by ``dgxcheck bind``.

    ``=`` in front of the list makes NCCL match whole names (src/misc/utils.cc, parseStringList).
    """
    return lines(_lines(placed))


def nccl_ib_hca(placed: Sequence[Placement]) -> str:
    """``=mlx5_0:1,mlx5_1:1``; empty without a port."""
    ports = dict.fromkeys(port for each in placed for port in sorted(each.ports))
    return f"={','.join(ports)}" if ports else ""


def _lines(placed: Sequence[Placement]) -> Iterator[str]:
    yield "export CUDA_DEVICE_ORDER=PCI_BUS_ID"
    if hca := nccl_ib_hca(placed):
        yield f"export NCCL_IB_HCA='{visible(hca)}'"
    else:
        yield "# no HCA port of the compute fabric is up"
    for rank, each in enumerate(placed):
        port = f"UCX_NET_DEVICES={each.port}, " if each.port else ""
        cpus = "?" if isinstance(each.cpulist, Missing) else each.cpulist
        node = "?" if isinstance(each.numa_node, Missing) else each.numa_node
        yield visible(f"# local rank {rank}, {each.gpu.name} {each.gpu.bdf}: {port}CPUs {cpus}, NUMA node {node}")
