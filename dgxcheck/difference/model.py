"""A difference between two looks at a machine, and what is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Device, Topology

Kind = Literal["worse", "neutral", "better"]
Area = Literal["hardware", "link", "nvlink", "network", "memory", "counter", "measurement", "finding", "score",
               "host", "firmware", "setting"]  # fmt: skip
Change = Literal["gone", "new", "moved", "replaced", "changed", "grown", "reset"]
Value = bool | int | float | str | None


class Difference(Record):
    """One thing that is not what it was."""

    kind: Kind
    area: Area
    change: Change
    device: str
    """``GPU3``, ``GPU0 - GPU4``, a finding's key, or ``host``."""
    bdf: str | None
    """Where the device is on the new side, or was on the old one."""
    what: str
    """The quantity, by a name that stays: ``vbios``, ``link-width``, ``retired-pages``."""
    old: Value
    new: Value
    message: str
    unit: str = ""

    @property
    def lost(self) -> bool:
        """Is a piece of hardware no longer there?"""
        return self.area == "hardware" and self.change == "gone"


class Compared(Record):
    """What differs, and what could not be compared."""

    differences: tuple[Difference, ...]
    notes: tuple[str, ...]


def as_it_stands(identity: str) -> str:
    """An identity that needs no pseudonym to be compared."""
    return identity


class Side(Record):
    """One of the two looks."""

    snapshot: Snapshot
    topology: Topology
    namespace: str
    """What identities are comparable with: equal for two sides that would call one device alike; empty: not known."""
    pseudonym: Callable[[str], str] = as_it_stands
    """How the other side would call an identity of this one."""


class Pair(Record):
    """One device on both sides; None where a side lacks it."""

    old: Device | None
    new: Device | None
    replaced: bool = False
    """The same place, but another board."""

    @property
    def either(self) -> Device:
        """The device as the newer side that has it names it."""
        found = self.new or self.old
        assert found is not None
        return found

    @property
    def same(self) -> bool:
        """Is this one device on both sides?"""
        return self.old is not None and self.new is not None and not self.replaced


def arrow(old: object, new: object, unit: str = "") -> str:
    """``16 -> 8 lanes``"""
    return f"{old} -> {new} {unit}".rstrip()


def judged(old: float, new: float, more_is_better: bool) -> Kind:
    """Better or worse, of two different numbers."""
    return "better" if (new > old) == more_is_better else "worse"


def in_container(side: Side) -> bool:
    """A container hides devices of the host."""
    host = side.snapshot.host
    return isinstance(host, Host) and isinstance(host.container, str)


def same_boot(old: Side, new: Side) -> bool:
    """Have both looks the same boot? Where nobody can tell, counters are taken to go on."""
    ids = [side.pseudonym(host.boot_id.strip()) for side in (old, new)
           if isinstance(host := side.snapshot.host, Host) and not isinstance(host.boot_id, Missing)]  # fmt: skip
    return len(ids) < 2 or ids[0] == ids[1]
