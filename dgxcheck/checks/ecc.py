"""Memory errors, and the pages and rows that a GPU gave up for them."""

from __future__ import annotations

from dgxcheck.checks.check import Box, Check, per_gpu
from dgxcheck.checks.finding import Judgement, Status, answered
from dgxcheck.facts.gpu_ecc import GpuEcc
from dgxcheck.facts.gpu_memory import GpuMemory
from dgxcheck.reading import Json, Missing

_RETIREMENT = "https://docs.nvidia.com/deploy/dynamic-page-retirement/index.html"
_REMAPPING = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html"


def _mode(_: Box, memory: GpuMemory) -> Judgement | Missing:
    if isinstance(memory.ecc, Missing):
        return memory.ecc
    if isinstance(memory.ecc_pending, Missing):
        return memory.ecc_pending
    now, next_boot = (("off", "on")[each] for each in (memory.ecc, memory.ecc_pending))
    evidence = answered([int(memory.ecc), int(memory.ecc_pending)], "nvmlDeviceGetEccMode", memory.bdf)
    if now != next_boot:
        message = f"ECC is {now} and will be {next_boot} after the next reboot"
        return Judgement(Status.WARN, message, now, next_boot, evidence=(evidence,))
    return Judgement(Status.PASS, f"ECC is {now}", now, now, evidence=(evidence,))


def _volatile(_: Box, ecc: GpuEcc) -> Judgement | Missing:
    count = ecc.volatile_uncorrected.total
    if isinstance(count, Missing):
        return count
    evidence = (answered(count, "nvmlDeviceGetTotalEccErrors", ecc.bdf, 1, 0),)
    message = f"uncorrected memory errors since the driver was loaded: {count}"
    return Judgement(Status.FAIL if count else Status.PASS, message, count, 0, "errors", evidence)


def _aggregate(_: Box, ecc: GpuEcc) -> Judgement | Missing:
    count = ecc.aggregate_uncorrected.total
    if isinstance(count, Missing):
        return count
    evidence = (answered(count, "nvmlDeviceGetTotalEccErrors", ecc.bdf, 1, 1),)
    return Judgement(Status.PASS, f"uncorrected memory errors in its life: {count}", count, None, "errors", evidence)


def _retired(box: Box, ecc: GpuEcc) -> Judgement | Missing:
    causes = (ecc.retired_single_bit, ecc.retired_double_bit)
    known = [0 if isinstance(pages, Missing) else len(pages) for pages in causes]
    count = sum(known)
    many, most = (box.settings.limit(f"ecc.retired-pages-{word}") for word in ("warn", "fail"))
    status = Status.FAIL if count >= most else Status.WARN if count > many else Status.PASS
    for pages in causes:
        if isinstance(pages, Missing) and status is Status.PASS:
            return pages
    message = f"retired pages: {known[0]} for single-bit and {known[1]} for double-bit errors"
    evidence = tuple(answered(each, "nvmlDeviceGetRetiredPages", ecc.bdf, cause) for cause, each in enumerate(known))
    return Judgement(status, message, count, many, "pages", evidence)


def _pending(_: Box, ecc: GpuEcc) -> Judgement | Missing:
    if isinstance(ecc.retirement_pending, Missing):
        return ecc.retirement_pending
    waits = answered(int(ecc.retirement_pending), "nvmlDeviceGetRetiredPagesPendingStatus", ecc.bdf)
    if not ecc.retirement_pending:
        return Judgement(Status.PASS, "no page waits to be retired", False, False, evidence=(waits,))
    message = "a page with errors stays in use until the driver is loaded again"
    errors = ecc.volatile_uncorrected.total
    if isinstance(errors, Missing) or not errors:
        return Judgement(Status.WARN, message, True, False, evidence=(waits,))
    counted = answered(errors, "nvmlDeviceGetTotalEccErrors", ecc.bdf, 1, 0)
    return Judgement(
        Status.FAIL, f"{message}, and {errors} uncorrected errors were counted", True, False, "", (waits, counted)
    )


def _remap(_: Box, ecc: GpuEcc) -> Judgement | Missing:
    states = (ecc.remap_pending, ecc.remap_failed)
    said: list[Json] = [each.reason if isinstance(each, Missing) else each for each in states]
    evidence = (answered(said, "nvmlDeviceGetRemappedRows", ecc.bdf),)
    if ecc.remap_failed is True:
        return Judgement(Status.FAIL, "a row could not be remapped: its bank has no spare rows", evidence=evidence)
    if ecc.remap_pending is True:
        return Judgement(Status.FAIL, "a row with errors stays in use until the GPU is reset", evidence=evidence)
    for gap in states:
        if isinstance(gap, Missing):
            return gap
    return Judgement(Status.PASS, "no row waits to be remapped, none could not be", evidence=evidence)


CHECKS = (
    Check(
        id="ecc.mode",
        rule="Warns where the ECC mode that is set differs from the one in use.",
        source="nvmlDeviceGetEccMode: current and pending mode",
        remedy="reboot, or reset the GPU, so that the mode that is set comes into use",
        judge=per_gpu("gpu_memory", _mode),
    ),
    Check(
        id="ecc.volatile",
        rule="Fails on one uncorrected (double-bit) memory error since the driver was loaded.",
        source="DCGM diag, Azure and Meta node checks fail on the first",
        remedy="stop the GPU's jobs and reset it or reboot; if errors come back, run the vendor's field diagnostic",
        judge=per_gpu("gpu_ecc", _volatile),
    ),
    Check(
        id="ecc.aggregate",
        rule="Tells how many uncorrected errors the GPU has counted in its life. Passes always: the counter never"
        " clears, and boards with some have been working for years.",
        source="recorded boxes in service with 4 to 7 such errors",
        remedy="nothing to do",
        judge=per_gpu("gpu_ecc", _aggregate),
    ),
    Check(
        id="ecc.retired-pages",
        rule="K80 to V100: warns above {ecc.retired-pages-warn}, fails from {ecc.retired-pages-fail} retired; the table"
        " holds 64.",
        source=_RETIREMENT,
        remedy="run the vendor's field diagnostic and ask for a replacement",
        judge=per_gpu("gpu_ecc", _retired),
    ),
    Check(
        id="ecc.retirement-pending",
        rule="K80 to V100: warns where a page waits to be retired; fails where uncorrected errors were counted too.",
        source=_RETIREMENT,
        remedy="stop the GPU's jobs and reset it, load the driver again or reboot; this is no case for a replacement",
        judge=per_gpu("gpu_ecc", _pending),
    ),
    Check(
        id="ecc.row-remap",
        rule="From Ampere on: fails where a row waits to be remapped or could not be.",
        source=_REMAPPING,
        remedy="reset the GPU if a remap is pending; if one failed, run the field diagnostic and ask for a replacement",
        judge=per_gpu("gpu_ecc", _remap),
    ),
)  # fmt: skip
