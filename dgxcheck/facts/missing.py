"""A fact, or the reason why there is none."""

from __future__ import annotations

import errno
from enum import Enum

from dgxcheck.facts.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
else:
    Json = object


class Gap(str, Enum):
    """Why a question has no answer."""

    ABSENT = "absent"  # no such file or device
    UNSUPPORTED = "unsupported"  # the driver says this board cannot tell
    DENIED = "denied"  # needs more rights
    GARBLED = "garbled"  # read, but makes no sense
    LOST = "lost"  # the device stopped answering
    TIMEOUT = "timeout"  # no answer within the deadline
    UNRECORDED = "unrecorded"  # the recording never heard the question
    UNASKED = "unasked"  # this command does not need it


class Missing(Record, kw_only=False):
    """No value: the kind of gap, the question (path or NVML call), and what was said instead.

    It has no truth value and no number on purpose: an unreadable error counter must not look like zero errors.
    """

    gap: Gap
    where: str
    detail: str = ""

    def __bool__(self) -> bool:
        raise TypeError(f"a missing fact has no truth value: {self}")

    def __str__(self) -> str:
        """For people: what was said instead, else what kind of gap it is."""
        return self.detail or _WORDS[self.gap]

    @property
    def code(self) -> int | None:
        """The nvmlReturn_t of an NVML error, as recordings spell it: ``NVML 15: GPU is lost``; None for other gaps."""
        name, _, number = self.detail.partition(":")[0].partition(" ")
        return int(number) if name == "NVML" and number.isascii() and number.isdecimal() else None

    @property
    def reason(self) -> str:
        """For programs: the kind of gap, then what was said: ``denied: Permission denied``."""
        return f"{self.gap.value}: {self.detail}" if self.detail else self.gap.value


_WORDS = {
    Gap.ABSENT: "not there",
    Gap.UNSUPPORTED: "not supported",
    Gap.DENIED: "not permitted",
    Gap.GARBLED: "makes no sense",
    Gap.LOST: "the device stopped answering",
    Gap.TIMEOUT: "no answer in time",
    Gap.UNRECORDED: "not recorded",
    Gap.UNASKED: "not asked",
}
_GAPS = {
    errno.ENOENT: Gap.ABSENT,
    errno.ENOTDIR: Gap.ABSENT,
    errno.EACCES: Gap.DENIED,
    errno.EPERM: Gap.DENIED,
    errno.EINVAL: Gap.UNSUPPORTED,
    errno.EOPNOTSUPP: Gap.UNSUPPORTED,
    errno.EIO: Gap.LOST,
    errno.ENODEV: Gap.LOST,
    errno.ENXIO: Gap.LOST,
    errno.EREMOTEIO: Gap.LOST,
    errno.ETIMEDOUT: Gap.TIMEOUT,
}


def question(function: str, subject: str = "", *args: int) -> str:
    """How a question to NVML is spelled in keys and gaps: ``nvmlDeviceGetNvLinkState 0000:06:00.0 3``."""
    return " ".join((function, *([subject] if subject else []), *map(str, args)))


def missing(where: str, error: OSError) -> Missing:
    """The gap that an errno of the kernel stands for; an errno without a meaning here is ``garbled``."""
    gap = _GAPS.get(error.errno or 0, Gap.GARBLED)
    return Missing(gap, where, "" if gap is Gap.ABSENT else error.strerror or str(error))


class BadInput(Exception):
    """What the user gave cannot be used; the message is one clear line: what, where, what to do."""
