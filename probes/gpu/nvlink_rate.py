"""How fast NVLinks run."""

from __future__ import annotations

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nvlink import NvLinkRate
from dgxcheck.source.protocol import Source
from probes.gpu.listing import links, present
from probes.gpu.quantities import facts_of_link


def probe(source: Source) -> tuple[NvLinkRate, ...] | Missing:
    """``NVML_FI_DEV_NVLINK_GET_SPEED`` of every NVLink that is up."""
    gpus = present(source)
    if isinstance(gpus, Missing):
        return gpus
    return tuple(
        NvLinkRate(bdf=bdf, link=link, **facts_of_link(source, "nvlink rate", bdf, link, state))
        for bdf in gpus
        for link, state in links(source, bdf)
        if state == 1
    )
