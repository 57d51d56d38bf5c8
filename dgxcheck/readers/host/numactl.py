"""``numactl -H``: nodes with their CPUs, memory and distances, as the files of ``/sys/devices/system/node``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.facts.missing import Json
from dgxcheck.facts.sysfs import NODES
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bare, bounded

TOOL = "numactl -H"
_HEAD = re.compile(r"available: (\d{1,4}) nodes? \(.{1,200}\)", re.ASCII)
_CPUS = re.compile(r"node (\d{1,4}) cpus:((?: \d{1,5}){0,8192})", re.ASCII)
_SIZE = re.compile(r"node (\d{1,4}) size: (\d{1,12}) MB", re.ASCII)
_FREE = re.compile(r"node \d{1,4} free: \d{1,12} MB|No distance information available\.", re.ASCII)
_TITLES = re.compile(r"node distances:|node(?:\s+\d{1,4}){1,256}", re.ASCII)
_DISTANCES = re.compile(r"(\d{1,4}):((?:\s+\d{1,3}){1,256})", re.ASCII)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The nodes; their list is given only where as many are shown as the head says."""
    facts: dict[str, Json] = {}
    nodes: list[str] = []
    understood: set[int] = set()
    below = False
    said: int | None = None
    for number, raw in enumerate(bounded(lines)):
        line = bare(raw)
        if match := _HEAD.fullmatch(line):
            said = int(match[1])
        elif match := _CPUS.fullmatch(line):
            nodes.append(f"node{match[1]}")
            facts[f"text {NODES}/node{match[1]}/cpulist"] = f"{','.join(_ranges(match[2].split()))}\n"
        elif match := _SIZE.fullmatch(line):
            kib = int(match[2]) * 1024
            facts[f"text {NODES}/node{match[1]}/meminfo"] = f"Node {match[1]} MemTotal: {kib} kB\n"
        elif nodes and _TITLES.fullmatch(line):
            below = True
        elif below and (match := _DISTANCES.fullmatch(line)):
            facts[f"text {NODES}/node{match[1]}/distance"] = f"{' '.join(match[2].split())}\n"
        elif not (nodes and _FREE.fullmatch(line)):
            continue
        understood.add(number)
    if not nodes:
        return ()
    if said is None or said == len(set(nodes)):
        facts[f"names {NODES}"] = [*dict.fromkeys(nodes)]
    return (Imported(tool=TOOL, facts=facts, understood=frozenset(understood)),)


def _ranges(cpus: Sequence[str]) -> list[str]:
    """``0 1 2 8`` as ``0-2``, ``8``."""
    runs: list[list[int]] = []
    for cpu in sorted(set(map(int, cpus))):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return [f"{first}-{last}" if last > first else f"{first}" for first, last in runs]
