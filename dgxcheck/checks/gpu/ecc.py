"""Memory errors of GPUs, and the pages and rows that are out of use because of them."""

from __future__ import annotations

from dgxcheck.checks.engine.blame import part, setting_of_all
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Judgement, Status, answered
from dgxcheck.checks.engine.per_gpu import need, per_gpu
from dgxcheck.checks.engine.siblings import siblings
from dgxcheck.checks.engine.wording import counted
from dgxcheck.components.gpu_view import GpuView
from dgxcheck.facts.gpu import GpuEcc, GpuMemory
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.facts.record import replace

_RETIREMENT = "https://docs.nvidia.com/deploy/dynamic-page-retirement/index.html"
_REMAPPING = "https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html"
_FIELD_DIAGNOSTIC = "run the vendor's field diagnostic (or dcgmi diag -r 3); if it fails, ask for a replacement"
_RESET = "end the GPU's jobs and reset it (nvidia-smi -r -i BDF; GPUs before Ampere that NVLink joins: nvidia-smi -r)"


def mode(box: Box, memory: GpuMemory) -> Judgement:
    """The ECC mode in use against the pending one, the model's and that of the other GPUs of the model."""
    current, pending = need(memory.ecc), need(memory.ecc_pending)
    now, later = (("off", "on")[enabled] for enabled in (current, pending))
    evidence = (answered([int(current), int(pending)], "nvmlDeviceGetEccMode", memory.bdf),)
    if now != later:
        message = f"ECC is {now}, {later} after the next GPU reset or reboot"
        remedy = (
            f"set the current mode again (nvidia-smi -i BDF -e {int(current)}), which needs no reset; or end the GPU's"
            " jobs and reset it, or reboot"
        )
        fault = Fault.ECC_PENDING
        return Judgement(Status.WARN, message, now, later, evidence=evidence, fault=fault, remedy=remedy)
    reason = "" if current else _expected_on(box, memory.bdf)
    if reason:
        message = f"ECC is off: {reason}"
        return Judgement(Status.WARN, message, now, "on", evidence=evidence, fault=Fault.ECC_OFF)
    return Judgement(Status.PASS, f"ECC is {now}", now, now, evidence=evidence)


def _expected_on(box: Box, bdf: str) -> str:
    """Why ECC is expected to be on; empty if it is not."""
    gpu = next(gpu for gpu in box.topology.gpus if gpu.bdf == bdf)
    board = box.board(gpu)
    default = board.numbers.get("ecc") if board is not None else None
    if board is not None and default is not None and default.value:
        return f"{board.name} ships with ECC on"
    views = (box.gpu(other).memory for other in siblings(box, gpu))
    enabled = sum(isinstance(memory, GpuMemory) and memory.ecc is True for memory in views)
    return f"on in {counted(enabled, 'other GPU')} of the model" if enabled else ""


def _volatile(_: Box, ecc: GpuEcc) -> Judgement:
    count = need(ecc.volatile_uncorrected.total)
    evidence = (answered(count, "nvmlDeviceGetTotalEccErrors", ecc.bdf, 1, 0),)
    message = f"{counted(count, 'uncorrected memory error')} since the driver was loaded"
    status, fault = (Status.FAIL, Fault.ECC_UNCORRECTED) if count else (Status.PASS, None)
    return Judgement(status, message, count, 0, "errors", evidence, fault=fault)


def _aggregate(box: Box, ecc: GpuEcc) -> Judgement:
    count = need(ecc.aggregate_uncorrected.total)
    old, new, how = _aggregate_growth(box, ecc.bdf) or (count, count, "")
    evidence = (answered([old, new] if how else count, "nvmlDeviceGetTotalEccErrors", ecc.bdf, 1, 1),)
    if new <= old:
        message = counted(count, "lifetime uncorrected memory error")
        return Judgement(Status.PASS, message, count, None, "errors", evidence)
    message = f"{counted(new, 'lifetime uncorrected memory error')}, {new - old} {how}"
    return Judgement(Status.WARN, message, new, old, "errors", evidence, fault=Fault.ECC_UNCORRECTED)


def _aggregate_growth(box: Box, bdf: str) -> tuple[int, int, str] | None:
    """The counter in both readings, and for people how far these are apart; None without two readings."""
    if isinstance(box.growth, Judgement):
        return None
    records = [GpuView(snapshot, bdf).ecc for snapshot in (box.growth.old, box.growth.new)]
    totals = [record.aggregate_uncorrected.total for record in records if isinstance(record, GpuEcc)]
    old, new = totals if len(totals) == 2 else (None, None)
    return (old, new, box.growth.how) if isinstance(old, int) and isinstance(new, int) else None


def _retired(box: Box, ecc: GpuEcc) -> Judgement:
    pages = (ecc.retired_single_bit, ecc.retired_double_bit)
    single, double = numbers = [0 if isinstance(retired, Missing) else len(retired) for retired in pages]
    count = single + double
    many, most = (box.settings.limit(f"ecc.retired-pages-{word}") for word in ("warn", "fail"))
    evidence = tuple(answered(each, "nvmlDeviceGetRetiredPages", ecc.bdf, cause) for cause, each in enumerate(numbers))
    message = f"{counted(count, 'retired page')} ({single} for single-bit, {double} for double-bit errors)"
    judgement = Judgement(Status.PASS, message, count, many, "pages", evidence)
    if count >= most:
        return replace(judgement, status=Status.FAIL, fault=Fault.PAGES_EXHAUSTED)
    if count > many:
        return replace(judgement, status=Status.WARN, fault=Fault.PAGES_MANY)
    for retired in pages:
        need(retired)
    return judgement


def _pending(_: Box, ecc: GpuEcc) -> Judgement:
    pending = need(ecc.retirement_pending)
    evidence = [answered(int(pending), "nvmlDeviceGetRetiredPagesPendingStatus", ecc.bdf)]
    if not pending:
        return Judgement(Status.PASS, "no page retirement is pending", False, False, evidence=tuple(evidence))
    status, message = Status.WARN, "a page with errors stays in use until the GPU is reset or the driver reloaded"
    errors = ecc.volatile_uncorrected.total
    if not isinstance(errors, Missing) and errors:
        status, message = Status.FAIL, f"{message}; {counted(errors, 'uncorrected error')} since the driver was loaded"
        evidence.append(answered(errors, "nvmlDeviceGetTotalEccErrors", ecc.bdf, 1, 0))
    return Judgement(status, message, True, False, evidence=tuple(evidence), fault=Fault.RETIREMENT_PENDING)


def _remap(_: Box, ecc: GpuEcc) -> Judgement:
    states = (ecc.remap_pending, ecc.remap_failed)
    values: list[Json] = [state.reason if isinstance(state, Missing) else state for state in states]
    evidence = (answered(values, "nvmlDeviceGetRemappedRows", ecc.bdf),)
    if ecc.remap_failed is True:
        message, fault = "a row remapping failed: its bank has no spare rows left", Fault.REMAP_FAILED
        return Judgement(Status.FAIL, message, evidence=evidence, fault=fault, remedy=_FIELD_DIAGNOSTIC)
    if ecc.remap_pending is True:
        message, fault = "a row remapping is pending: the row stays in use until the GPU is reset", Fault.REMAP_PENDING
        return Judgement(Status.FAIL, message, evidence=evidence, fault=fault)
    for state in states:
        need(state)
    return Judgement(Status.PASS, "no row remapping is pending, none has failed", evidence=evidence)


CHECKS = (
    Check(
        id="ecc.mode",
        rule="Warns if the pending ECC mode differs from the one in use, and if ECC is off on a model that ships with"
        " ECC on or that has it on in another GPU of this machine.",
        source="nvmlDeviceGetEccMode: current and pending mode; the board's numbers",
        remedy="if this was not intended, run nvidia-smi -i BDF -e 1, then reset the GPU or reboot to apply it",
        judge=per_gpu("gpu_memory", mode),
        blames=part("ECC mode"),
        shared=setting_of_all("ECC mode"),
    ),
    Check(
        id="ecc.volatile",
        rule="Fails from 1 uncorrected (double-bit) memory error since the driver was loaded.",
        source="DCGM diag, Azure and Meta node checks fail on the first",
        remedy=f"{_RESET}; if errors come back, {_FIELD_DIAGNOSTIC}",
        judge=per_gpu("gpu_ecc", _volatile),
        blames=part("memory"),
    ),
    Check(
        id="ecc.aggregate",
        rule="Warns if the lifetime counter of uncorrected errors grew between two readings. A non-zero total alone is"
        " not a fault: the counter never clears, and boards with some errors have been in service for years.",
        source="recorded machines in service with 4 to 7 such errors",
        remedy=f"{_RESET}; if errors come back, {_FIELD_DIAGNOSTIC}",
        judge=per_gpu("gpu_ecc", _aggregate),
        blames=part("memory"),
    ),
    Check(
        id="ecc.retired-pages",
        rule="K80 to V100: warns above {ecc.retired-pages-warn}, fails from {ecc.retired-pages-fail} retired. The table"
        " holds 64.",
        source=_RETIREMENT,
        remedy=_FIELD_DIAGNOSTIC,
        judge=per_gpu("gpu_ecc", _retired),
        blames=part("memory"),
    ),
    Check(
        id="ecc.retirement-pending",
        rule="K80 to V100: warns if a page retirement is pending; fails if there are uncorrected errors too.",
        source=_RETIREMENT,
        remedy=f"at the next drain {_RESET}, reload the driver or reboot; this alone does not justify an RMA",
        judge=per_gpu("gpu_ecc", _pending),
        blames=part("memory"),
    ),
    Check(
        id="ecc.row-remap",
        rule="From Ampere on: fails if a row remapping is pending or has failed.",
        source=_REMAPPING,
        remedy="at the next drain end the GPU's jobs and reset it: nvidia-smi -r -i BDF; this alone does not justify an"
        " RMA",
        judge=per_gpu("gpu_ecc", _remap),
        blames=part("memory"),
    ),
)
