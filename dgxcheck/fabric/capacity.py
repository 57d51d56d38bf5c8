"""What a fabric carries: leaf by leaf, and between its halves."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.fabric.judge import Judged
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered

CODED = 64 / 66
"""What the white papers of DGX-1 take of 100 Gbit/s, for 6,012 GB/s of 124 systems."""


class Leaf(Record):
    """One switch with adapters."""

    guid: str
    name: str
    systems: tuple[str, ...]
    adapters: int
    uplinks: int
    down_gbit: float
    """To the adapters; 0 where rates are not told."""
    up_gbit: float

    @property
    def ratio(self) -> float | None:
        """How many times more the adapters can send than the uplinks carry."""
        return self.down_gbit / self.up_gbit if self.up_gbit else None


def leaves_of(judged: Judged) -> tuple[Leaf, ...]:
    """By name."""
    fabric, tiers = judged.fabric, judged.tiers
    below = gathered((port[0], cable) for port, cable in fabric.at.items()
                     if (far := fabric.far(port)) is not None and far[0] in fabric.adapters)  # fmt: skip
    systems = gathered((switch, host) for host, own in judged.places.items() for switch, _ in own.values())
    found = []
    for guid in tiers.leaves():
        cables, above = below.get(guid, []), [fabric.at[guid, port] for port in tiers.uplinks[guid]]
        found.append(Leaf(
            guid=guid, name=fabric.switch(guid), systems=tuple(sorted({*systems.get(guid, ())})), adapters=len(cables),
            uplinks=len(above), down_gbit=sum(cable.gbit for cable in cables),
            up_gbit=sum(cable.gbit for cable in above),
        ))  # fmt: skip
    return tuple(sorted(found, key=lambda leaf: leaf.name))


def bisection_gbs(leaves: Sequence[Leaf]) -> float:
    """Between two halves of the systems, both directions: what the adapters send and the uplinks let through."""
    several = len(leaves) > 1
    return sum(min(leaf.down_gbit, leaf.up_gbit) if several else leaf.down_gbit for leaf in leaves) / 8
