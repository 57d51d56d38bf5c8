"""Errors that NVLinks counted."""

from __future__ import annotations

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nvlink import NvLinkErrors
from dgxcheck.source.protocol import Source
from probes.gpu.listing import links, present
from probes.gpu.values import number


def probe(source: Source) -> tuple[NvLinkErrors, ...] | Missing:
    """``nvmlDeviceGetNvLinkErrorCounter`` of every link position that has a state."""
    gpus = present(source)
    if isinstance(gpus, Missing):
        return gpus
    return tuple(_errors(source, bdf, link, state) for bdf in gpus for link, state in links(source, bdf))


def _errors(source: Source, bdf: str, link: int, state: int | Missing) -> NvLinkErrors:
    replay, recovery, crc_flit, crc_data, ecc_data = (
        state if isinstance(state, Missing) else number(source, "nvmlDeviceGetNvLinkErrorCounter", bdf, link, counter)
        for counter in range(5)
    )
    return NvLinkErrors(
        bdf=bdf,
        link=link,
        replay=replay,
        recovery=recovery,
        crc_flit=crc_flit,
        crc_data=crc_data,
        ecc_data=ecc_data,
    )
