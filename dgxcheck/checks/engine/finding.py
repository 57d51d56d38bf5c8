"""The result of a check: subject, status and evidence; singular, plural and additions in its message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Literal, TypeVar

from dgxcheck.components.component import Component
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Json, Missing, is_number, question
from dgxcheck.facts.record import Record, replace
from dgxcheck.settings import Acknowledgement

T = TypeVar("T")


class Status(str, Enum):
    """How a finding ends."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"  # a source that must answer did not, or gave an invalid value
    SKIP = "skip"  # not judged, for the reason in the judgement


SkipReason = Literal[
    "", "not-supported", "no-permission", "not-visible", "not-recorded", "no-history", "not-in-level", "not-configured",
    "no-reference", "dependency-failed", "busy",
]  # fmt: skip


BAD = (Status.FAIL, Status.UNKNOWN, Status.WARN)
WORST_FIRST = (*BAD, Status.PASS, Status.SKIP)
FAULTY = (Status.FAIL, Status.WARN)
"""Something was found; what is unknown was not."""
Witness = Literal["state", "counters", "log", "measurement"]
"""What a check reads: the state at one time, counters at two times, the kernel log, or measurements. A log entry names
a device, but less precisely what is wrong with it than its state."""
Traffic = Literal["", "copies", "latency", "memory"]


class Evidence(Record, kw_only=False, many=True):
    """A raw fact: the file or NVML query, and its value."""

    where: str
    value: Json


EventKind = Literal["", "device", "nvswitch", "nvlink", "pcie", "nvme"]
"""What a line of the kernel log is about: a device that stopped, an NVSwitch, an NVLink, a PCIe link, an NVMe disk, or
another."""


class LogEvent(Record, kw_only=False):
    """One line of the kernel log that a finding is about."""

    seconds: float
    """Since boot."""
    kind: EventKind = ""
    number: int | None = None
    """Of an Xid or SXid."""
    link: int | None = None
    """The NVLink that it names; of an NVSwitch its port."""


class Subject(Record, many=True):
    """What is judged; with a ``peer`` what joins the two."""

    kind: Literal["gpu", "host", "hca", "port", "pci", "disk", "interface"]
    name: str
    bdf: str | None
    uuid: str | Missing | None = None
    serial: str | Missing | None = None
    slot: str | Missing | None = None
    part: str = ""
    """The port, link or quantity, if several of one device are judged."""
    peer: Subject | None = None


class Judgement(Record, kw_only=False, many=True):
    """What a rule makes of the facts of one subject."""

    status: Status
    message: str
    measured: bool | int | float | str | None = None
    expected: bool | int | float | str | None = None
    unit: str = ""
    evidence: tuple[Evidence, ...] = ()
    reason: SkipReason = ""
    """Why it was skipped; empty for every other status."""
    remedy: str = ""
    """What to do in this case; empty if the remedy of the fault or of the check applies."""
    fault: FaultKind | None = None
    """What is wrong, for causes and actions; None if nothing is, or if it could not be read."""
    events: tuple[LogEvent, ...] = ()
    """Of a bad finding of the kernel log: when what it is about was logged."""


class Finding(Record, many=True):
    """A judgement with the check that made it."""

    id: str
    subject: Subject
    judgement: Judgement
    source: str
    """Where the thresholds come from."""
    remedy: str
    acknowledgement: Acknowledgement | None = None
    """The site's, valid or lapsed."""
    blames: tuple[Component, ...] = ()
    """Of a bad finding: the components that it can come from, the likeliest first."""
    shared: Component | None = None
    """What is to blame instead where every device that the check judged has the fault."""
    crossed: tuple[Component, ...] = ()
    """Of a measurement: what its data crossed, the likeliest to be slow first."""
    traffic: Traffic = ""
    witness: Witness = "state"

    @property
    def acknowledged(self) -> bool:
        """Does the site accept it? Then it does not count."""
        return self.acknowledgement is not None and not self.acknowledgement.lapsed

    @property
    def status(self) -> Status:
        return self.judgement.status

    @property
    def counts(self) -> bool:
        """Is it bad, and does the site not accept it?"""
        return self.status in BAD and not self.acknowledged

    @property
    def key(self) -> str:
        """``id/bdf[/part][/bdf]``, or ``id`` for the host: the same for the same fault in every run."""
        return "/".join((self.id, *_place(self.subject), *(_place(self.subject.peer) if self.subject.peer else ())))


def _place(subject: Subject) -> tuple[str, ...]:
    named = subject.bdf or (subject.name if subject.kind != "host" else "")
    return tuple(filter(None, (named, subject.part)))


Judged = Iterator[tuple[Subject, Judgement]]
"""What a check yields: its subjects, each with what it makes of it."""


class Instead(Exception):
    """A rule or judge ends with the judgement that stands in place of what it would look at."""

    def __init__(self, judgement: Judgement) -> None:
        super().__init__(judgement)
        self.judgement = judgement


def given(value: T | Judgement) -> T:
    """The value; where a judgement stands in its place the rule ends with that one, or the judge, of the host."""
    if isinstance(value, Judgement):
        raise Instead(value)
    return value


def unless(judgement: Judgement | None) -> None:
    """Where there is a judgement the rule ends with that one, or the judge, of the host."""
    if judgement is not None:
        raise Instead(judgement)


def as_evidence(value: T | Missing) -> T | str:
    """A fact, or why there is none."""
    return value.reason if isinstance(value, Missing) else value


def of_gaps(gaps: Sequence[Missing]) -> tuple[Evidence, ...]:
    """The first of them, each with its reason."""
    return tuple(Evidence(gap.where, gap.reason) for gap in gaps[:10])


def answered(value: Json, function: str, bdf: str, *args: int) -> Evidence:
    """An NVML query, spelled as in a recording, and its answer."""
    return Evidence(question(function, bdf, *args), value)


def judged(
    fault: FaultKind, message: str, measured: bool | int | float | str | None = None,
    expected: bool | int | float | str | None = None, unit: str = "", evidence: tuple[Evidence, ...] = (), *,
    warns: bool = False, fails: bool = False, remedy: str = "",
) -> Judgement:  # fmt: skip
    """Fails or warns of a fault where that is so; else passes, with the same figures."""
    if not warns and not fails:
        return Judgement(Status.PASS, message, measured, expected, unit, evidence)
    status = Status.FAIL if fails else Status.WARN
    return Judgement(status, message, measured, expected, unit, evidence, fault=fault, remedy=remedy)


def skip(reason: SkipReason, message: str, *evidence: Evidence) -> Judgement:
    """Not judged."""
    return Judgement(Status.SKIP, message, evidence=evidence, reason=reason)


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 error``, ``2 errors``, ``3 switches``"""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def first_of(names: Sequence[str], most: int = 4) -> str:
    """``GPU0, GPU1``; of more than ``most`` names the first, and how many others there are: ``GPU0 and 7 more``."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def extended(judgement: Judgement, more: str) -> Judgement:
    """The judgement with more text behind its message."""
    return replace(judgement, message=f"{judgement.message}{more}")


def against(measured: object, expected: object, unit: str) -> str:
    """``x8 of x16``, ``88 °C, limit 87``; empty unless both are numbers."""
    if not (is_number(measured) and is_number(expected)):
        return ""
    if unit == "lanes":
        return f"x{measured:g} of x{expected:g}"
    if len(unit) > 3 and unit.isalpha() and max(measured, expected) == 1:  # not us or GB/s
        unit = unit.removesuffix("s")
    if measured < expected:
        return f"{measured:g} of {expected:g} {unit}".rstrip()
    return f"{measured:g} {unit}".rstrip() + (f", limit {expected:g}" if expected else "")
