"""Memory errors that a GPU counted, and the pages and rows it gave up."""

from __future__ import annotations

from dgxcheck.facts.gpu import EccCounts, GpuEcc, RetiredPage
from dgxcheck.facts.missing import Missing, question
from dgxcheck.source.protocol import Source
from probes.gpu.listing import per_gpu
from probes.gpu.quantities import facts_of, nested, plain
from probes.gpu.values import as_number, is_on, member, outputs, structs

SINGLE_BIT, DOUBLE_BIT = 0, 1  # nvmlPageRetirementCause_t


def probe(source: Source) -> tuple[GpuEcc, ...] | Missing:
    """``nvmlDeviceGetTotalEccErrors``, ``GetMemoryErrorCounter``, ``GetRetiredPages`` and ``GetRemappedRows``."""
    return per_gpu(source, _ecc)


def _ecc(source: Source, bdf: str) -> GpuEcc:
    facts = facts_of(source, "ecc", bdf)
    corrected, uncorrected, pending, failed = outputs(source, "nvmlDeviceGetRemappedRows", bdf, count=4)
    rows = question("nvmlDeviceGetRemappedRows", bdf)
    return GpuEcc(
        bdf=bdf,
        volatile_corrected=EccCounts(**nested(facts, "volatile_corrected")),
        volatile_uncorrected=EccCounts(**nested(facts, "volatile_uncorrected")),
        aggregate_corrected=EccCounts(**nested(facts, "aggregate_corrected")),
        aggregate_uncorrected=EccCounts(**nested(facts, "aggregate_uncorrected")),
        retired_single_bit=_retired(source, bdf, SINGLE_BIT),
        retired_double_bit=_retired(source, bdf, DOUBLE_BIT),
        remapped_corrected=corrected,
        remapped_uncorrected=uncorrected,
        remap_pending=is_on(pending, rows),
        remap_failed=is_on(failed, rows),
        **plain(facts),
    )


def _retired(source: Source, bdf: str, cause: int) -> tuple[RetiredPage, ...] | Missing:
    """A page whose address is garbled spoils the list: its length is what counts."""
    listed = structs(source, "nvmlDeviceGetRetiredPages", bdf, cause)
    if isinstance(listed, Missing):
        return listed
    where = question("nvmlDeviceGetRetiredPages", bdf, cause)
    pages: list[RetiredPage] = []
    for page in listed:
        if isinstance(address := as_number(page.get("address"), where), Missing):
            return address
        pages.append(RetiredPage(address=address, timestamp=member(page, "timestamp", where)))
    return tuple(pages)
