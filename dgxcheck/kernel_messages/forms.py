"""Every form that is read, and so what is kept of a log."""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import ModuleType

from dgxcheck.kernel_messages import gpu, hca, host, memory, pcie, storage
from dgxcheck.kernel_messages.form import DEVICE, Form

CONTEXT = (
    Form("mlx5", r"\w{0,32}[:( ].{0,80}(?:ACCESS_REG|_cmd)", context=True),
    Form("mlx5", r"\w{0,32}[:( ]", context=True),
    Form("NVRM: GPU ", context=True),
    Form("NVRM", "[:( ]", context=True),
    Form("nvidia", r"[-\w]{0,32}[:( ]", context=True),
    Form("pcieport", "[:( ]", context=True),
    Form("AER:", before=DEVICE, context=True),
)
"""Everything that these drivers log."""


def named(module: ModuleType) -> Iterator[Form]:
    """The forms among a module's names, in their order; in a tuple or as keys of a table too."""
    for value in vars(module).values():
        for each in value if isinstance(value, (tuple, dict)) else (value,):
            if isinstance(each, Form):
                yield each


_SUBJECTS = (gpu, pcie, hca, memory, storage, host)
_FOUND = dict.fromkeys((*(form for module in _SUBJECTS for form in named(module)), *CONTEXT))
FORMS = tuple(sorted(_FOUND, key=lambda form: form.context))
_ANYWHERE = tuple(form for form in FORMS if not form.starts)
_BY_FIRST = {
    first: tuple(form for form in FORMS if form.starts in ("", first))
    for first in {form.starts for form in FORMS if form.starts}
}
_SEVERAL_LINES = {**gpu.SEVERAL_LINES, **storage.SEVERAL_LINES}
_OF_DRIVER = re.compile(rf"NVRM: |nvidia|mlx5|Linux version |{DEVICE}")


def form_of(message: str) -> tuple[Form, re.Match[str]] | None:
    """The first form that a message has, with its match."""
    for form in _BY_FIRST.get(message[:1], _ANYWHERE):
        if (match := form.match(message)) is not None:
            return form, match
    return None


def is_relevant(message: str) -> bool:
    """Does a message have any of these forms?"""
    return form_of(message) is not None


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
