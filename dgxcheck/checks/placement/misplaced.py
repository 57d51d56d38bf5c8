"""Which devices are placed otherwise than in the reference machine, by the PCI classes of their pairs alone; without a
reference, whether the sockets have equally many PCIe switches above GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, per_host, ruled
from dgxcheck.checks.engine.expected import model_of
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, counted, skip
from dgxcheck.checks.engine.host_limits import gpus_hidden, minors_gone
from dgxcheck.components.component import Component
from dgxcheck.components.locate import fallen
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.host import Cpu
from dgxcheck.facts.missing import Gap, Missing, need, or_gap, rows, text_of
from dgxcheck.facts.record import Record
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.profiles.model import Wiring
from dgxcheck.topology.model import Device, Links, PciClass, Topology

MOST = 3
"""At most so many misplaced devices are named; more of them make another machine."""


class Misplaced(Record):
    """The fewest devices without which all others are placed as in the reference machine."""

    devices: tuple[Device, ...]
    likewise: tuple[Device, ...]
    """Other devices that explain it equally well; empty if there is no doubt."""


Expected = Callable[[Wiring], Mapping[PciClass, int]]
NEARNESS: Mapping[PciClass, int] = {"PIX": 5, "PXB": 4, "PHB": 3, "NODE": 2, "SOC": 1}
"""How much a pair at its place counts: the nearer, the more."""


def misplaced(
    gpus: Sequence[Device], others: Sequence[Device], topology: Topology, wirings: Sequence[Wiring], expected: Expected,
    hcas: Sequence[Device] = (), *, by_tree: bool = False,
) -> Misplaced | None:  # fmt: skip
    """The fewest of ``others`` to remove until no GPU has more of a class than its wiring; None beyond ``MOST``.

    Fewer of a class are no sign of a wrong place: a missing device leaves such holes. Of several sets the one counts
    that leaves the most in place, the ``hcas`` near the GPUs too; of equal ones the last. ``by_tree``: by the PCI tree
    alone, as if all host bridges were at one NUMA node.
    """
    matrix = topology.links
    slots = [_counts(expected(wiring), by_tree) for wiring in wirings for _ in range(wiring.gpus)]
    hca_slots = [_counts(wiring.to_hcas, by_tree) for wiring in wirings]
    for number in range(MOST + 1):
        candidates: list[tuple[int, tuple[Device, ...]]] = []
        for removed in combinations(others, number):
            remaining = [gpu for gpu in gpus if gpu not in removed]
            left = [other for other in others if other not in removed]
            rows = [_counts(_row(gpu, left, matrix), by_tree) for gpu in remaining]
            if _fits(rows, slots):
                in_place = sum(_in_place(row, slots) for row in rows)
                near = [_counts(_row(gpu, hcas, matrix), by_tree) for gpu in remaining]
                in_place += sum(_in_place(row, hca_slots) for row in near)
                candidates.append((in_place, removed))
        if candidates:
            best = max(in_place for in_place, _ in candidates)
            equal = [removed for in_place, removed in candidates if in_place == best]
            doubt = {device.name for removed in equal[:-1] for device in removed if device not in equal[-1]}
            return Misplaced(devices=equal[-1], likewise=tuple(other for other in others if other.name in doubt))
    return None


def all_in_place(
    gpus: Sequence[Device], others: Sequence[Device], topology: Topology, wirings: Sequence[Wiring], expected: Expected
) -> bool:
    """Is the class of every pair known, and none too many? With as many devices as expected the wiring is the same."""
    matrix = topology.links
    rows = [_row(gpu, others, matrix) for gpu in gpus]
    pairs = sum(gpu.name != other.name for gpu in gpus for other in others)
    known = sum(row.total() for row in rows) == pairs
    return known and _fits(rows, [_counts(expected(wiring), False) for wiring in wirings for _ in range(wiring.gpus)])


def _row(gpu: Device, others: Sequence[Device], matrix: Links) -> Counter[PciClass]:
    """How often a GPU reaches others at each class, without pairs whose class is not known."""
    links = (matrix[gpu.name, other.name] for other in others if other.name != gpu.name)
    return Counter(link.pci for link in links if link.pci is not None)


def _counts(row: Mapping[PciClass, int], by_tree: bool) -> Counter[PciClass]:
    """With pairs of one NUMA node among those of different ones, where the PCI tree alone counts."""
    counts = Counter(row)
    if by_tree:
        counts["SOC"] += counts.pop("NODE", 0)
    return counts


def _in_place(row: Counter[PciClass], slots: Sequence[Mapping[PciClass, int]]) -> int:
    return max(sum(min(row[pci], count) * NEARNESS[pci] for pci, count in slot.items()) for slot in slots)


def _fits(rows: Sequence[Counter[PciClass]], slots: Sequence[Mapping[PciClass, int]]) -> bool:
    """Can each row have a slot of its own that has no fewer of any class? (augmenting paths)"""
    taken: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for slot, counts in enumerate(slots):
            if slot in tried or any(count > counts.get(pci, 0) for pci, count in rows[row].items()):
                continue
            tried.add(slot)
            if slot not in taken or place(taken[slot], tried):
                taken[slot] = row
                return True
        return False

    return len(rows) <= len(slots) and all(place(row, set()) for row in range(len(rows)))


_TWO = 2
"""Sockets whose halves of the tree are compared."""


def _switches(box: Box) -> Judgement:
    """Warns if one of two sockets has fewer PCIe switches above GPUs than the other, where all these switches are of
    one model with equally many GPUs. Switches on the boards of GPUs are not counted. With a reference machine, or
    where minor numbers of GPUs are left, gpu.count reports it, kernel.off-bus where a GPU fell off the bus.

    Source: the PCI tree, whose halves are alike on servers with GPUs below both sockets
    """
    if why := gpus_hidden(box):
        return skip("not-visible", why)
    judgement = ruled(_halves, box)
    counted_by = "gpu.count" if box.number("gpu.count") is not None or minors_gone(box) else ""
    seen_by = counted_by or ("kernel.off-bus" if fallen(box).keys() - box.topology.functions.keys() else "")
    if judgement.status is Status.WARN and seen_by:
        words = f"the sockets' halves of the PCI tree are not alike: see {seen_by}"
        return skip("dependency-failed", words, *judgement.evidence)
    return judgement


def _halves(box: Box) -> Judgement:
    by_socket = need(_by_socket(box))
    below = {switch: gpus for switches in by_socket.values() for switch, gpus in switches.items()}
    alike = len({len(gpus) for gpus in below.values()}) == 1 and len({model_of(box, switch) for switch in below}) == 1
    numbers = {socket: len(switches) for socket, switches in by_socket.items()}
    if len(numbers) != _TWO or not alike:
        return skip("no-reference", "no two sockets with equal PCIe switches above GPUs")
    words = ", ".join(f"{counted(number, 'PCIe switch', 'PCIe switches')} below socket {socket}"
                      for socket, number in sorted(numbers.items()))  # fmt: skip
    least, most = min(numbers.values()), max(numbers.values())
    evidence = tuple(Evidence(f"{PCI_DEVICES}/{switch}", list(gpus)) for switch, gpus in below.items())
    if least == most:
        return Judgement(Status.PASS, words, least, most, "switches", evidence)
    each = counted(len(next(iter(below.values()))), "GPU")
    message = f"{least} of {most} found, {most} PCIe switches below the other socket, each above {each}"
    return Judgement(Status.WARN, message, least, most, "switches", evidence, fault=Fault.SWITCH_MISSING)


def _by_socket(box: Box) -> Mapping[int, Mapping[str, Sequence[str]]] | Missing:
    """Per socket the nearest switch above its GPUs, with their names; a gap where the tree does not tell."""
    per_socket, boards = need(nodes_per_socket(box)), _sharing_a_board(box)
    found: dict[int, dict[str, list[str]]] = {}
    for gpu in box.topology.gpus:
        path, node = rows(gpu.path), gpu.numa_node
        switch = path[-3] if len(path) > 4 else None  # root bus, root port, upstream port, downstream port, GPU
        if switch is None or not isinstance(node, int) or gpu.bdf in boards:
            return Missing(Gap.ABSENT, f"{PCI_DEVICES}/{gpu.bdf}", "no switch of the machine above it, or no NUMA node")
        found.setdefault(node // per_socket, {}).setdefault(switch, []).append(gpu.name)
    return found


@or_gap
def nodes_per_socket(box: Box) -> int:
    """Firmware numbers the nodes of a socket one after another (NPS, SNC)."""
    cpu, nodes = need(box.snapshot.host).cpu, need(box.snapshot.numa)
    sockets = cpu.sockets if isinstance(cpu, Cpu) and isinstance(cpu.sockets, int) else 0
    with_cpus = sum(isinstance(node.cpulist, str) and node.cpulist != "" for node in nodes)
    return max(1, with_cpus // sockets) if sockets and with_cpus % sockets == 0 else 1


def _sharing_a_board(box: Box) -> frozenset[str]:
    """GPUs with one serial number behind one switch: a card with two brings its own, and a slot may be empty."""
    above = {gpu.bdf: rows(gpu.path)[-3:-2] for gpu in box.topology.gpus}
    boards = {row.bdf: (row.serial, above.get(row.bdf)) for row in box.snapshot.listed_gpus if text_of(row.serial)}
    times = Counter(boards.values())
    return frozenset(bdf for bdf, place in boards.items() if times[place] > 1)


def _blames(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    by_socket = need(_by_socket(box))
    socket = min(by_socket, key=lambda each: len(by_socket[each]))
    near = next(iter(by_socket[socket].values()))
    root = next(rows(gpu.path)[0] for gpu in box.topology.gpus if gpu.name in near)
    yield Component(kind="slot", name=f"below socket {socket}", bdf=root, part="missing PCIe switch")


CHECKS = (Check("pcie.switches", per_host(_switches), _blames),)
