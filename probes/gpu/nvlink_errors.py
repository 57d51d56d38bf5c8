"""Errors that NVLinks counted."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.facts.ids import NVLINK_MAX_LINKS
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvlink import NvLinkErrors
from dgxcheck.facts.nvml_quantities import LINK_ERRORS
from dgxcheck.source.protocol import Source
from probes.gpu.listing import links, present
from probes.gpu.quantities import facts_of_link


def probe(source: Source) -> tuple[NvLinkErrors, ...] | Missing:
    """``nvmlDeviceGetNvLinkErrorCounter`` of every link position that has a state, or of whose state nobody was asked:
    ``nvidia-smi nvlink -e`` prints the counters alone."""
    gpus = present(source)
    return gpus if isinstance(gpus, Missing) else tuple(row for bdf in gpus for row in _of_gpu(source, bdf))


def _of_gpu(source: Source, bdf: str) -> Iterator[NvLinkErrors]:
    for link, state in links(source, bdf):
        if not (isinstance(state, Missing) and state.gap is Gap.UNRECORDED):
            yield _row(source, bdf, link, state)
            continue
        for position in range(link, NVLINK_MAX_LINKS):
            row = _row(source, bdf, position, 1)
            counted = any(isinstance(getattr(row, name), int) for name in LINK_ERRORS)
            yield from [row] if counted else [_row(source, bdf, position, state)] if position == link else []


def _row(source: Source, bdf: str, link: int, state: int | Missing) -> NvLinkErrors:
    return NvLinkErrors(bdf=bdf, link=link, **facts_of_link(source, "nvlink errors", bdf, link, state))
