"""dgxcheck's own lines beside those of the kernel log: Xids of earlier boots, and those that the log no longer has.

``dgxcheck: earlier: boot ID, begun 7202, at 2026-11-20T10:00:00Z, GPU-..: NVRM: Xid ..``,
of which only boot, begun and what follows the last colon are required.
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
    """Such a line; None for any other, and for one that reports neither an Xid nor a GPU that fell off the bus."""
    match = _EARLIER.fullmatch(message)
    if match is None:
        return None
    xid = parse_xid.xid(match["message"])
    bdf = xid.bdf if xid is not None else parse_xid.off_bus(match["message"])
    if bdf is None:
        return None
    return EarlierXid(
        bdf=bdf, number=_FALLEN if xid is None else xid.number, boot=match["boot"], begun_s=float(match["begun_s"]),
        text="" if xid is None else xid.text, date=match["date"] or "", uuid=match["uuid"] or "",
    )  # fmt: skip
