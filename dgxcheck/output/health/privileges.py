"""``health --explain privileges``: what root and capabilities add, and what is missing here."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from dgxcheck.assessment.privileges import Needed
from dgxcheck.output.plain_text import lines, visible

_SHOWN = 2


def render(privileges: Sequence[Needed]) -> str:
    """A paragraph for each privilege."""
    return "\n".join(map(_paragraph, privileges))


def _paragraph(needed: Needed) -> str:
    checks = ", ".join(needed.checks)
    return lines(
        [
            f"{needed.privilege.name}: {'missing' if needed.missing else 'available'}",
            f"  Gives: {needed.privilege.gives}",
            *([f"  Not readable now: {_some(needed.missing)}"] if needed.missing else []),
            *(
                [fill(checks, 110, initial_indent="  Adds to: ", subsequent_indent="    ", break_on_hyphens=False)]
                if checks
                else []
            ),
        ]
    )


def _some(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _SHOWN} more" if len(keys) > _SHOWN else ""
    return ", ".join(visible(key.partition(" ")[2] if not key.startswith("kmsg") else "/dev/kmsg")
                     for key in keys[:_SHOWN]) + more  # fmt: skip
