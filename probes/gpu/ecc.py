"""Memory errors that a GPU counted, and the pages and rows it gave up."""

from __future__ import annotations

from dgxcheck.facts.gpu import EccCounts, GpuEcc, RetiredPage
from dgxcheck.facts.missing import Missing, question
from dgxcheck.source.protocol import Source
from probes.gpu.listing import each
from probes.gpu.values import as_number, flag, is_on, member, number, outputs, structs

CORRECTED, UNCORRECTED = 0, 1  # nvmlMemoryErrorType_t
VOLATILE, AGGREGATE = 0, 1  # nvmlEccCounterType_t
SINGLE_BIT, DOUBLE_BIT = 0, 1  # nvmlPageRetirementCause_t


def probe(source: Source) -> tuple[GpuEcc, ...] | Missing:
    """``nvmlDeviceGetTotalEccErrors``, ``GetMemoryErrorCounter``, ``GetRetiredPages`` and ``GetRemappedRows``."""
    return each(source, _ecc)


def _ecc(source: Source, bdf: str) -> GpuEcc:
    corrected, uncorrected, pending, failed = outputs(source, "nvmlDeviceGetRemappedRows", bdf, count=4)
    rows = question("nvmlDeviceGetRemappedRows", bdf)
    return GpuEcc(
        bdf=bdf,
        volatile_corrected=_counts(source, bdf, CORRECTED, VOLATILE),
        volatile_uncorrected=_counts(source, bdf, UNCORRECTED, VOLATILE),
        aggregate_corrected=_counts(source, bdf, CORRECTED, AGGREGATE),
        aggregate_uncorrected=_counts(source, bdf, UNCORRECTED, AGGREGATE),
        retired_single_bit=_retired(source, bdf, SINGLE_BIT),
        retired_double_bit=_retired(source, bdf, DOUBLE_BIT),
        retirement_pending=flag(source, "nvmlDeviceGetRetiredPagesPendingStatus", bdf),
        remapped_corrected=corrected,
        remapped_uncorrected=uncorrected,
        remap_pending=is_on(pending, rows),
        remap_failed=is_on(failed, rows),
    )


def _counts(source: Source, bdf: str, error: int, period: int) -> EccCounts:
    l1_cache, l2_cache, device_memory, register_file, texture_memory, texture_shared, cbu, sram = (
        number(source, "nvmlDeviceGetMemoryErrorCounter", bdf, error, period, location) for location in range(8)
    )
    return EccCounts(
        total=number(source, "nvmlDeviceGetTotalEccErrors", bdf, error, period),
        l1_cache=l1_cache,
        l2_cache=l2_cache,
        device_memory=device_memory,
        register_file=register_file,
        texture_memory=texture_memory,
        texture_shared=texture_shared,
        cbu=cbu,
        sram=sram,
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
