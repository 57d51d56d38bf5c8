"""How bad one Xid is, by the severity of its table entry and, for some numbers, by the text of its line."""

from __future__ import annotations

from dgxcheck.checks.engine.finding import Status
from dgxcheck.xid.entry import XidEntry
from dgxcheck.xid.line import ANNOUNCES_RECOVERY, FATAL, recovery_of
from dgxcheck.xid.nvlink5 import decoded


def xid_status(known: XidEntry, text: str, times: int, ended_channel: bool = False) -> Status:
    """``text`` is what its line says after the number, ``times`` how often it was logged by now.

    An Xid that ended a program's channel was fatal, whatever its own line says.
    """
    if known.severity in ("application", "information"):
        return Status.PASS
    if known.severity == "repeated":
        return Status.FAIL if times > 1 else Status.WARN
    if known.number == ANNOUNCES_RECOVERY:
        recovery = recovery_of(text)
        return Status.PASS if recovery == "none" else Status.WARN if recovery == "drain-p2p" else Status.FAIL
    words = decoded(known.number, text)
    if words is not None and words[1]:  # no action is due, whatever the line calls it
        return Status.PASS if words[0] == "none" else Status.WARN
    if known.severity == "text":
        return Status.FAIL if ended_channel or FATAL.search(text) else Status.WARN
    return Status.FAIL if known.severity == "fail" else Status.WARN
