"""``lscpu``: the CPUs of each NUMA node, and those that are online."""

from __future__ import annotations

import re

from dgxcheck.facts.cpulist import ranges
from dgxcheck.facts.missing import Json
from dgxcheck.facts.sysfs import NODES
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bare, bounded, integer

TOOL = "lscpu"
_MEMBER = re.compile(r"(?P<name>[A-Z][\w ().,/-]{1,50}?):\s{0,60}(?P<value>.{0,4000})")
_NODE = re.compile(r"NUMA node(?P<node>\d{1,4}) CPU\(s\)")
_LABELS = re.compile(
    r"Architecture|CPU op-mode\(s\)|Address sizes|Byte Order|CPU\(s\)|O(?:n|ff)-line CPU\(s\) (?:list|mask)|Vendor ID"
    r"|Model name|BIOS (?:Vendor ID|Model name|CPU family)|CPU family|Model"
    r"|Thread\(s\) per (?:core|socket)"
    r"|Core\(s\) per (?:socket|cluster)|Socket\(s\)|Cluster\(s\)|Stepping|Frequency boost"
    r"|CPU\(s\) scaling MHz|CPU (?:max|min|dynamic) MHz|BogoMIPS|Flags"
    r"|Virtualization(?: features| type)?|Hypervisor vendor|CPU MHz"
    r"|Caches \(sum of all\)|L\d[a-z]?(?: cache)?"
    r"|NUMA(?: node\(s\)| node\d{1,4} CPU\(s\))?|Vulnerabilit(?:y|ies).{0,60}"
    r"|Gather data sampling|Itlb multihit|L1tf|Mds|Meltdown|Mmio stale data|Reg file data sampling|Retbleed"
    r"|Spec (?:rstack overflow|store bypass)|Spectre v[12]|Srbds|Tsx async abort|Indirect target selection|Tsa|Vmscape"
    r"|Ghostwrite|Old microcode"
)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The nodes; their list only where as many are shown as lscpu counts."""
    facts: dict[str, Json] = {}
    nodes: list[str] = []
    understood: set[int] = set()
    count: int | None = None
    for number, raw in enumerate(bounded(lines)):
        member = _MEMBER.fullmatch(bare(raw)) if ":" in raw else None
        if member is None or not _LABELS.fullmatch(member["name"].strip()):
            continue
        name, value = member["name"].strip(), member["value"].strip()
        understood.add(number)
        if (node := _NODE.fullmatch(name)) and ranges(value) is not None:
            nodes.append(f"node{node['node']}")
            facts[f"text {NODES}/node{node['node']}/cpulist"] = f"{value}\n"
        elif name == "NUMA node(s)":
            count = integer(value, 1024)
        elif name == "On-line CPU(s) list" and ranges(value):
            facts["text /sys/devices/system/cpu/online"] = f"{value}\n"
    if not facts:
        return ()
    if nodes and count == len(set(nodes)):
        facts[f"names {NODES}"] = [*dict.fromkeys(nodes)]
    return (Imported(tool=TOOL, facts=facts, understood=frozenset(understood)),)
