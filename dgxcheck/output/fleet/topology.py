"""``topology.conf`` of Slurm for ``topology/block``: a block per NVLink domain, topology.conf(5).

A host sees the ports of its own HCAs, never the switches behind them: no ``SwitchName`` can be told from results.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.fleet.node_names import folded
from dgxcheck.output.fleet.report import Report
from dgxcheck.output.plain_text import lines, visible

_DOMAIN = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\.[0-9]{1,10}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_UNKNOWN = "# no switch of InfiniBand or Ethernet is named, as hosts do not see them; ibnetdiscover(8) lists them"


def render(report: Report) -> str:
    """Nodes in no domain, or in several, are named in comments."""
    return lines(map(visible, _lines(report)))


def _lines(report: Report) -> Iterator[str]:
    nodes = [node for node in report.fleet.nodes.values() if _NAME.fullmatch(node.name)]
    domains = {node.name: [each for each in node.newest.nvlink_domains if _DOMAIN.fullmatch(each)] for node in nodes}
    blocks: dict[str, list[str]] = {}
    for name, found in domains.items():
        if len(found) == 1:
            blocks.setdefault(found[0], []).append(name)
    for domain, names in sorted(blocks.items()):
        yield f"# NVLink domain {domain}: cluster UUID and clique"
        yield f"BlockName={_block(domain)} Nodes={folded(names)}"
    if alone := [name for name, found in domains.items() if not found]:
        yield f"# in no NVLink domain of several machines: {folded(alone)}"
    for name, found in domains.items():
        if len(found) > 1:
            yield f"# {name} has GPUs in several NVLink domains: {', '.join(found)}"
    if report.fleet.silent:
        yield f"# without a result: {folded(report.fleet.silent)}"
    yield _UNKNOWN


def _block(domain: str) -> str:
    """The same for the same domain, whichever others there are: ``nvl-3f2c1a9e-32766``."""
    cluster, _, clique = domain.partition(".")
    return f"nvl-{cluster.partition('-')[0]}-{clique}"
