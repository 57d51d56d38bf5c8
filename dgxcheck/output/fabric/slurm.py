"""The fabric as Slurm's ``topology/tree``: topology.conf(5), and topology.yaml(5) since Slurm 25.05."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dgxcheck.fabric.judge import Judged
from dgxcheck.fabric.tiers import groups
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered
from dgxcheck.fleet.node_names import folded
from dgxcheck.output.plain_text import lines, visible
from dgxcheck.output.report import FabricReport

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class TreeSwitch(Record, kw_only=False):
    """A switch of the tree: one of the fabric, or several that the same machines hang on."""

    name: str
    nodes: tuple[str, ...]
    switches: tuple[str, ...]


def conf(report: FabricReport) -> str:
    """``topology.conf``."""
    below = [(each.name, f"Nodes={folded(each.nodes)}" if each.nodes else f"Switches={folded(each.switches)}")
             for each in tree(report.judged)]  # fmt: skip
    rows = ["# TopologyPlugin=topology/tree", *(f"SwitchName={name} {what}" for name, what in below)]
    return lines(map(visible, rows))


def yaml(report: FabricReport) -> str:
    """``topology.yaml``; JSON strings are YAML's."""
    rows = ["- topology: fabric", "  cluster_default: true", "  tree:", "    switches:"]
    for switch in tree(report.judged):
        rows.append(f"      - switch: {switch.name}")
        rows.append(f"        nodes: {folded(switch.nodes)}" if switch.nodes else
                    f"        children: {folded(switch.switches)}")  # fmt: skip
    return lines(map(visible, ["---", *rows]))


def tree(judged: Judged) -> tuple[TreeSwitch, ...]:
    """Machines whose adapters belong on the same leaves are below one switch; above it those that share spines."""
    below: dict[frozenset[str], list[str]] = {}
    for host in sorted(filter(_NAME.fullmatch, judged.places)):
        own = judged.places[host]
        leaves = frozenset(judged.intent.homes.get((host, name), place)[0] for name, place in own.items())
        if leaves := frozenset(leaf for leaf in leaves if judged.tiers.of.get(leaf) == 0):
            below.setdefault(leaves, []).append(host)
    named = _named(below, judged)
    pods = [frozenset(group) for group in groups(judged.tiers.uplinks, judged.tiers.leaves())]
    above = gathered((frozenset(n for n, pod in enumerate(pods) if leaves & pod), named[leaves]) for leaves in below)
    found = [TreeSwitch(named[leaves], tuple(hosts), ()) for leaves, hosts in below.items()]
    if len(found) < 2:
        return tuple(found)
    tops = [*above.values()]
    middle = [TreeSwitch(f"pod{number}", (), tuple(names)) for number, names in enumerate(tops)]
    taken = {*named.values(), *(switch.name for switch in middle)}
    name = next(name for name in ("core", "root", "top", "fabric-core") if name not in taken)
    root = TreeSwitch(name, (), tuple(switch.name for switch in middle) if len(middle) > 1 else tuple(tops[0]))
    return (*found, *(middle if len(middle) > 1 else ()), root)


def _named(below: Mapping[frozenset[str], Sequence[str]], judged: Judged) -> dict[frozenset[str], str]:
    """A leaf has its own name; a unit of several has a number."""
    found: dict[frozenset[str], str] = {}
    for number, leaves in enumerate(below):
        name = judged.fabric.switch(min(leaves)) if len(leaves) == 1 else ""
        usable = _NAME.fullmatch(name) is not None and name not in found.values()
        found[leaves] = name if usable else f"unit{number:03}"
    return found
