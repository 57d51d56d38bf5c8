"""A fact, or the reason why there is none."""

from __future__ import annotations

import errno
from enum import Enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from typing import ParamSpec, TypeAlias, TypeGuard, TypeVar

    P = ParamSpec("P")
    T = TypeVar("T")
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


NO_WORKER = -1
"""``Missing.code`` of a question that nobody asked: the system let no worker of dgxcheck start, had no CPU free for
it, or ended it for lack of memory. It says nothing of the driver."""
NOT_LOADABLE = -2
"""``Missing.code`` of ``nvmlInit`` where libnvidia-ml.so.1 is there and the dynamic linker does not load it."""


class Missing:
    """No value: the kind of gap, the question (path or NVML call), the error in words and by number.

    It has no truth value and no number on purpose: an unreadable error counter must not look like zero errors. Every
    fact is asked whether it is one, and a class of an own metaclass, as records are, would answer thrice as slowly.
    """

    __slots__ = ("code", "detail", "gap", "where")
    gap: Gap
    where: str
    detail: str
    """For people alone; nothing is decided by it."""
    code: int | None
    """nvmlReturn_t or errno of the question, ``NO_WORKER`` or ``NOT_LOADABLE``; None where there was no code."""

    def __init__(self, gap: Gap, where: str, detail: str = "", code: int | None = None) -> None:
        _put_gap(self, gap)
        _put_where(self, where)
        _put_detail(self, detail)
        _put_code(self, code)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Missing.{name} is not to be changed")

    def __eq__(self, other: object) -> bool:
        if type(other) is not Missing:
            return NotImplemented
        same = self.where == other.where and self.gap is other.gap
        return same and self.detail == other.detail and self.code == other.code

    def __hash__(self) -> int:
        return hash(self.where)

    def __repr__(self) -> str:
        return f"Missing(gap={self.gap!r}, where={self.where!r}, detail={self.detail!r}, code={self.code!r})"

    def __bool__(self) -> bool:
        raise TypeError(f"a missing fact has no truth value: {self}")

    def __str__(self) -> str:
        """For people: the error in words, else the kind of gap."""
        return self.detail or _WORDS[self.gap]

    def of(self, where: str) -> Missing:
        """The same gap of another question."""
        return Missing(self.gap, where, self.detail, self.code)

    @property
    def reason(self) -> str:
        """For programs: the kind of gap, then the error: ``denied: Permission denied``."""
        return f"{self.gap.value}: {self.detail}" if self.detail else self.gap.value


_put_code, _put_detail, _put_gap, _put_where = (vars(Missing)[name].__set__ for name in Missing.__slots__)


class NeededFact(Exception):
    """A rule needs a fact that is Missing; ``gap`` is the reason."""

    def __init__(self, gap: Missing) -> None:
        super().__init__(gap.where)
        self.gap = gap


def need(value: T | Missing) -> T:
    """The value; where it is Missing the rule ends with that gap."""
    if isinstance(value, Missing):
        raise NeededFact(value)
    return value


def or_gap(read: Callable[P, T | Missing]) -> Callable[P, T | Missing]:
    """The same function, whose result is the gap where a fact that it has ``need`` of is Missing."""

    def reading(*args: P.args, **names: P.kwargs) -> T | Missing:
        try:
            return read(*args, **names)
        except NeededFact as needed:
            return needed.gap

    reading.__name__, reading.__doc__ = read.__name__, read.__doc__
    return reading


def or_none(read: Callable[P, T | None]) -> Callable[P, T | None]:
    """The same function, whose result is None where a fact that it has ``need`` of is Missing."""
    with_gap = or_gap(read)

    def reading(*args: P.args, **names: P.kwargs) -> T | None:
        return known(with_gap(*args, **names))

    reading.__name__, reading.__doc__ = read.__name__, read.__doc__
    return reading


def known(value: T | Missing) -> T | None:
    """The value; None where it is Missing."""
    return None if isinstance(value, Missing) else value


def rows(listed: tuple[T, ...] | Missing) -> tuple[T, ...]:
    """What is listed; nothing where there is no list, and why does not matter here."""
    return () if isinstance(listed, Missing) else listed


def members_of(value: object) -> dict[str, Json]:
    """The members of a JSON object; none of what is no object."""
    return value if isinstance(value, dict) else {}


def items_of(value: object) -> list[Json]:
    """The items of a JSON list; none of what is no list."""
    return value if isinstance(value, list) else []


def is_number(value: object) -> TypeGuard[int | float]:
    """True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def text_of(value: object) -> str:
    """A text; empty for a gap and for what is no text."""
    return value if isinstance(value, str) else ""


_WORDS = {
    Gap.ABSENT: "not there", Gap.UNSUPPORTED: "not supported", Gap.DENIED: "not permitted",
    Gap.GARBLED: "makes no sense", Gap.LOST: "the device stopped answering", Gap.TIMEOUT: "no answer in time",
    Gap.UNRECORDED: "not recorded", Gap.UNASKED: "not asked",
}  # fmt: skip
_GAPS = {
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), Gap.ABSENT),
    **dict.fromkeys((errno.EACCES, errno.EPERM), Gap.DENIED),
    **dict.fromkeys((errno.EINVAL, errno.EOPNOTSUPP), Gap.UNSUPPORTED),
    **dict.fromkeys((errno.EIO, errno.ENODEV, errno.ENXIO, errno.EREMOTEIO), Gap.LOST),
    errno.ETIMEDOUT: Gap.TIMEOUT,
}


GAPS_BY_VALUE = {gap.value: gap for gap in Gap}


def question(function: str, subject: str = "", *args: int) -> str:
    """How a question to NVML is spelled in keys and gaps: ``nvmlDeviceGetNvLinkState 0000:06:00.0 3``."""
    asked = f"{function} {subject}" if subject else function
    return " ".join((asked, *map(str, args))) if args else asked


def missing(where: str, error: OSError) -> Missing:
    """The gap that an errno of the kernel stands for; an errno without a meaning here is ``garbled``."""
    gap = _GAPS.get(error.errno or 0, Gap.GARBLED)
    return Missing(gap, where, "" if gap is Gap.ABSENT else error.strerror or str(error), error.errno)


def read_or_gap(where: str, read: Callable[[], T]) -> T | Missing:
    """What a file says, or the gap that its errno stands for."""
    try:
        return read()
    except OSError as error:
        return missing(where, error)


def gap_to_json(gap: Missing) -> dict[str, Json]:
    """``{"missing": "lost", "detail": "NVML 15: GPU is lost", "code": 15}``, as recordings and workers write it."""
    members: dict[str, Json] = {"missing": gap.gap.value}
    if gap.detail:
        members["detail"] = gap.detail
    if gap.code is not None:
        members["code"] = gap.code
    return members


def gap_from_json(members: dict[str, Json], where: str) -> Missing:
    """The gap that was written so; one of an unknown kind is ``garbled``.

    Recordings before ``code`` have the nvmlReturn_t in the detail alone: ``NVML 15: ..``.
    """
    kind, detail, code = members["missing"], members.get("detail"), members.get("code")
    gap = GAPS_BY_VALUE.get(kind, Gap.GARBLED) if isinstance(kind, str) else Gap.GARBLED
    text = text_of(detail)
    if isinstance(code, bool) or not isinstance(code, int):
        number = text[5:].partition(":")[0] if text.startswith("NVML ") else ""
        code = int(number) if number.isdecimal() and number.isascii() and len(number) < 5 else None
    return Missing(gap, where, text, code)


class BadInput(Exception):
    """What the user gave cannot be used; the message is one clear line: what, where, what to do."""


_LONGEST = 80


def did_you_mean(word: str, names: Collection[str], otherwise: str, most: int = 1, likeness: float = 0.6) -> str:
    """Of a message: ``did you mean NAME?`` with up to ``most`` names of which the word is a part, else that begin with
    a word without hyphens but for theirs (``dgx1``), else that are at least so like it (0 to 1); else ``otherwise``.
    """
    import re
    from difflib import get_close_matches

    part = word[:_LONGEST]
    near = [name for name in names if part and part in re.split("[.-]", name)][:most]
    if not near and len(part) > 2 and part.isalnum():
        plain = {name: re.sub("[^a-z0-9]", "", name.lower()) for name in names}
        near = sorted((name for name in names if plain[name].startswith(part.lower())), key=len)[:most]
    near = near or get_close_matches(part, names, n=most, cutoff=likeness)
    return f"did you mean {' or '.join(near)}?" if near else otherwise
