"""What NVLinks can do."""

from __future__ import annotations

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nvlink import NvLinkCapability
from dgxcheck.source.protocol import Source
from probes.gpu.listing import per_link
from probes.gpu.quantities import facts_of_link


def probe(source: Source) -> tuple[NvLinkCapability, ...] | Missing:
    """``nvmlDeviceGetNvLinkCapability`` of every link position that has a state."""
    return per_link(source, _capability)


def _capability(source: Source, bdf: str, link: int, state: int | Missing) -> NvLinkCapability:
    return NvLinkCapability(bdf=bdf, link=link, **facts_of_link(source, "nvlink capability", bdf, link, state))
