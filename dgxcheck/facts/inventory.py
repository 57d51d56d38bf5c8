"""What an earlier run left of a host: how many devices of a kind, and what they were."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record

Kept = Mapping[str, Mapping[str, Json]]
"""Values by record and key, ``Gpu 0000:06:00.0``, then by name, ``Gpu.vbios``."""


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
