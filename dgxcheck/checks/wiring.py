"""Which devices of a box sit elsewhere than in its reference machine, by the PCI classes of their pairs alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

from dgxcheck.frozen import Record
from dgxcheck.profiles.model import Wiring
from dgxcheck.topology.model import Device, PciClass, Topology

MOST = 3
"""So many devices in the wrong place can be named; more is another machine."""


class Misplaced(Record):
    """The fewest devices without which all others are where the reference has them."""

    devices: tuple[Device, ...]
    likewise: tuple[Device, ...]
    """Others that could be to blame as well; empty where there is no doubt."""


Due = Callable[[Wiring], Mapping[PciClass, int]]


def misplaced(
    gpus: Sequence[Device], others: Sequence[Device], topology: Topology, wirings: Sequence[Wiring], due: Due
) -> Misplaced | None:
    """The fewest of ``others`` to take away until no GPU has more of a class than its wiring; None beyond ``MOST``.

    Fewer of a class are no sign of a wrong place: a device that is gone leaves such holes. Of equal guesses the one
    that leaves the most pairs in place counts, then the last.
    """
    matrix = topology.matrix()
    slots = [due(wiring) for wiring in wirings for _ in range(wiring.gpus)]
    for number in range(MOST + 1):
        found: list[tuple[int, tuple[Device, ...]]] = []
        for guess in combinations(others, number):
            left = [device for device in others if device not in guess]
            rows = [
                Counter(matrix[gpu.name, device.name].pci for device in left if device.name != gpu.name)
                for gpu in gpus
                if gpu not in guess
            ]
            for row in rows:
                row.pop(None, None)
            if _fits(rows, slots):
                found.append((sum(_kept(row, slots) for row in rows), guess))
        if found:
            best = max(kept for kept, _ in found)
            equal = [guess for kept, guess in found if kept == best]
            doubt = {device.name for guess in equal[:-1] for device in guess if device not in equal[-1]}
            return Misplaced(devices=equal[-1], likewise=tuple(device for device in others if device.name in doubt))
    return None


def _kept(row: Counter[PciClass | None], slots: Sequence[Mapping[PciClass, int]]) -> int:
    return max(sum(min(count, row[pci]) for pci, count in slot.items()) for slot in slots)


def _fits(rows: Sequence[Counter[PciClass | None]], slots: Sequence[Mapping[PciClass, int]]) -> bool:
    """Can each row have a slot of its own that has no fewer of any class? (augmenting paths)"""
    taken: dict[int, int] = {}

    def place(row: int, tried: set[int]) -> bool:
        for slot, due in enumerate(slots):
            if slot in tried or any(count > due.get(pci, 0) for pci, count in rows[row].items() if pci is not None):
                continue
            tried.add(slot)
            if slot not in taken or place(taken[slot], tried):
                taken[slot] = row
                return True
        return False

    return len(rows) <= len(slots) and all(place(row, set()) for row in range(len(rows)))
