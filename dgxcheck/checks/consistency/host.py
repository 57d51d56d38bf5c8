"""Totals and tables of the host against each other, and states of ports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import combinations

from dgxcheck.checks.consistency.contradiction import Contradiction
from dgxcheck.checks.engine import visibility
from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.finding import Evidence
from dgxcheck.checks.engine.host_limits import MEMORY_PARAMETERS, command_line
from dgxcheck.checks.engine.wording import first_of
from dgxcheck.facts.cpulist import first_shared, ranges
from dgxcheck.facts.host import Host, MemoryController
from dgxcheck.facts.infiniband import LANE_GBIT, IbPort, IbRate, PhysState, PortState
from dgxcheck.facts.missing import Json, Missing, rows
from dgxcheck.facts.sysfs import NODES

_KB_IN_MB = 1024
_FEWEST = 2
"""Devices at a place; of fewer none is odd."""


def memory(box: Box) -> Iterator[Contradiction]:
    """The kernel's memory against the sum of the DIMMs; a hypervisor or container shows a share of it, and a kernel
    parameter can limit it."""
    host, controllers = box.snapshot.host, box.snapshot.edac
    if not isinstance(host, Host) or isinstance(host.memory_kb, Missing) or isinstance(controllers, Missing):
        return
    sizes = [row.size_mb for row in controllers]
    known = [size for size in sizes if not isinstance(size, Missing)]
    if not known or len(known) < len(sizes) or guest(box) is not None or visibility.in_container(box):
        return
    if any(name in MEMORY_PARAMETERS for name, _ in command_line(box)):
        return
    kernel, dimms = host.memory_kb // _KB_IN_MB, sum(known)
    lowest = dimms * (1 - box.settings.limit("consistency.memory") / 100)
    if not lowest <= kernel <= dimms:
        evidence = (Evidence("/proc/meminfo", f"MemTotal: {host.memory_kb} kB"), *map(_size, controllers))
        yield Contradiction(f"the kernel has {kernel} MiB of memory, the DIMMs have {dimms} MiB", evidence)


def _size(row: MemoryController) -> Evidence:
    size = row.size_mb
    return Evidence(f"/sys/devices/system/edac/mc/{row.name}/size_mb", None if isinstance(size, Missing) else size)


def nodes(box: Box) -> Iterator[Contradiction]:
    """A CPU that two NUMA nodes claim; a device whose own CPUs are not those of its node."""
    listed = rows(box.snapshot.numa)
    lists = {row.node: row.cpulist for row in listed if isinstance(row.cpulist, str)}
    members = {node: ranges(text) or () for node, text in lists.items()}
    for a, b in combinations(sorted(members), 2):
        if (shared := first_shared(members[a], members[b])) is not None:
            evidence = tuple(Evidence(f"{NODES}/node{node}/cpulist", lists[node]) for node in (a, b))
            yield Contradiction(f"CPU {shared} is in NUMA nodes {a} and {b}", evidence)
    for device in box.topology.devices:
        function = device.function
        if function is None or not isinstance(function.local_cpulist, str) or not isinstance(function.numa_node, int):
            continue
        own, node = ranges(function.local_cpulist) or (), function.numa_node
        if own and members.get(node) and first_shared(own, members[node]) is None:
            path = f"/sys/bus/pci/devices/{device.bdf}"
            read: dict[str, Json] = {"numa_node": node, "local_cpulist": function.local_cpulist}
            evidence = tuple(Evidence(f"{path}/{name}", value) for name, value in read.items())
            yield Contradiction(f"{device.name} is at NUMA node {node} and not at its CPUs", evidence)


def places(box: Box) -> Iterator[Contradiction]:
    """NUMA nodes of the functions below one root bus, and CPUs of those at one node: one that differs from most. A node
    of -1 says nothing."""
    functions = [each for each in box.topology.functions.values() if isinstance(each.path, tuple)]
    placed = [each for each in functions if isinstance(each.numa_node, int) and each.numa_node >= 0]
    by_root = _grouped((each.path[0], each.bdf, each.numa_node) for each in placed if isinstance(each.path, tuple))
    by_node = _grouped((f"NUMA node {each.numa_node}", each.bdf, each.local_cpulist) for each in placed)
    for groups, name in ((by_root, "numa_node"), (by_node, "local_cpulist")):
        for place, values in groups.items():
            usual, count = Counter(values.values()).most_common(1)[0]
            odd = {bdf: value for bdf, value in values.items() if value != usual}
            if odd and count > max(len(odd), _FEWEST):
                evidence = tuple(Evidence(f"/sys/bus/pci/devices/{bdf}/{name}", value) for bdf, value in odd.items())
                text = f"{name} of {first_of([*odd])} is {next(iter(odd.values()))}, {usual} of the others at {place}"
                yield Contradiction(text, evidence)


def _grouped(each: Iterable[tuple[str, str, int | str | Missing]]) -> dict[str, dict[str, int | str]]:
    """Values by place, then by device, without gaps."""
    found: dict[str, dict[str, int | str]] = {}
    for place, bdf, value in each:
        if not isinstance(value, Missing):
            found.setdefault(place, {})[bdf] = value
    return found


def ports(box: Box) -> Iterator[Contradiction]:
    """A port that is active on a link that is not up, or at a rate that its lanes do not have."""
    devices = rows(box.snapshot.ib_ports)
    for device in devices:
        for port in rows(device.ports):
            if port.state is PortState.ACTIVE and isinstance(port.phys_state, PhysState) and not _up(port):
                path = f"/sys/class/infiniband/{port.device}/ports/{port.port}"
                states = {"state": int(port.state), "phys_state": int(port.phys_state)}
                evidence = tuple(Evidence(f"{path}/{name}", state) for name, state in states.items())
                text = f"{port.device}/{port.port} is active and its link is {port.phys_state.name.lower()}"
                yield Contradiction(text, evidence)
            lane = LANE_GBIT.get(port.rate.speed) if isinstance(port.rate, IbRate) else None
            if lane is not None and isinstance(port.rate, IbRate) and port.rate.gbit_per_s != port.rate.lanes * lane:
                rate = f"{port.rate.gbit_per_s:g} Gb/sec ({port.rate.lanes}X {port.rate.speed})"
                evidence = (Evidence(f"/sys/class/infiniband/{port.device}/ports/{port.port}/rate", rate),)
                yield Contradiction(f"{port.device}/{port.port} has a rate that its lanes have not: {rate}", evidence)


def _up(port: IbPort) -> bool:
    return port.phys_state is PhysState.LINK_UP
