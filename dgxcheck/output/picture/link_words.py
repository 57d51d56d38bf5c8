"""What stands at a PCIe link."""

from __future__ import annotations

from dgxcheck.facts.missing import Missing
from dgxcheck.output.plain_text import shown
from dgxcheck.topology.paths import Hop


def link_lines(hop: Hop | None) -> list[str]:
    """``gen3 x16``, and below it what both ends support where it is trained lower."""
    if hop is None or hop.skip_reason:
        return []
    if isinstance(hop.gen, Missing) and isinstance(hop.width, Missing):
        return ["link ?"]
    now = f"gen{shown(hop.gen)} x{shown(hop.width)}"
    below = [f"x{hop.max_width}"] if hop.narrow is True else []
    below = [*([f"gen{hop.max_gen}"] if hop.slow is True else []), *below]
    return [now, f"of {' '.join(below)}"] if below else [now]
