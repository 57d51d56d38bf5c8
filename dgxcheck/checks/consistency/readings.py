"""Can the readings of a GPU, and those of the host, be true together?

Tools that report one value a device show each of them as it is; which of two that exclude each other is wrong nobody
knows, so that nothing that depends on them is judged: unknown. Identities that disagree are a warning about what was
swapped, cloned or flashed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations

from dgxcheck.checks.consistency import bounds, contradiction
from dgxcheck.checks.consistency.contradiction import NOTHING_TO_COMPARE, Contradiction, ReadingRule, judged
from dgxcheck.checks.engine import host_limits
from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.check import Check, part, per_host, per_listed_gpu
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, first_of, skip
from dgxcheck.checks.engine.host_limits import MEMORY_PARAMETERS, NUMA_SETTING, command_line
from dgxcheck.components.component import Component, host_part
from dgxcheck.components.device_facts import facts_of
from dgxcheck.facts.infiniband import LANE_GBIT, IbRate, PhysState, PortState
from dgxcheck.facts.missing import Json, Missing, rows
from dgxcheck.facts.record import replace
from dgxcheck.facts.sysfs import EDAC, NODES, first_shared, ranges
from dgxcheck.facts.tool_outputs import MATRIX
from dgxcheck.facts.typical import gathered, unlike_most
from dgxcheck.topology.model import PCI_CLASSES, Device

_KB_IN_MB = 1024
_FEWEST = 2
"""Devices at a place; of fewer none is odd."""
_MOST_NAMES = 64
_CLASSES: tuple[str, ...] = PCI_CLASSES
_OF_ONE_NODE = PCI_CLASSES.index("NODE")


def memory(box: Box) -> Iterator[Contradiction]:
    """The kernel's memory against the sum of the DIMMs; a hypervisor or container shows a share of it, and a kernel
    parameter can limit it."""
    memory_kb, controllers = box.snapshot.known_host.memory_kb, box.snapshot.edac
    if isinstance(memory_kb, Missing) or isinstance(controllers, Missing):
        return
    sizes = [(row.name, row.size_mb) for row in controllers if not isinstance(row.size_mb, Missing)]
    if len(sizes) < max(1, len(controllers)) or guest(box) is not None or host_limits.in_container(box):
        return
    if any(name in MEMORY_PARAMETERS for name, _ in command_line(box)):
        return
    kernel, dimms = memory_kb // _KB_IN_MB, sum(size for _, size in sizes)
    lowest = dimms * (1 - box.settings.limit("consistency.memory") / 100)
    if not lowest <= kernel <= dimms:
        own = (Evidence(f"{EDAC}/{name}/size_mb", size) for name, size in sizes)
        evidence = (Evidence("/proc/meminfo", f"MemTotal: {memory_kb} kB"), *own)
        yield Contradiction(f"the kernel has {kernel} MiB of memory, the DIMMs have {dimms} MiB", evidence)


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
    functions = [function for function in box.topology.functions.values() if isinstance(function.path, tuple)]
    placed = [function for function in functions if isinstance(function.numa_node, int) and function.numa_node >= 0]
    by_root = _grouped((rows(each.path)[0], each.bdf, each.numa_node) for each in placed)
    by_node = _grouped((f"NUMA node {function.numa_node}", function.bdf, function.local_cpulist) for function in placed)
    for groups, name in ((by_root, "numa_node"), (by_node, "local_cpulist")):
        for place, values in groups.items():
            usual, odd = unlike_most(values)
            if odd and len(values) - len(odd) > max(len(odd), _FEWEST):
                evidence = tuple(Evidence(f"/sys/bus/pci/devices/{bdf}/{name}", value) for bdf, value in odd.items())
                own, most = (str(value) or "empty" for value in (next(iter(odd.values())), usual))
                text = f"{name} of {first_of([*odd])} is {own}, {most} of the others at {place}"
                yield Contradiction(text, evidence)


def cells(box: Box) -> Iterator[Contradiction]:
    """Cells of an imported nvidia-smi topo: a pair that differs from its mirror; three pairs of three devices of which
    one is farther than both others, which no PCI tree has; devices of one NUMA node with different CPUs or nodes."""
    stated = box.snapshot.stated
    if isinstance(stated, Missing) or len(stated.names) > _MOST_NAMES:
        return
    ranks: dict[frozenset[str], int] = {}
    for labels in (stated.pci_labels, stated.labels):
        for (a, b), label in labels.items():
            mirror = labels.get((b, a), label)
            if label == mirror and label in _CLASSES:
                ranks[frozenset((a, b))] = _CLASSES.index(label)
            elif isinstance(label, str) and isinstance(mirror, str) and label != mirror and a < b:
                text = f"{a}-{b} is {label} one way and {mirror} the other"
                yield Contradiction(text, (Evidence(MATRIX, [label, mirror]),))
    trios = [[*map(frozenset, combinations(names, 2))] for names in combinations(stated.names, 3)]
    if odd := [trio for trio in trios if _is_odd(trio, ranks)]:
        often = Counter(pair for trio in odd for pair in trio)
        worst = max(odd, key=lambda trio: max(often[pair] for pair in trio))
        pairs = sorted(worst, key=lambda pair: -often[pair])
        shown = [f"{'-'.join(sorted(pair))} {_CLASSES[ranks[pair]]}" for pair in pairs]
        yield Contradiction(f"no PCI tree has the paths {', '.join(shown)}", (Evidence(MATRIX, [*shown]),))
    for title, column in (("CPU affinity", stated.cpu_affinity), ("NUMA affinity", stated.numa_affinity)):
        yield from _apart(title, {name: text for name, text in column.items() if text != "N/A"}, ranks)


def _apart(title: str, column: Mapping[str, str], ranks: Mapping[frozenset[str], int]) -> Iterator[Contradiction]:
    """Pairs of one node by their path and not by this column; a NIC is where most GPUs near it are. The other way round
    is no contradiction: guests have several root buses at one node."""
    near = gathered((name, column[gpu]) for pair, rank in ranks.items() if rank <= _OF_ONE_NODE
                    for name, gpu in permutations(pair) if gpu in column and name not in column)  # fmt: skip
    at = {**column, **{name: Counter(values).most_common(1)[0][0] for name, values in near.items()}}
    for (a, b), rank in ((sorted(pair), rank) for pair, rank in ranks.items()):
        if rank <= _OF_ONE_NODE and at.get(a) != at.get(b) and a in at and b in at:
            given = ", ".join(f"{title} of {name} {column[name]}" for name in (a, b) if name in column)
            text = f"{a}-{b} is {_CLASSES[rank]}, and {given}"
            yield Contradiction(text, (Evidence(MATRIX, [_CLASSES[rank], given]),))


def _is_odd(trio: Sequence[frozenset[str]], ranks: Mapping[frozenset[str], int]) -> bool:
    near, middle, far = sorted(ranks.get(pair, -1) for pair in trio)
    return near >= 0 and far > middle


def _grouped(each: Iterable[tuple[str, str, int | str | Missing]]) -> dict[str, dict[str, int | str]]:
    """Values by place, then by device, without gaps."""
    found: dict[str, dict[str, int | str]] = {}
    for place, bdf, value in each:
        if not isinstance(value, Missing):
            found.setdefault(place, {})[bdf] = value
    return found


def ports(box: Box) -> Iterator[Contradiction]:
    """A port that is active on a link that is not up, or at a rate that its lanes do not have."""
    for device in rows(box.snapshot.ib_ports):
        for port in rows(device.ports):
            phys, rate = port.phys_state, port.rate
            if port.state is PortState.ACTIVE and isinstance(phys, PhysState) and phys is not PhysState.LINK_UP:
                path = f"/sys/class/infiniband/{port.device}/ports/{port.port}"
                states = {"state": int(port.state), "phys_state": int(phys)}
                evidence = tuple(Evidence(f"{path}/{name}", state) for name, state in states.items())
                text = f"{port.device}/{port.port} is active and its link is {phys.name.lower()}"
                yield Contradiction(text, evidence)
            lane = LANE_GBIT.get(rate.speed) if isinstance(rate, IbRate) else None
            if isinstance(rate, IbRate) and lane is not None and rate.gbit_per_s != rate.lanes * lane:
                words = f"{rate.gbit_per_s:g} Gb/sec ({rate.lanes}X {rate.speed})"
                evidence = (Evidence(f"/sys/class/infiniband/{port.device}/ports/{port.port}/rate", words),)
                yield Contradiction(f"{port.device}/{port.port} has a rate that its lanes have not: {words}", evidence)


READINGS: tuple[ReadingRule, ...] = (
    bounds.never_above, bounds.told_twice, bounds.ranges, bounds.parts, bounds.spare_rows, contradiction.at_load,
    contradiction.fallen,
)  # fmt: skip
IDENTITIES: tuple[ReadingRule, ...] = (
    contradiction.pci_ids, contradiction.model, contradiction.names, contradiction.far_ends,
)  # fmt: skip
OF_THE_HOST = (memory, nodes, ports, cells)
_PRINT_AGAIN = f"print {MATRIX} again and judge its whole output"


def _of_gpu(
    box: Box, gpu: Device, rules: tuple[ReadingRule, ...], is_compared: Callable[[Box, Device], bool], status: Status
) -> Judgement:
    """``is_compared``: have the rules anything to compare?"""
    facts = facts_of(box.snapshot, gpu.bdf or "")
    found = {each.text: each for rule in rules for each in rule(box, gpu, facts)}
    compared = found or is_compared(box, gpu)
    return judged([*found.values()], status) if compared else NOTHING_TO_COMPARE


def _host(box: Box) -> Judgement:
    """Unknown if the kernel's memory differs from the sum of the DIMMs by more than {consistency.memory}, if a CPU is
    in two NUMA nodes, a device not at the CPUs of its node, or a port active on a link that is not up or with a rate
    that is not that of its lanes; or if cells of an imported nvidia-smi topo exclude each other.

    Source: /proc/meminfo, /sys/devices/system/edac, /sys/devices/system/node, /sys/class/infiniband; nvidia-smi topo
    """
    found: list[Contradiction] = [each for rule in OF_THE_HOST for each in rule(box)]
    nothing = not isinstance(box.snapshot.numa, tuple) and not isinstance(box.snapshot.edac, tuple)
    if nothing and not found:
        return skip("not-recorded", "neither NUMA nodes nor memory controllers were read")
    printed = found and all(evidence.where == MATRIX for each in found for evidence in each.evidence)
    return replace(judged(found), remedy=_PRINT_AGAIN) if printed else judged(found)


def _places(box: Box) -> Judgement:
    """Warns if a PCI function is at another NUMA node than most functions below its root bus, or at other CPUs than
    most of its node. A node of -1 says nothing.

    Source: numa_node and local_cpulist of /sys/bus/pci/devices; Linux gives each root bus the node of its bridge
    """
    placed = any(isinstance(function.numa_node, int) for function in box.topology.functions.values())
    return judged([*places(box)], Status.WARN) if placed else NOTHING_TO_COMPARE


def _blame_host(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The NUMA setting of the firmware, where CPUs and NUMA nodes exclude each other; else the host."""
    of_numa = any(evidence.where.endswith(("numa_node", "cpulist")) for evidence in judgement.evidence)
    yield host_part(NUMA_SETTING) if of_numa else host_part("")


def _readings(box: Box, gpu: Device) -> Judgement:
    """Unknown if readings of a GPU cannot be true together: more than the whole or the highest (PCIe link, memory,
    BAR1, clocks, power limits, errors by location), values that no GPU has (0 °C, 0 W, more than 100 %), a PCIe link
    that is another for NVML than for sysfs, full utilisation with an idle performance state, clock or power, retired
    pages or remapped rows that become fewer.

    Source: dgxcheck/checks/consistency; the functions' documentation in nvml-api
    """
    return _of_gpu(box, gpu, READINGS, bounds.is_compared, Status.UNKNOWN)


def _identity(box: Box, gpu: Device) -> Judgement:
    """Warns if NVML, the PCI bus, the name, the VBIOS version and the compute capability of a GPU are not those of one
    model, or if NVML names it otherwise than most others with the same PCI ids.

    Source: boards.toml; https://developer.nvidia.com/cuda-gpus
    """
    return _of_gpu(box, gpu, IDENTITIES, contradiction.is_compared, Status.WARN)


CHECKS = (
    Check("consistency.readings", per_listed_gpu(_readings)),
    Check("consistency.identity", per_listed_gpu(_identity), part("versions and settings")),
    Check("consistency.place", per_host(_places), _blame_host),
    Check("consistency.host", per_host(_host), _blame_host),
)  # fmt: skip
