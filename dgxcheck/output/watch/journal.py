"""An event as an entry of the journal, in the form of its native protocol (systemd.journal-fields(7))."""

from __future__ import annotations

from dgxcheck.output.plain_text import visible
from dgxcheck.output.watch.lines import described
from dgxcheck.watch.event import ReportedEvent

_PRIORITIES = {"pass": 6, "warn": 4, "unknown": 4, "fail": 2}
"""LOG_INFO, LOG_WARNING, LOG_CRIT"""


def entry(reported: ReportedEvent) -> bytes:
    """Fields a line each: every value is one line."""
    event = reported.event
    fields = {
        "MESSAGE": described(reported),
        "PRIORITY": str(_PRIORITIES[event.status.value]),
        "SYSLOG_IDENTIFIER": "dgxcheck",
        "DGXCHECK_EVENT": event.kind,
        "DGXCHECK_ID": event.code.partition("/")[0] if event.kind in ("finding", "cleared") else event.code,
        "DGXCHECK_STATUS": event.status.value,
        "DGXCHECK_TOTAL": str(reported.total),
        "GPU_BDF": event.bdf,
    }
    return "".join(f"{name}={visible(value)}\n" for name, value in fields.items() if value).encode("utf-8", "replace")
