"""Which devices are placed otherwise than in the reference machine, by the PCI classes of their pairs alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from dgxcheck.facts.record import Record
from dgxcheck.profiles.model import Wiring
from dgxcheck.topology.model import Device, Link, PciClass, Topology

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
    gpus: Sequence[Device],
    others: Sequence[Device],
    topology: Topology,
    wirings: Sequence[Wiring],
    expected: Expected,
    hcas: Sequence[Device] = (),
    *,
    by_tree: bool = False,
) -> Misplaced | None:
    """The fewest of ``others`` to remove until no GPU has more of a class than its wiring; None beyond ``MOST``.

    Fewer of a class are no sign of a wrong place: a missing device leaves such holes. Of several sets the one counts
    that leaves the most in place, the ``hcas`` near the GPUs too; of equal ones the last. ``by_tree``: by the PCI tree
    alone, as if all host bridges were at one NUMA node.
    """
    matrix = topology.matrix()
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
    matrix = topology.matrix()
    rows = [_row(gpu, others, matrix) for gpu in gpus]
    pairs = sum(gpu.name != other.name for gpu in gpus for other in others)
    known = sum(row.total() for row in rows) == pairs
    return known and _fits(rows, [_counts(expected(wiring), False) for wiring in wirings for _ in range(wiring.gpus)])


def _row(gpu: Device, others: Sequence[Device], matrix: Mapping[tuple[str, str], Link]) -> Counter[PciClass]:
    """How often a GPU reaches others at each class, without pairs whose class is not known."""
    links = (matrix[gpu.name, other.name] for other in others if other.name != gpu.name)
    return Counter(link.pci for link in links if link.pci is not None)


def _counts(row: Mapping[PciClass, int], by_tree: bool) -> Counter[PciClass]:
    """With pairs of one NUMA node among those of different ones, where the PCI tree alone counts."""
    counts = Counter(row)
    if by_tree:
        counts["SOC"] += counts.pop("NODE", 0)
    return counts


def numa_explains(
    gpus: Sequence[Device], others: Sequence[Device], topology: Topology, wirings: Sequence[Wiring], expected: Expected
) -> bool:
    """Is every device in its place on the PCI tree, so that only the division into NUMA nodes is another?"""
    by_tree = misplaced(gpus, others, topology, wirings, expected, by_tree=True)
    return by_tree is not None and not by_tree.devices


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
