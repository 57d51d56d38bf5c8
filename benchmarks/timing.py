"""Time commands alternately (A B A B ..), so that changes of the machine's speed affect all: ratios, with noise."""

from __future__ import annotations

import os
import statistics
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
    print(f"{'command':48}{'wall ms':>9}{'ratio':>7}{'cpu ms':>9}{'ratio':>7}{'MiB':>7}{'ratio':>7}   {rounds} rounds")
    first = [statistics.median(values) for values in zip(*runs[0], strict=True)]
    for place, name in enumerate(order):
        wall, cpu, rss = (statistics.median(values) for values in zip(*runs[place], strict=True))
        label = f"{name} (again: A/A)" if place == 1 else name
        print(
            f"{label:48}{wall * 1e3:9.1f}{wall / first[0]:7.2f}{cpu * 1e3:9.1f}{cpu / first[1]:7.2f}"
            f"{rss / 1024:7.1f}{rss / first[2]:7.2f}"
        )
