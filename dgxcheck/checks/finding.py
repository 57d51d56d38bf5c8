"""What a check says: of what, with which status, and on what evidence."""

from __future__ import annotations

from enum import Enum
from typing import Literal

from dgxcheck.frozen import Record
from dgxcheck.reading import Json, Missing, question


class Status(str, Enum):
    """How a finding ends."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"  # what must answer did not, or made no sense
    SKIP = "skip"  # was not judged, for the reason that the judgement has


SkipReason = Literal[
    "",
    "not-supported",
    "no-permission",
    "not-visible",
    "not-recorded",
    "not-in-level",
    "dependency-failed",
]


class Evidence(Record, kw_only=False):
    """A raw fact: the file or NVML function that gave it, and what it gave."""

    where: str
    value: Json


class Subject(Record):
    """What is judged."""

    kind: Literal["gpu", "host"]
    name: str
    bdf: str | None
    uuid: str | Missing | None
    serial: str | Missing | None
    slot: str | Missing | None


class Judgement(Record, kw_only=False):
    """What a rule makes of the facts of one subject."""

    status: Status
    message: str
    measured: bool | int | float | str | None = None
    expected: bool | int | float | str | None = None
    unit: str = ""
    evidence: tuple[Evidence, ...] = ()
    reason: SkipReason = ""
    """Why it was skipped; empty for every other status."""


class Finding(Record):
    """A judgement with the check that made it."""

    id: str
    subject: Subject
    judgement: Judgement
    source: str
    """Where the thresholds come from."""
    remedy: str

    @property
    def status(self) -> Status:
        return self.judgement.status

    @property
    def key(self) -> str:
        """``id/bdf``, or ``id`` for the host: the same for the same fault in every run."""
        return f"{self.id}/{self.subject.bdf}" if self.subject.bdf else self.id


def answered(value: Json, function: str, bdf: str, *args: int) -> Evidence:
    """What NVML answered to a question, spelled as in a recording."""
    return Evidence(question(function, bdf, *args), value)


def skip(reason: SkipReason, message: str, *evidence: Evidence) -> Judgement:
    """Not judged."""
    return Judgement(Status.SKIP, message, evidence=evidence, reason=reason)
