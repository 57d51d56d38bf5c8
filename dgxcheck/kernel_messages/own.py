"""dgxcheck's own lines beside those of a log: an Xid that the log does not hold, messages that were left out."""

from __future__ import annotations

import re

from dgxcheck.facts.kernel_log import OFF_BUS, EarlierXid
from dgxcheck.kernel_messages import gpu
from dgxcheck.lazy_pattern import LazyPattern

_EARLIER = LazyPattern(
    r"dgxcheck: earlier: boot (?P<boot>[\w-]{1,64}), begun (?P<begun_s>\d{1,12}(?:\.\d{1,6})?)"
    r"(?:, at (?P<date>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ))?(?:, (?P<uuid>GPU-[\w-]{1,64}))?: (?P<message>NVRM: .*)",
    flags=re.ASCII | re.DOTALL,
)
"""An Xid of an earlier boot, or one that the log no longer has.

``dgxcheck: earlier: boot ID, begun 7202, at 2026-11-20T10:00:00Z, GPU-..: NVRM: Xid ..``,
of which only boot, begun and what follows the last colon are required.
"""
LEFT_OUT = LazyPattern(r"dgxcheck: left out: (\d{1,9}): (.*)", flags=re.ASCII | re.DOTALL)
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
