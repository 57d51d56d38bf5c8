"""Errors that NVLinks counted."""

from __future__ import annotations

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nvlink import NvLinkErrors
from dgxcheck.source.protocol import Source
from probes.gpu.listing import links, present
from probes.gpu.quantities import facts_of_link


def probe(source: Source) -> tuple[NvLinkErrors, ...] | Missing:
    """``nvmlDeviceGetNvLinkErrorCounter`` of every link position that has a state."""
    gpus = present(source)
    if isinstance(gpus, Missing):
        return gpus
    return tuple(_errors(source, bdf, link, state) for bdf in gpus for link, state in links(source, bdf))


def _errors(source: Source, bdf: str, link: int, state: int | Missing) -> NvLinkErrors:
    return NvLinkErrors(bdf=bdf, link=link, **facts_of_link(source, "nvlink errors", bdf, link, state))
