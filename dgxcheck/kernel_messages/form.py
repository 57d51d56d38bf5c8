"""A form of a message: the literal that it holds, and patterns of what stands before and after that."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.facts.bdf import PATTERN
from dgxcheck.facts.kernel_log import HostEvent, HostTrouble
from dgxcheck.lazy_pattern import LazyPattern

Lines = Sequence[tuple[float, str]]
"""Seconds and message of each."""
DEVICE = rf"[^\s:]{{1,64}} (?P<bdf>{PATTERN}): "
"""Before a message about a device: driver and bus id (``dev_printk``)."""


class Form(LazyPattern):
    """Matches from the start of a message. What is kept of a log follows from all of these (``forms.py``)."""

    def __init__(
        self, literal: str, after: str = "", before: str = "", *, forgeable: bool = False, context: bool = False
    ) -> None:
        """``forgeable``: a user can choose so much of it that such a message proves nothing about the ones after it.

        ``context``: nobody reads facts from it, but it explains those around it.
        """
        super().__init__(f"{before}{re.escape(literal)}{after}", literal, flags=re.DOTALL | re.ASCII)
        varies = before and (not before[0].isalnum() or before[1:2] in ("?", "*", "{"))
        self.starts = "" if varies else (before or literal)[0]
        """Its first character; empty where that varies."""
        self.forgeable = forgeable or context
        self.context = context


def host_event(
    trouble: HostTrouble, part: str, seconds: float, line: str, group: str = "", corrected: bool | None = None,
    past: bool = False,
) -> HostEvent:
    """One event of one line."""
    return HostEvent(
        trouble=trouble, part=part, group=group, corrected=corrected, seconds=seconds, line=line, past=past
    )  # fmt: skip


def first_match(forms: tuple[Form, ...], message: str) -> re.Match[str] | None:
    """The match of the first of these that a message has."""
    return next((match for form in forms if (match := form.match(message)) is not None), None)
