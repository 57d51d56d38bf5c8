"""PCIe link state of a GPU while copies ran: links slow down at idle."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Evidence
from dgxcheck.facts.missing import rows


def under_load(box: Box, bdf: str | None, member: str) -> tuple[int, Evidence] | None:
    """``link_gen`` or ``link_width`` while the GPU was under load, with its evidence; None if it was not read.

    A simulated load puts none on the link and does not count.
    """
    for row in rows(box.snapshot.measurement):
        if (row.kind, row.a) == ("under-load", bdf) and row.how != "simulated":
            value = row.more.get(member)
            if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 32:
                return value, Evidence(f"measure under-load {bdf}", {member: value})
    return None
