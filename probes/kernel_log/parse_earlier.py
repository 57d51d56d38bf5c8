"""Lines of dgxcheck's own beside those of the kernel log: Xids of earlier boots, and of what the log has lost since.

``dgxcheck: earlier: boot ID, begun 7202, at 2026-11-20T10:00:00Z, GPU-..: NVRM: Xid ..``,
of which only boot, begun and what follows the last colon must be there.
"""

from __future__ import annotations

import re

from dgxcheck.facts.kernel_log import EarlierXid
from probes.kernel_log import parse_xid

_FALLEN = 79
_EARLIER = re.compile(
    r"dgxcheck: earlier: boot (?P<boot>[\w-]{1,64}), begun (?P<begun_s>\d{1,12}(?:\.\d{1,6})?)"
    r"(?:, at (?P<date>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ))?(?:, (?P<uuid>GPU-[\w-]{1,64}))?: (?P<message>NVRM: .*)",
    re.ASCII | re.DOTALL,
)


def earlier(message: str) -> EarlierXid | None:
    """Such a line; None for any other, and for one whose end tells of no Xid and of no GPU that fell off the bus."""
    match = _EARLIER.fullmatch(message)
    if match is None:
        return None
    said = parse_xid.xid(match["message"])
    bdf = said.bdf if said is not None else parse_xid.off_bus(match["message"])
    if bdf is None:
        return None
    return EarlierXid(
        bdf=bdf, number=_FALLEN if said is None else said.number, boot=match["boot"], begun_s=float(match["begun_s"]),
        text="" if said is None else said.text, date=match["date"] or "", uuid=match["uuid"] or "",
    )  # fmt: skip
