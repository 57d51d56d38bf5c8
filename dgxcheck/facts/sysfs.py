"""Folders of sysfs that several layers name, and the kernel's lists of CPUs: ``0-19,40-59``, as runs of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

PCI_DEVICES = "/sys/bus/pci/devices"
PCI_SLOTS = "/sys/bus/pci/slots"
INFINIBAND = "/sys/class/infiniband"
BLOCK = "/sys/class/block"
DMI = "/sys/class/dmi/id"
SMBIOS = "/sys/firmware/dmi/tables/DMI"
NODES = "/sys/devices/system/node"
EDAC = "/sys/devices/system/edac/mc"
MEMORY_PEERS = "/sys/kernel/mm/memory_peers"
SERVICE_GROUPS = ("/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice")
"""Of cgroup v2, and of v1."""


def pci_file(bdf: str | None, name: str) -> str:
    """A file of a PCI function: ``/sys/bus/pci/devices/0000:06:00.0/numa_node``."""
    return f"{PCI_DEVICES}/{bdf}/{name}"


_MOST_DIGITS = 9


def ranges(cpulist: str) -> tuple[range, ...] | None:
    """The runs of CPU numbers in a list, in its order; () for an empty list, None for a text that is no list."""
    runs = []
    for part in cpulist.strip().split(",") if cpulist.strip() else ():
        first, dash, last = part.partition("-")
        if not _is_number(first) or (dash and not _is_number(last)):
            return None
        runs.append(range(int(first), int(last or first) + 1))
    return None if not all(runs) else tuple(runs)


def cpulist(runs: Iterable[range]) -> str:
    """Runs of CPU numbers in the kernel's form."""
    return ",".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def runs_of(numbers: Iterable[int]) -> list[range]:
    """Ascending numbers as runs of those that follow each other."""
    runs: list[range] = []
    for number in numbers:
        if runs and runs[-1].stop == number:
            runs[-1] = range(runs[-1].start, number + 1)
        else:
            runs.append(range(number, number + 1))
    return runs


def difference(runs: Iterable[range], taken: Iterable[range]) -> Iterator[range]:
    """The numbers of the first that are not among the second, as ascending runs."""
    others = iter(sorted(taken, key=lambda run: run.start))
    other = next(others, None)
    for run in sorted(runs, key=lambda run: run.start):
        start = run.start
        while other is not None and other.start < run.stop:
            if other.start > start:
                yield range(start, other.start)
            start = max(start, other.stop)
            if other.stop > run.stop:
                break
            other = next(others, None)
        if start < run.stop:
            yield range(start, run.stop)


def first_shared(runs: Iterable[range], others: Iterable[range]) -> int | None:
    """The lowest number that is in both, without counting through runs that may be long."""
    one, two = (iter(sorted(each, key=lambda run: run.start)) for each in (runs, others))
    a, b = next(one, None), next(two, None)
    while a is not None and b is not None:
        if a.start < b.stop and b.start < a.stop:
            return max(a.start, b.start)
        if a.stop <= b.start:
            a = next(one, None)
        else:
            b = next(two, None)
    return None


def _is_number(text: str) -> bool:
    """ASCII digits alone: ``int()`` takes underscores and the digits of other scripts."""
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
