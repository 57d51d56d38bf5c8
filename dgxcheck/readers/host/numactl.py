"""``numactl -H``: nodes with their CPUs, memory and distances, as the files of ``/sys/devices/system/node``."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.facts.missing import Json

_NODES = "/sys/devices/system/node"
_CPUS = re.compile(r"node (\d{1,4}) cpus:((?: \d{1,5})*)\s*", re.ASCII)
_SIZE = re.compile(r"node (\d{1,4}) size: (\d{1,12}) MB\s*", re.ASCII)
_DISTANCES = re.compile(r"\s*(\d{1,4}):((?:\s+\d{1,3})+)\s*", re.ASCII)


def read(lines: Sequence[str]) -> dict[str, Json]:
    """Facts by key."""
    facts: dict[str, Json] = {}
    nodes: list[str] = []
    below = False
    for line in lines:
        if match := _CPUS.fullmatch(line):
            nodes.append(f"node{match[1]}")
            facts[f"text {_NODES}/node{match[1]}/cpulist"] = f"{','.join(_ranges(match[2].split()))}\n"
        elif match := _SIZE.fullmatch(line):
            kib = int(match[2]) * 1024
            facts[f"text {_NODES}/node{match[1]}/meminfo"] = f"Node {match[1]} MemTotal: {kib} kB\n"
        elif line.startswith("node distances:"):
            below = True
        elif below and (match := _DISTANCES.fullmatch(line)):
            facts[f"text {_NODES}/node{match[1]}/distance"] = f"{' '.join(match[2].split())}\n"
    return {**facts, f"names {_NODES}": [*nodes]} if nodes else {}


def _ranges(cpus: Sequence[str]) -> list[str]:
    """``0 1 2 8`` as ``0-2``, ``8``."""
    runs: list[list[int]] = []
    for cpu in sorted(set(map(int, cpus))):
        if runs and runs[-1][1] == cpu - 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return [f"{first}-{last}" if last > first else f"{first}" for first, last in runs]
