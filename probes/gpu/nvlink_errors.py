"""Errors that NVLinks counted."""

from __future__ import annotations

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nvlink import NvLinkErrors
from dgxcheck.source.protocol import Source
from probes.gpu.listing import per_link
from probes.gpu.quantities import facts_of_link


def probe(source: Source) -> tuple[NvLinkErrors, ...] | Missing:
    """``nvmlDeviceGetNvLinkErrorCounter`` of every link position that has a state."""
    return per_link(source, _errors)


def _errors(source: Source, bdf: str, link: int, state: int | Missing) -> NvLinkErrors:
    return NvLinkErrors(bdf=bdf, link=link, **facts_of_link(source, "nvlink errors", bdf, link, state))
