"""What NVLinks can do."""

from __future__ import annotations

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nvlink import NvLinkCapability
from dgxcheck.source.protocol import Source
from probes.gpu.listing import links, present
from probes.gpu.values import flag


def probe(source: Source) -> tuple[NvLinkCapability, ...] | Missing:
    """``nvmlDeviceGetNvLinkCapability`` of every link position that has a state."""
    gpus = present(source)
    if isinstance(gpus, Missing):
        return gpus
    return tuple(_capability(source, bdf, link, state) for bdf in gpus for link, state in links(source, bdf))


def _capability(source: Source, bdf: str, link: int, state: int | Missing) -> NvLinkCapability:
    p2p, sysmem_access, p2p_atomics, sysmem_atomics, sli_bridge, valid = (
        state if isinstance(state, Missing) else flag(source, "nvmlDeviceGetNvLinkCapability", bdf, link, capability)
        for capability in range(6)
    )
    return NvLinkCapability(
        bdf=bdf,
        link=link,
        p2p=p2p,
        sysmem_access=sysmem_access,
        p2p_atomics=p2p_atomics,
        sysmem_atomics=sysmem_atomics,
        sli_bridge=sli_bridge,
        valid=valid,
    )
