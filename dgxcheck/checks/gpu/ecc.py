"""Memory errors, and the pages and rows that a GPU gave up for them."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import Box, Growth, gpu_unavailable, row_of
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status, Subject, answered
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.per_gpu import per_gpu
from dgxcheck.checks.engine.siblings import siblings
from dgxcheck.facts.gpu import GpuEcc, GpuMemory
from dgxcheck.facts.missing import Json, Missing

_RETIREMENT = "https://docs.nvidia.com/deploy/dynamic-page-retirement/index.html"
_REMAPPING = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html"


def mode(box: Box, memory: GpuMemory) -> Judgement | Missing:
    """The ECC mode in use against the one that is set, that of the model and that of the neighbours."""
    if isinstance(memory.ecc, Missing):
        return memory.ecc
    if isinstance(memory.ecc_pending, Missing):
        return memory.ecc_pending
    now, next_boot = (("off", "on")[each] for each in (memory.ecc, memory.ecc_pending))
    evidence = answered([int(memory.ecc), int(memory.ecc_pending)], "nvmlDeviceGetEccMode", memory.bdf)
    if now != next_boot:
        message = f"ECC is {now} and will be {next_boot} after the next reboot"
        return Judgement(Status.WARN, message, now, next_boot, evidence=(evidence,))
    why = "" if memory.ecc else _on_elsewhere(box, memory.bdf)
    if why:
        return Judgement(Status.WARN, f"ECC is off: {why}", now, "on", evidence=(evidence,))
    return Judgement(Status.PASS, f"ECC is {now}", now, now, evidence=(evidence,))


def _on_elsewhere(box: Box, bdf: str) -> str:
    """Why ECC is expected to be on."""
    gpu = next(each for each in box.topology.gpus if each.bdf == bdf)
    board = box.board(gpu)
    ships = board.numbers.get("ecc") if board is not None else None
    if board is not None and ships is not None and ships.value:
        return f"{board.name} ships with it on"
    rows = box.snapshot.gpu_memory
    near = {other.bdf for other in siblings(box, gpu)}
    count = 0 if isinstance(rows, Missing) else sum(row.ecc is True for row in rows if row.bdf in near)
    return f"it is on on {count} others of its model" if count else ""


def _volatile(_: Box, ecc: GpuEcc) -> Judgement | Missing:
    count = ecc.volatile_uncorrected.total
    if isinstance(count, Missing):
        return count
    evidence = (answered(count, "nvmlDeviceGetTotalEccErrors", ecc.bdf, 1, 0),)
    message = f"uncorrected memory errors since the driver was loaded: {count}"
    return Judgement(Status.FAIL if count else Status.PASS, message, count, 0, "errors", evidence)


def _aggregate(box: Box) -> Iterator[tuple[Subject, Judgement]]:
    for gpu in box.gpus:
        yield box.subject(gpu), gpu_unavailable(box, gpu) or _in_its_life(box, gpu.bdf)


def _in_its_life(box: Box, bdf: str | None) -> Judgement:
    row = row_of(box.snapshot.gpu_ecc, bdf)
    if not isinstance(row, GpuEcc):
        return unjudged(row) if isinstance(row, Missing) else row
    count = row.aggregate_uncorrected.total
    if isinstance(count, Missing):
        return unjudged(count)
    before, since, how = _counted_before(box.growth, row.bdf)
    evidence = answered(count if since is None else [before, since], "nvmlDeviceGetTotalEccErrors", row.bdf, 1, 1)
    if before is None or since is None or since <= before:
        message = f"uncorrected memory errors in its life: {count}"
        return Judgement(Status.PASS, message, count, None, "errors", (evidence,))
    message = f"uncorrected memory errors in its life: {since}, of them {since - before} {how}"
    return Judgement(Status.WARN, message, since, before, "errors", (evidence,))


def _counted_before(growth: Growth | Judgement, bdf: str) -> tuple[int | None, int | None, str]:
    """The counter at the two times of the growth, and for people how far these are apart."""
    if isinstance(growth, Judgement):
        return None, None, ""
    old, new = (row_of(snapshot.gpu_ecc, bdf) for snapshot in (growth.old, growth.new))
    if not isinstance(old, GpuEcc) or not isinstance(new, GpuEcc):
        return None, None, ""
    before, since = old.aggregate_uncorrected.total, new.aggregate_uncorrected.total
    if isinstance(before, Missing) or isinstance(since, Missing):
        return None, None, ""
    return before, since, growth.how


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
        rule="Warns where the ECC mode that is set differs from the one in use, and where ECC is off on a model that"
        " ships with it on or that has it on on a neighbour.",
        source="nvmlDeviceGetEccMode: current and pending mode; the board's numbers",
        remedy="if nobody meant it: nvidia-smi -i GPU -e 1; reboot, or reset the GPU, so that the mode comes into use",
        judge=per_gpu("gpu_memory", mode),
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
        rule="Warns where the uncorrected errors of a GPU's life grew between two readings. Their number alone passes:"
        " the counter never clears, and boards with some have been working for years.",
        source="recorded boxes in service with 4 to 7 such errors",
        remedy="stop the GPU's jobs and reset it; if errors come back, run the vendor's field diagnostic",
        judge=_aggregate,
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
