"""What the watch has counted, in the text format of Prometheus."""

from __future__ import annotations

import time

from dgxcheck.output.exposition import STATES, VERDICT_VALUES, Sample, classic, metric
from dgxcheck.output.health.labels import bus_id
from dgxcheck.watch.memory import Memory


def render(known: Memory) -> str:
    """Counts by device, kind and code, and the last judgement."""
    counted = [
        ({"pci_bus_id": bus_id(bdf), "event": kind, "code": code}, tally.count)
        for (bdf, kind, code), tally in known.ledger.tallies.items()
        if kind not in ("finding", "cleared", "verdict", "note")
    ]
    verdict: list[Sample] = [({}, STATES[known.judged.verdict])] if known.judged.verdict else []
    bad: dict[str, int] = dict.fromkeys(("warn", "unknown", "fail"), 0)
    for finding in known.judged.findings.values():
        bad[finding.status] = bad.get(finding.status, 0) + 1
    return classic(
        [
            metric("watch_timestamp_seconds", "When the watch last wrote this.", [({}, round(time.time(), 3))]),
            metric("watch_events_total", "Events by device, kind and code (number of an Xid).", counted),
            metric("watch_lost_records_total", "Kernel log records overwritten unread.", [({}, known.lost)]),
            metric("watch_verdict", f"Of the last judgement: {VERDICT_VALUES}.", verdict),
            metric("watch_findings", "Bad findings of it.", [({"status": name}, n) for name, n in bad.items()]),
        ]
    )
