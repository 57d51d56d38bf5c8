"""A difference between two snapshots of a machine, and the two sides compared."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Device, Topology

Trend = Literal["worse", "neutral", "better"]
Area = Literal["hardware", "link", "nvlink", "network", "memory", "counter", "measurement", "finding", "score",
               "host", "firmware", "setting"]  # fmt: skip
Change = Literal["gone", "new", "moved", "replaced", "changed", "grown", "reset"]
Value = bool | int | float | str | None


class Difference(Record):
    """One change between the old and the new side."""

    kind: Trend
    area: Area
    change: Change
    device: str
    """``GPU3``, ``GPU0 - GPU4``, a finding's key, or ``host``."""
    bdf: str | None
    """Where the device is on the new side, or was on the old one."""
    what: str
    """Stable name of the quantity: ``vbios``, ``link-width``, ``retired-pages``."""
    old: Value
    new: Value
    message: str
    unit: str = ""

    @property
    def lost(self) -> bool:
        """Is hardware missing?"""
        return self.area == "hardware" and self.change == "gone"


class Compared(Record):
    """The differences, and notes on what could not be compared."""

    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    other_gpus: str = ""
    """The GPUs of the old side, where it is a machine of other models: its devices are not missing from this one."""


class Side(Record):
    """One of the two snapshots."""

    snapshot: Snapshot
    topology: Topology
    namespace: str
    """Fingerprint of the anonymization key: identities are comparable if both sides have the same; empty: unknown."""
    pseudonym: Callable[[str], str] = str
    """An identity of this side as the other side anonymizes it; as it stands where both are anonymized alike."""


class Counterparts(Record):
    """One device on both sides; None where a side lacks it."""

    old: Device | None
    new: Device | None
    replaced: bool = False
    """Same bus id, another board."""

    @property
    def either(self) -> Device:
        """The device on the new side, else on the old one."""
        device = self.new or self.old
        assert device is not None
        return device

    @property
    def same(self) -> bool:
        """Is the same device on both sides?"""
        return self.old is not None and self.new is not None and not self.replaced

    @property
    def moved(self) -> bool:
        """Is it the same device in another place?"""
        if self.old is None or self.new is None or self.replaced:
            return False
        known = isinstance(self.old.path, tuple) and isinstance(self.new.path, tuple)
        other = bool(self.old.bdf and self.new.bdf) and self.old.bdf != self.new.bdf
        return other or (known and self.old.path != self.new.path)


def arrow(old: object, new: object, unit: str = "") -> str:
    """``16 -> 8 lanes``"""
    return f"{old} -> {new} {unit}".rstrip()


def judged(old: float, new: float, more_is_better: bool) -> Trend:
    """Better or worse, of two different numbers."""
    return "better" if (new > old) == more_is_better else "worse"


def in_container(side: Side) -> bool:
    """Was the snapshot taken in a container, where host devices may be hidden?"""
    return isinstance(side.snapshot.known_host.container, str)


def same_boot(old: Side, new: Side) -> bool:
    """Do both sides have the same boot id? True where one is unknown: counters are taken to continue."""
    boots = [(side, side.snapshot.known_host.boot_id) for side in (old, new)]
    ids = [side.pseudonym(boot.strip()) for side, boot in boots if not isinstance(boot, Missing)]
    return len(ids) < 2 or ids[0] == ids[1]
