"""Every form that is read, and so what is kept of a log; dgxcheck's own lines beside those of a log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import ModuleType

from dgxcheck.facts.kernel_log import OFF_BUS, EarlierXid
from dgxcheck.kernel_messages import gpu, hca, host, memory, pcie, storage
from dgxcheck.kernel_messages.form import Form, Lines
from dgxcheck.lazy_pattern import LazyPattern

_SUBJECTS = {form: module for module in (gpu, pcie, hca, memory, storage, host) for form in module.FORMS}
FORMS = tuple(sorted(_SUBJECTS, key=lambda form: form.context))
_BY_FIRST: dict[str, list[tuple[str, Form]]] = {form.starts: [] for form in FORMS}
for _form in FORMS:
    for _first in (_form.starts,) if _form.starts else _BY_FIRST:
        _BY_FIRST[_first].append((_form.literals[0], _form))
_ANYWHERE = _BY_FIRST[""]
_SEVERAL_LINES = {form: after for forms in (gpu.FORMS, storage.FORMS) for form in forms["several lines"]
                  for after in forms["goes on with it"]}  # fmt: skip
_OF_DRIVER = LazyPattern(rf"NVRM: |nvidia|mlx5|efa |infiniband |Linux version |{gpu.FORMS.parts['DEVICE']}")


def form_of(message: str) -> tuple[Form, re.Match[str]] | None:
    """The first form that a message has, with its match."""
    for literal, form in _BY_FIRST.get(message[:1], _ANYWHERE):
        if literal in message and (match := form.compiled.match(message)) is not None:
            return form, match
    return None


def by_subject(lines: Lines) -> Mapping[ModuleType, list[tuple[float, str]]]:
    """The lines that each module of this room is about."""
    found: dict[ModuleType, list[tuple[float, str]]] = {module: [] for module in _SUBJECTS.values()}
    for line in lines:
        if (form := form_of(line[1])) is not None:
            found[_SUBJECTS[form[0]]].append(line)
    return found


def is_relevant(message: str) -> bool:
    """Does a message have any of these forms?"""
    return form_of(message) is not None


def is_read(message: str) -> bool:
    """Does a message have one from which facts are read? What explains those around it can be another program's."""
    found = form_of(message)
    return found is not None and not found[0].context


def is_drivers(message: str) -> bool:
    """May only a driver or the kernel log a message so? A program can log what looks like it."""
    return _OF_DRIVER.match(message) is not None or is_relevant(message)


def is_certain(message: str) -> bool:
    """Does no user choose what makes a message this one?

    The name of a program, 15 bytes, is all that a user can put before what the kernel says of it (``TASK_COMM_LEN``).
    """
    found = form_of(message)
    return found is not None and not found[0].forgeable


def goes_on(first: str) -> Form | None:
    """The form of the lines that go on with a message of several lines; None where its further lines are not read."""
    return next((after for form, after in _SEVERAL_LINES.items() if form.match(first)), None)


_EARLIER = LazyPattern(
    r"dgxcheck: earlier: boot (?P<boot>[\w-]{1,64}), begun (?P<begun_s>\d{1,12}(?:\.\d{1,6})?)"
    r"(?:, at (?P<date>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ))?(?:, (?P<uuid>GPU-[\w-]{1,64}))?: (?P<message>NVRM: .*)",
    flags=re.ASCII | re.DOTALL,
)
"""An Xid of an earlier boot, or one that the log no longer has.

``dgxcheck: earlier: boot ID, begun 7202, at 2026-11-20T10:00:00Z, GPU-..: NVRM: Xid ..``,
of which only boot, begun and what follows the last colon are required.
"""
LEFT_OUT = LazyPattern(r"dgxcheck: left out: (\d{1,9}): (.*)", "dgxcheck: left out: ", flags=re.ASCII | re.DOTALL)
"""Of messages of which only the last are kept: how many more there were, and one of them."""


def earlier(message: str) -> EarlierXid | None:
    """dgxcheck's own line on one; None for any other, and for one without an Xid or a GPU that fell off the bus."""
    if (match := _EARLIER.fullmatch(message)) is None:
        return None
    xid = gpu.xid(match["message"])
    bdf = xid.bdf if xid is not None else gpu.off_bus(match["message"])
    if bdf is None:
        return None
    return EarlierXid(
        bdf=bdf, number=OFF_BUS if xid is None else xid.number, boot=match["boot"], begun_s=float(match["begun_s"]),
        text="" if xid is None else xid.text, date=match["date"] or "", uuid=match["uuid"] or "",
    )  # fmt: skip
