"""What a host consists of: its parts by serial number, and what an earlier run left of how many there were."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record

Kept = Mapping[str, Mapping[str, Json]]
"""Values by record and key, ``Gpu 0000:06:00.0``, then by name, ``Gpu.vbios``."""


class Part(Record, kw_only=False):
    """What can be exchanged or moved to another place."""

    kind: str
    """``gpu``, ``hca``, ``dimm``, ``machine``"""
    serial: str
    """That of a GPU's board, without one its UUID; the system image GUID of an HCA."""
    at: str
    """Bus id, or the slot of a DIMM; empty for the machine."""
    model: str = ""
    gauges: Mapping[str, tuple[float, ...]] = {}
    """By name: value, limit, and for a temperature the power draw in W."""


class Count(Record, kw_only=False):
    """A number of devices, or GiB of memory, and the day on which it was last there (``2026-11-20``, UTC)."""

    number: int
    date: str


class Remembered(Record, kw_only=False):
    """Inventory, versions and settings of a host as an earlier run read them."""

    mark: str
    """Of the host."""
    date: str
    """Of the first run that read all this."""
    values: Kept
    changed: str = ""
    """When they were first not the same; empty where they are."""
