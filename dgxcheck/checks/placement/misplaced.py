"""Which devices of a box sit elsewhere than in its reference machine, by the PCI classes of their pairs alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from dgxcheck.facts.record import Record
from dgxcheck.profiles.model import Wiring
from dgxcheck.topology.model import Device, Link, PciClass, Topology

MOST = 3
"""So many devices in the wrong place can be named; more is another machine."""


class Misplaced(Record):
    """The fewest devices without which all others are where the reference has them."""

    devices: tuple[Device, ...]
    likewise: tuple[Device, ...]
    """Others that could be to blame as well; empty where there is no doubt."""


Due = Callable[[Wiring], Mapping[PciClass, int]]
NEARNESS: Mapping[PciClass, int] = {"PIX": 5, "PXB": 4, "PHB": 3, "NODE": 2, "SOC": 1}
"""What a pair in its place is worth: a near one says more."""


def misplaced(
    gpus: Sequence[Device],
    others: Sequence[Device],
    topology: Topology,
    wirings: Sequence[Wiring],
    due: Due,
    beside: Sequence[Device] = (),
) -> Misplaced | None:
    """The fewest of ``others`` to take away until no GPU has more of a class than its wiring; None beyond ``MOST``.

    Fewer of a class are no sign of a wrong place: a device that is gone leaves such holes. Of several guesses the one
    counts that leaves the most in place, HCAs ``beside`` the GPUs too; of equal ones the last.
    """
    matrix = topology.matrix()
    slots = [due(wiring) for wiring in wirings for _ in range(wiring.gpus)]
    near = [wiring.to_hcas for wiring in wirings]
    for number in range(MOST + 1):
        found: list[tuple[int, tuple[Device, ...]]] = []
        for guess in combinations(others, number):
            kept = [gpu for gpu in gpus if gpu not in guess]
            rows = [_row(gpu, [each for each in others if each not in guess], matrix) for gpu in kept]
            if _fits(rows, slots):
                hcas = sum(_worth(_row(gpu, beside, matrix), near) for gpu in kept)
                found.append((sum(_worth(row, slots) for row in rows) + hcas, guess))
        if found:
            best = max(worth for worth, _ in found)
            equal = [guess for worth, guess in found if worth == best]
            doubt = {device.name for guess in equal[:-1] for device in guess if device not in equal[-1]}
            return Misplaced(devices=equal[-1], likewise=tuple(each for each in others if each.name in doubt))
    return None


def _row(gpu: Device, others: Sequence[Device], matrix: Mapping[tuple[str, str], Link]) -> Counter[PciClass]:
    """How often a GPU reaches others at each class, without pairs whose class is not known."""
    links = (matrix[gpu.name, each.name] for each in others if each.name != gpu.name)
    return Counter(link.pci for link in links if link.pci is not None)


def _worth(row: Counter[PciClass], slots: Sequence[Mapping[PciClass, int]]) -> int:
    return max(sum(min(row[pci], count) * NEARNESS[pci] for pci, count in slot.items()) for slot in slots)


def _fits(rows: Sequence[Counter[PciClass]], slots: Sequence[Mapping[PciClass, int]]) -> bool:
    """Can each row have a slot of its own that has no fewer of any class? (augmenting paths)"""
    taken: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for slot, due in enumerate(slots):
            if slot in tried or any(count > due.get(pci, 0) for pci, count in rows[row].items()):
                continue
            tried.add(slot)
            if slot not in taken or place(taken[slot], tried):
                taken[slot] = row
                return True
        return False

    return len(rows) <= len(slots) and all(place(row, set()) for row in range(len(rows)))
