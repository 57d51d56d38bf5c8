"""Modes of GPUs (ECC, MIG, compute), and their memory errors."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, part, per_gpu, remedy_of, setting_of_all
from dgxcheck.checks.engine.expected import siblings
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, answered, counted, judged
from dgxcheck.checks.engine.growth import HOUR_S, counter_growth, rate
from dgxcheck.components.device_facts import GpuView
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import COMPUTE_MODES
from dgxcheck.facts.missing import Gap, Missing, need, or_none
from dgxcheck.facts.nvml.gpu import GpuModes
from dgxcheck.facts.nvml.readings import GpuEcc, GpuMemory


def mode(box: Box, memory: GpuMemory) -> Judgement:
    """Warns if the pending ECC mode differs from the one in use, and if ECC is off on a model that ships with ECC on or
    that has it on in another GPU of this machine.

    Source: nvmlDeviceGetEccMode: current and pending mode; the board's numbers

    The ECC mode in use against the pending one, the model's and that of the other GPUs of the model.
    """
    current, pending = need(memory.ecc), memory.ecc_pending
    alone = isinstance(pending, Missing) and pending.gap is Gap.UNRECORDED  # a table shows the mode in use alone
    pending = current if alone else need(pending)
    now, later = (("off", "on")[enabled] for enabled in (current, pending))
    evidence = (answered([int(current), None if alone else int(pending)], "nvmlDeviceGetEccMode", memory.bdf),)
    if now != later:
        message = f"ECC is {now}, {later} after the next GPU reset or reboot"
        remedy = remedy_of("ecc.mode", "pending").format(int(current))
        return judged(Fault.ECC_PENDING, message, now, later, evidence=evidence, warns=True, remedy=remedy)
    if reason := "" if current else _expected_on(box, memory.bdf):
        return judged(Fault.ECC_OFF, f"ECC is off: {reason}", now, "on", evidence=evidence, warns=True)
    return Judgement(Status.PASS, f"ECC is {now}", now, now, evidence=evidence)


def _expected_on(box: Box, bdf: str) -> str:
    """Why ECC is expected to be on; empty if it is not."""
    gpu = box.at(bdf)
    board = box.board(gpu)
    if board is not None and (default := board.numbers.get("ecc")) is not None and default.value:
        return f"{board.name} ships with ECC on"
    views = (box.gpu(other).memory for other in siblings(box, gpu))
    enabled = sum(isinstance(memory, GpuMemory) and memory.ecc is True for memory in views)
    return f"on in {counted(enabled, 'other GPU')} of the model" if enabled else ""


def _volatile(box: Box, ecc: GpuEcc) -> Judgement:
    """Fails from 1 uncorrected (double-bit) memory error since the driver was loaded.

    Source: DCGM diag, Azure and Meta node checks fail on the first

    At the second reading, where there is one: an error that was counted meanwhile is as bad as an earlier one.
    """
    count, later = need(ecc.volatile_uncorrected.total), latest(box, ecc).volatile_uncorrected.total
    count = max(count, later) if isinstance(later, int) else count
    evidence = (answered(count, "nvmlDeviceGetTotalEccErrors", ecc.bdf, 1, 0),)
    message = f"{counted(count, 'uncorrected memory error')} since driver load"
    return judged(Fault.ECC_UNCORRECTED, message, count, 0, "errors", evidence, fails=count > 0)


def _aggregate(box: Box, ecc: GpuEcc) -> Judgement:
    """Warns if the lifetime counter of uncorrected errors grew between two readings. A non-zero total alone is not a
    fault: the counter never clears, and boards with some errors have been in service for years.

    Source: recorded machines in service with 4 to 7 such errors
    """
    count = need(ecc.aggregate_uncorrected.total)
    old, new, how = _aggregate_growth(box, ecc.bdf) or (count, count, "")
    evidence = (answered([old, new] if how else count, "nvmlDeviceGetTotalEccErrors", ecc.bdf, 1, 1),)
    if new <= old:
        message = counted(count, "lifetime uncorrected memory error")
        return Judgement(Status.PASS, message, count, None, "errors", evidence)
    message = f"{counted(new, 'lifetime uncorrected memory error')}, {new - old} {how}"
    return Judgement(Status.WARN, message, new, old, "errors", evidence, fault=Fault.ECC_UNCORRECTED)


@or_none
def _aggregate_growth(box: Box, bdf: str) -> tuple[int, int, str] | None:
    """The counter in both readings, and for people how far these are apart; None without two readings."""
    if isinstance(box.growth, Judgement):
        return None
    records = (need(GpuView(snapshot, bdf).ecc) for snapshot in (box.growth.old, box.growth.new))
    old, new = (need(record.aggregate_uncorrected.total) for record in records)
    return old, new, box.growth.how


def earlier(box: Box, bdf: str) -> GpuEcc | None:
    """One GPU's counters in the first of two readings; None without two."""
    record = None if isinstance(box.growth, Judgement) else GpuView(box.growth.old, bdf).ecc
    return record if isinstance(record, GpuEcc) else None


def latest(box: Box, ecc: GpuEcc) -> GpuEcc:
    """One GPU's counters in the second of two readings; the only ones without two."""
    record = None if isinstance(box.growth, Judgement) else GpuView(box.growth.new, ecc.bdf).ecc
    return record if isinstance(record, GpuEcc) else ecc


def _corrected(box: Box, ecc: GpuEcc) -> Judgement:
    """Fails above {ecc.corrected} since the driver was loaded; warns if more than {ecc.corrected-rate} are new between
    two readings. Fewer corrected errors are no fault.

    Source: Meta GCM fails above 50 million; no vendor gives a rate
    """
    ecc = latest(box, ecc)
    count = need(ecc.volatile_corrected.total)
    evidence = (answered(count, "nvmlDeviceGetTotalEccErrors", ecc.bdf, 0, 0),)
    most, limit = box.settings.limit("ecc.corrected") * 1e6, box.settings.limit("ecc.corrected-rate")
    message = f"{counted(count, 'corrected memory error')} since driver load"
    if count > most:
        return Judgement(Status.FAIL, message, count, most, "errors", evidence, fault=Fault.ECC_FLOOD)
    old, growth = earlier(box, ecc.bdf), box.growth
    new = None if old is None else counter_growth(old.volatile_corrected.total, count)
    if isinstance(growth, Judgement) or not isinstance(new, int) or rate(new, growth, HOUR_S) <= limit:
        return Judgement(Status.PASS, message, count, most, "errors", evidence)
    message = f"{message}, {new} {growth.how} (limit {limit:g} an hour)"
    return Judgement(Status.WARN, message, new, limit, "errors", evidence, fault=Fault.ECC_CORRECTED)


def _sram(_: Box, ecc: GpuEcc) -> Judgement:
    """From Ampere on: fails if the driver reports that uncorrected SRAM errors exceed NVIDIA's threshold: more than 4
    (parity) or 2 (SECDED) different ones in one bank.

    Source: nvmlDeviceGetSramEccErrorStatus, bThresholdExceeded;
    https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html
    """
    exceeded = need(ecc.sram_exceeded)
    evidence = (answered(int(exceeded), "nvmlDeviceGetSramEccErrorStatus", ecc.bdf),)
    counts = {
        "parity": ecc.sram.parity, "SEC-DED": ecc.sram.secded, "in L2": ecc.sram.l2, "in SMs": ecc.sram.sm,
        "in PCIe": ecc.sram.pcie, "in microcontrollers": ecc.sram.mcu, "elsewhere": ecc.sram.other,
    }  # fmt: skip
    details = ", ".join(f"{count} {where}" for where, count in counts.items() if isinstance(count, int) and count)
    message = f"RMA threshold for uncorrected SRAM errors {'' if exceeded else 'not '}reached"
    message += f" ({details})" if details else ""
    return judged(Fault.SRAM_EXCEEDED, message, exceeded, False, evidence=evidence, fails=exceeded)


def _compute_mode(_: Box, modes: GpuModes) -> Judgement | Missing:
    """Warns if the compute mode is prohibited. Exclusive modes are a site's choice.

    Source: nvmlComputeMode_t
    """
    number = need(modes.compute_mode)
    evidence = (answered(number, "nvmlDeviceGetComputeMode", modes.bdf),)
    if number not in range(len(COMPUTE_MODES)):
        return Missing(Gap.GARBLED, evidence[0].where, f"unknown compute mode {number}")
    mode = COMPUTE_MODES[number]
    prohibited = mode == "prohibited"
    return judged(Fault.COMPUTE_PROHIBITED, f"compute mode: {mode}", mode, evidence=evidence, warns=prohibited)


def _mig(box: Box, modes: GpuModes) -> Judgement:
    """Warns if a change of the MIG mode waits for a GPU reset, or the mode is on and no GPU instance exists. MIG itself
    is a site's choice.

    Source: nvmlDeviceGetMigMode: current and pending mode; /proc/driver/nvidia/capabilities
    """
    current, pending = need(modes.mig), need(modes.mig_pending)
    now, later = (("off", "on")[enabled] for enabled in (current, pending))
    evidence = (answered([int(current), int(pending)], "nvmlDeviceGetMigMode", modes.bdf),)
    if current and pending and modes.gpu_instances == 0:
        listed = Evidence(f"/proc/driver/nvidia/capabilities/gpu{need(box.gpu(modes.bdf).listed).minor}/mig", [])
        message = "MIG mode is on, and no GPU instance exists"
        return judged(Fault.MIG_EMPTY, message, 0, 1, evidence=(*evidence, listed), warns=True)
    message = f"MIG mode is {now}" + (f", {later} after the next GPU reset" if now != later else "")
    return judged(Fault.MIG_PENDING, message, now, later, evidence=evidence, warns=now != later)


CHECKS = (
    Check("gpu.compute-mode", per_gpu("gpu_modes", _compute_mode), part("compute mode"),
        setting_of_all("compute mode")),
    Check("gpu.mig", per_gpu("gpu_modes", _mig), part("MIG mode"), setting_of_all("MIG mode")),
    Check("ecc.mode", per_gpu("gpu_memory", mode), part("ECC mode"), setting_of_all("ECC mode")),
    Check("ecc.volatile", per_gpu("gpu_ecc", _volatile), part("memory")),
    Check("ecc.aggregate", per_gpu("gpu_ecc", _aggregate), part("memory")),
    Check("ecc.corrected", per_gpu("gpu_ecc", _corrected), part("memory")),
    Check("ecc.sram", per_gpu("gpu_ecc", _sram), part("memory")),
)  # fmt: skip
