"""``topology.conf`` of Slurm for ``topology/block``: a block per NVLink domain, topology.conf(5).

A host sees the ports of its own HCAs, never the switches behind them: no ``SwitchName`` can be told from results.
"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.fleet.node_names import folded
from dgxcheck.output.fleet.report import Report
from dgxcheck.output.plain_text import lines, visible

_UNKNOWN = "# no switch of InfiniBand or Ethernet is named, as hosts do not see them; ibnetdiscover(8) lists them"


def render(report: Report) -> str:
    """Nodes in no domain, or in several, are named in comments."""
    return lines(map(visible, _lines(report)))


def _lines(report: Report) -> Iterator[str]:
    nodes = report.fleet.nodes.values()
    domains: dict[str, list[str]] = {}
    for node in nodes:
        if len(node.newest.nvlink_domains) == 1:
            domains.setdefault(node.newest.nvlink_domains[0], []).append(node.name)
    for number, (domain, names) in enumerate(sorted(domains.items()), 1):
        yield f"# NVLink domain {domain}: cluster UUID and clique"
        yield f"BlockName=nvl{number} Nodes={folded(names)}"
    if alone := [node.name for node in nodes if not node.newest.nvlink_domains]:
        yield f"# in no NVLink domain of several machines: {folded(alone)}"
    for node in nodes:
        if len(node.newest.nvlink_domains) > 1:
            yield f"# {node.name} has GPUs in several NVLink domains: {', '.join(node.newest.nvlink_domains)}"
    if report.fleet.silent:
        yield f"# without a result: {folded(report.fleet.silent)}"
    yield _UNKNOWN
