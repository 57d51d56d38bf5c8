"""Outputs of which no more is read than that they are there: which lines are theirs, without facts.

Among them ``ucx_info -d`` (https://github.com/openucx/ucx, src/tools/info/tl_info.c), NVIDIA GPU Tools,
https://github.com/NVIDIA/gpu-admin-tools (cli/main.py), and the log of nvidia-container-cli,
https://github.com/NVIDIA/libnvidia-container (src/nvc.c, src/nvc_info.c).
"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.facts.record import Record
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bounded
from dgxcheck.readers.wording import rows

_MOST_ABOVE = 8


class Form(Record, kw_only=False):
    """How an output begins, and what its lines look like until another one comes."""

    tool: str
    """With the command that says more of the machine, if there is one."""
    head: LazyPattern
    row: LazyPattern
    ends: bool
    """At an empty line."""


def _form(row: dict[str, str]) -> Form:
    more = f"; {row['instead']} says more" if row["instead"] else ""
    tool = f"{row['tool']} (not used{more})"
    return Form(tool, LazyPattern(row["head"]), LazyPattern(row["row"]), not row["goes_on"])


_FORMS = tuple(map(_form, rows("known")))


def read_known(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Each that begins in a text."""
    text = "\n".join(lines)
    forms = [form for form in _FORMS if form.head.is_possible(text)]
    if not forms:
        return ()
    found: dict[str, set[int]] = {}
    form: Form | None = None
    lines = bounded(lines)
    for number, line in enumerate(lines):
        text = line.strip()
        if begun := next((each for each in forms if each.head.fullmatch(text)), None) if text else None:
            form = begun
            found.setdefault(form.tool, set()).update(_above(lines, number, form))
        elif form is None or not text or not form.row.fullmatch(text):
            form = form if form is not None and not text and not form.ends else None
            continue
        found.setdefault(form.tool, set()).add(number)
    return tuple(Imported(tool=tool, facts={}, understood=frozenset(at)) for tool, at in found.items())


def _above(lines: tuple[str, ...], head: int, form: Form) -> Iterator[int]:
    """Rows of the table that stand directly above its head: its upper rule."""
    for number in range(head - 1, max(head - _MOST_ABOVE, 0) - 1, -1):
        if not form.row.fullmatch(lines[number].strip()):
            return
        yield number
