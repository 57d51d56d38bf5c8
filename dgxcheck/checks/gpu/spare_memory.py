"""Pages and rows of a GPU's memory that are out of use because of errors, and what is left to replace them."""

from __future__ import annotations

from collections.abc import Iterable

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, itself, part, per_gpu
from dgxcheck.checks.engine.expected import model_family
from dgxcheck.checks.engine.finding import Judgement, Status, Subject, answered, as_evidence, counted, judged, skip
from dgxcheck.checks.engine.growth import DAY_S
from dgxcheck.checks.gpu.ecc import earlier, latest
from dgxcheck.components.component import Component
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Gap, Missing, known, need, rows
from dgxcheck.facts.nvml.readings import GpuEcc, GpuMemory
from dgxcheck.facts.record import replace
from dgxcheck.lazy_pattern import LazyPattern

_WEEK_S = 7 * DAY_S
_OFFLINES = LazyPattern(r"\b(?:A100|A30|A800|H\d{2,3}|GH200|G?B[123]00)\b")
"""Names of boards with GA100, GH100 and GB10x."""


def _retired(box: Box, ecc: GpuEcc) -> Judgement:
    """K80 to V100: fails from {ecc.retired-pages-fail} retired (the table holds 64), and above
    {ecc.retired-pages-double} for double-bit errors if more than one of them is new within a week; warns from 1 for a
    double-bit error, and above {ecc.retired-pages-warn} in all; from {ecc.retired-pages-near} on a field diagnostic is
    due.

    Source: https://docs.nvidia.com/deploy/dynamic-page-retirement/index.html; DCGM_GPU_HARDWARE_LIMITS; DCGM's page
    retirement watch
    """
    ecc = latest(box, ecc)
    pages = (ecc.retired_single_bit, ecc.retired_double_bit)
    single, double = numbers = [0 if isinstance(retired, Missing) else len(retired) for retired in pages]
    count = single + double  # those that wait to be retired among them: nvml.h, nvmlDeviceGetRetiredPages
    most, watch, growing = (box.settings.limit(f"ecc.retired-pages-{word}") for word in ("fail", "warn", "double"))
    evidence = tuple(answered(each, "nvmlDeviceGetRetiredPages", ecc.bdf, cause) for cause, each in enumerate(numbers))
    message = f"{counted(count, 'retired page')} ({single} for single-bit, {double} for double-bit errors)"
    judgement = Judgement(Status.PASS, message, count, most, "pages", evidence)
    if count >= most:
        return replace(judgement, status=Status.FAIL, fault=Fault.PAGES_EXHAUSTED)
    new = _new_in_a_week(box, ecc)
    if double > growing and new > 1:
        message = f"{message}; {new} of those for double-bit errors within a week"
        return replace(judgement, status=Status.FAIL, message=message, fault=Fault.PAGES_GROWING)
    if count > watch or double:
        fault = Fault.PAGES_MANY if count < box.settings.limit("ecc.retired-pages-near") else Fault.PAGES_EXHAUSTED
        return replace(judgement, status=Status.WARN, fault=fault)
    for retired in pages:
        need(retired)
    return judgement


def _new_in_a_week(box: Box, ecc: GpuEcc) -> int:
    """Pages with double-bit errors of the last week: by their times, counted back from the latest, or by what was new
    since an earlier reading that is no older than that."""
    pages, old = rows(ecc.retired_double_bit), earlier(box, ecc.bdf)
    times = [page.timestamp for page in pages if isinstance(page.timestamp, int) and page.timestamp > 0]
    latest_of_all = max(times, default=0)
    by_times = sum(latest_of_all - time <= _WEEK_S for time in times)
    if old is None or isinstance(box.growth, Judgement) or box.growth.seconds > _WEEK_S:
        return by_times
    before = old.retired_double_bit
    return by_times if isinstance(before, Missing) else max(by_times, len(pages) - len(before))


def _pending(box: Box, ecc: GpuEcc) -> Judgement:
    """K80 to V100: warns if a page retirement is pending; fails if there are uncorrected errors too.

    Source: https://docs.nvidia.com/deploy/dynamic-page-retirement/index.html
    """
    ecc = latest(box, ecc)
    pending = need(ecc.retirement_pending)
    evidence = [answered(int(pending), "nvmlDeviceGetRetiredPagesPendingStatus", ecc.bdf)]
    if not pending:
        return Judgement(Status.PASS, "no page retirement is pending", False, False, evidence=tuple(evidence))
    status = Status.WARN
    message = "a page retirement is pending; the page stays in use until the GPU is reset or the driver reloaded"
    if errors := known(ecc.volatile_uncorrected.total):
        status, message = Status.FAIL, f"{message}; {counted(errors, 'uncorrected error')} since the driver was loaded"
        evidence.append(answered(errors, "nvmlDeviceGetTotalEccErrors", ecc.bdf, 1, 0))
    return Judgement(status, message, True, False, evidence=tuple(evidence), fault=Fault.RETIREMENT_PENDING)


def _remap(box: Box, ecc: GpuEcc) -> Judgement:
    """From Ampere on: fails if a row remapping is pending or has failed, and from {ecc.remapped-rows} remapped for
    uncorrected errors.

    Source: https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html; DCGM_GPU_HARDWARE_LIMITS
    """
    ecc = latest(box, ecc)
    states = (ecc.remap_pending, ecc.remap_failed)
    rows, most = ecc.remapped_uncorrected, box.settings.limit("ecc.remapped-rows")
    evidence = (answered([*map(as_evidence, (rows, *states))], "nvmlDeviceGetRemappedRows", ecc.bdf),)
    if ecc.remap_failed is True:
        return judged(Fault.REMAP_FAILED, "a row remapping failed", evidence=evidence, fails=True)
    if isinstance(rows, int) and rows >= most:
        message = f"{counted(rows, 'row')} remapped for uncorrected errors"
        return Judgement(Status.FAIL, message, rows, most, "rows", evidence, fault=Fault.ROWS_EXHAUSTED)
    if ecc.remap_pending is True:
        # the page is taken out of use at once, the spare row takes its place at the reset
        message, fault = "a row remapping is pending; the next reset of the GPU applies it", Fault.REMAP_PENDING
        if not _takes_pages_out(box, ecc.bdf):
            message, fault = f"{message}; until then this board keeps using the bad row", Fault.REMAP_DUE
        return Judgement(Status.FAIL, message, evidence=evidence, fault=fault)
    for state in states:
        need(state)
    done = f"; {counted(rows, 'row')} remapped for uncorrected errors" if isinstance(rows, int) and rows else ""
    return Judgement(Status.PASS, f"no row remapping is pending, none has failed{done}", evidence=evidence)


def _takes_pages_out(box: Box, bdf: str) -> bool:
    """Does the driver take a page with a bad row out of use at once? Boards of GA10x and AD10x lack that
    (https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/, supported GPUs); one of unknown name counts as able.
    """
    model = model_family(box, box.at(bdf))
    return not model or _OFFLINES.search(model) is not None


def _repair(box: Box, ecc: GpuEcc) -> Judgement:
    """Fails if the driver reports memory that cannot be repaired; warns if a repair of a memory channel or of a TPC
    waits for the next reset of the GPU.

    Source: nvmlDeviceGetUnrepairableMemoryFlag, on which DCGM's health watch fails too; nvmlDeviceGetRepairStatus;
    nvidia-smi(1), Channel Repair Pending and TPC Repair Pending
    """
    ecc = latest(box, ecc)
    if ecc.unrepairable is True:
        evidence = (answered(1, "nvmlDeviceGetUnrepairableMemoryFlag", ecc.bdf),)
        message = "memory unrepairable; the driver can neither remap nor repair it"
        return Judgement(Status.FAIL, message, True, False, evidence=evidence, fault=Fault.MEMORY_UNREPAIRABLE)
    waiting = {"memory channel": ecc.channel_repair_pending, "TPC": ecc.tpc_repair_pending}
    evidence = (answered([*map(as_evidence, waiting.values())], "nvmlDeviceGetRepairStatus", ecc.bdf),)
    if pending := [name for name, state in waiting.items() if state is True]:
        message = f"a repair of a {' and a '.join(pending)} is pending: the next reset of the GPU applies it"
        return Judgement(Status.WARN, message, evidence=evidence, fault=Fault.REPAIR_PENDING)
    for state in waiting.values():
        need(state)
    if isinstance(ecc.unrepairable, Missing) and ecc.unrepairable.gap not in (Gap.UNSUPPORTED, Gap.UNRECORDED):
        need(ecc.unrepairable)
    return Judgement(Status.PASS, "no repair is pending", evidence=evidence)


def _blame_repair(box: Box, at: Subject, judgement: Judgement) -> Iterable[Component]:
    """The GPU if a TPC is to be repaired, else its memory."""
    ecc = box.gpu(at.bdf).ecc
    of_tpc = isinstance(ecc, GpuEcc) and ecc.tpc_repair_pending is True
    return (itself if of_tpc else part("memory"))(box, at, judgement)


def _banks(box: Box, memory: GpuMemory) -> Judgement:
    """From Ampere on: warns if a memory bank has few or no spare rows left.

    Source: nvmlDeviceGetRowRemapperHistogram; https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html

    A bank without spare rows still works: only the next row that fails in it cannot be replaced.
    """
    left, ecc = memory.row_histogram, box.gpu(memory.bdf).ecc
    none, low = need(left.none), need(left.low)
    evidence = (answered([none, low], "nvmlDeviceGetRowRemapperHistogram", memory.bdf),)
    if isinstance(ecc, GpuEcc) and ecc.remap_failed is True:
        return skip("dependency-failed", "see ecc.row-remap", *evidence)
    if not none and not low:
        return Judgement(Status.PASS, "every memory bank has spare rows left", 0, 0, "banks", evidence)
    message = f"memory banks by spare rows: {none} with none, {low} with few left"
    return Judgement(Status.WARN, message, none + low, 0, "banks", evidence, fault=Fault.ROWS_LOW)


CHECKS = (
    Check("ecc.retired-pages", per_gpu("gpu_ecc", _retired), part("memory")),
    Check("ecc.retirement-pending", per_gpu("gpu_ecc", _pending), part("memory")),
    Check("ecc.row-remap", per_gpu("gpu_ecc", _remap), part("memory")),
    Check("ecc.repair", per_gpu("gpu_ecc", _repair), _blame_repair),
    Check("ecc.spare-rows", per_gpu("gpu_memory", _banks), part("memory")),
)  # fmt: skip
