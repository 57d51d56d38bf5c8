"""How many devices of a kind a host had when dgxcheck last saw all of them."""

from __future__ import annotations

from dgxcheck.facts.record import Record


class Count(Record, kw_only=False):
    """A number of devices, or GiB of memory, and the day on which it was last there (``2026-11-20``, UTC)."""

    number: int
    date: str
