"""One event of a machine that is watched."""

from __future__ import annotations

from typing import Literal

from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.kernel_log import ANNOUNCES_RECOVERY
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record

EventKind = Literal[
    "xid", "sxid", "off-bus", "not-started", "pcie-error", "hca", "host", "hot-plug", "counter", "link", "port",
    "finding", "cleared", "verdict", "lost", "note",
]  # fmt: skip
"""``off-bus``: without an Xid; ``lost``: records of the kernel log that were overwritten before they were read;
``note``: about the watching itself."""
CHANGES: tuple[EventKind, ...] = ("hot-plug", "link", "port", "finding", "cleared", "verdict")
"""Each occurrence is a change of its own, where every other kind may repeat by the thousand."""
OTHER = "other"
"""Code of what is counted together, as there is too much of it."""
TEXT_CHARACTERS = 300
"""The most that is kept of a text."""


class Event(Record):
    """Something that happened, or was seen to have changed."""

    kind: EventKind
    status: Status
    """PASS: for information."""
    bdf: str = ""
    """Bus id of the device; empty for the host."""
    code: str = ""
    """Number of an Xid, severity of a PCIe error, name of a counter, key of a finding ..."""
    text: str
    seconds: float | None = None
    """Since boot, of a record of the kernel log."""
    count: int = 1
    """How many occurrences this is."""

    @property
    def key(self) -> tuple[str, str, str]:
        """The same for what counts as the same again; of notes each text is something else."""
        return self.bdf, self.kind, self.text if self.kind == "note" and self.code != OTHER else self.code

    @property
    def is_change(self) -> bool:
        """Is it a change of its own each time? So is the recovery that an Xid announces: the last one holds."""
        return self.kind in CHANGES or (self.kind == "xid" and self.code == str(ANNOUNCES_RECOVERY))


class ReportedEvent(Record, kw_only=False):
    """An event that is reported; its ``count`` are the occurrences since the last report of the same key."""

    event: Event
    date: str
    """UTC, ``2026-11-22T10:00:00Z``; empty of a saved log."""
    total: int
    """Occurrences since the first that was ever seen."""
    logged: str = ""
    """The date that a saved log has, in its own time zone, where its times do not count from boot."""


def as_json(reported: ReportedEvent) -> dict[str, Json]:
    """The members of an event of ``dgxcheck/watch/1``, without those that do not apply."""
    event = reported.event
    members: dict[str, Json] = {
        "at": reported.date, "logged": reported.logged, "event": event.kind, "status": event.status.value,
        "bdf": event.bdf, "code": event.code,
        "text": event.text, "seconds_since_boot": event.seconds, "count": event.count, "total": reported.total,
    }  # fmt: skip
    return {name: value for name, value in members.items() if value not in ("", None)}
