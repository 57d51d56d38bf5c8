"""Time commands in turn (A B A B ..), so that a machine that changes speed slows both: ratios of medians, with noise.

    python benchmarks/interleaved.py [--rounds N]                 replay: topo -m on a recording, piped
    python benchmarks/interleaved.py --live TREE [--rounds N]     live: topo and record over a tree, beside lspci

Run it with the interpreter of an environment that holds an installed wheel. The A/A row times the first command
against itself: ratios nearer to 1 than that are noise.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from typing import NamedTuple


class Run(NamedTuple):
    """One process: wall and CPU seconds, peak memory in KiB."""

    wall: float
    cpu: float
    rss: int


def once(argv: list[str]) -> Run:
    """Run a command with its output in a pipe that is read to the end."""
    read, write = os.pipe()
    actions = [(os.POSIX_SPAWN_DUP2, write, 1), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
    start = time.perf_counter()
    pid = os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions)
    os.close(write)
    while os.read(read, 1 << 16):
        pass
    _, _, usage = os.wait4(pid, 0)
    os.close(read)
    return Run(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)


def compare(commands: dict[str, list[str]], rounds: int) -> None:
    """Print the median of each figure per command, and its ratio to the first command's."""
    names = list(commands)
    base = names[0]
    order = [base, *names]  # the first one twice: A/A
    for name in names:
        once(commands[name])
    runs: list[list[Run]] = [[] for _ in order]
    for turn in range(rounds):
        for place in range(len(order)) if turn % 2 == 0 else reversed(range(len(order))):
            runs[place].append(once(commands[order[place]]))
    print(f"{'command':34}{'wall ms':>9}{'ratio':>7}{'cpu ms':>9}{'ratio':>7}{'MiB':>7}{'ratio':>7}   {rounds} rounds")
    first = [statistics.median(values) for values in zip(*runs[0], strict=True)]
    for place, name in enumerate(order):
        wall, cpu, rss = (statistics.median(values) for values in zip(*runs[place], strict=True))
        label = f"{name} (again: A/A)" if place == 1 else name
        print(
            f"{label:34}{wall * 1e3:9.1f}{wall / first[0]:7.2f}{cpu * 1e3:9.1f}{cpu / first[1]:7.2f}"
            f"{rss / 1024:7.1f}{rss / first[2]:7.2f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--live", metavar="TREE", help="a sysfs tree; LD_LIBRARY_PATH may hold a stand-in libnvidia-ml")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    python = sys.executable
    command = os.path.join(os.path.dirname(python), "dgxcheck")
    if options.live is None:
        commands = {
            "python -c 'import click, json'": [python, "-c", "import click, json"],
            "python -c pass": [python, "-c", "pass"],
            "topo -m --from dgx-1-v100": [command, "topo", "-m", "--from", "dgx-1-v100"],
            "topo -m --from dgx-a100": [command, "topo", "-m", "--from", "dgx-a100"],
        }
    else:
        live = f"import sys; from dgxcheck.__main__ import run; sys.argv[0] = 'dgxcheck'; run(root={options.live!r})"
        commands = {
            "lspci -tv": ["lspci", "-tv", "-O", f"sysfs.path={options.live}/sys/bus/pci"],
            "topo": [python, "-c", live, "topo"],
            "record": [python, "-c", live, "record", "/dev/null"],
        }
    compare(commands, options.rounds)


if __name__ == "__main__":
    main()
