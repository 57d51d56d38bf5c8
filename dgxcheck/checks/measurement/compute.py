"""Do GPUs of one model compute equally fast, and if not, what holds down the clocks of the slow one?"""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.expected import siblings
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, counted, skip, unless
from dgxcheck.checks.gpu.beside_siblings import POWER_CAP
from dgxcheck.checks.gpu.clocks import HELD_BACK, can_lock_clocks, slowdown
from dgxcheck.checks.measurement.comparisons import FEWEST, gpus_alike
from dgxcheck.checks.measurement.expectations import far_below, quantity
from dgxcheck.checks.measurement.failures import without_figure
from dgxcheck.checks.measurement.host_copies import per_gpu
from dgxcheck.checks.measurement.lookup import Figures, device, evidence, number
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.ids import PASSED_THROUGH
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import Missing, need, or_none
from dgxcheck.facts.nvml.readings import GpuPower
from dgxcheck.facts.typical import median
from dgxcheck.topology.model import Device

CLOCK_SETTING = 0x2
"""``nvmlClocksEventReasonApplicationsClocksSetting``: as the power cap a fault only where a GPU is slower for it."""


def held_back(mask: int, power: GpuPower | Missing, can_lock: bool) -> tuple[str, FaultKind] | None:
    """What holds the clocks down, in words, and its fault; None where nothing does.

    ``power``: the GPU's. A power limit is a setting to blame only where it is below its default: a GPU that reaches the
    default limit at lower clocks than its siblings needs more power than they do. ``can_lock``: from Volta on.
    """
    if bit := slowdown(mask):
        return HELD_BACK[bit]
    if mask & POWER_CAP:
        limit = power if isinstance(power, Missing) else power.enforced_limit_mw
        default = power if isinstance(power, Missing) else power.default_limit_mw
        if isinstance(limit, Missing) or isinstance(default, Missing):
            return "power limit reached", Fault.POWER_REACHED
        if limit < default:
            return "lowered power limit reached", Fault.POWER_CAPPED
        return "power limit reached, which was not lowered", Fault.POWER_REACHED
    setting = "application or locked clocks" if can_lock else "application clocks"
    return (setting, Fault.CLOCKS_LOWERED) if mask & CLOCK_SETTING else None


ID = "measure.compute"
_UNIT = "TFLOP/s"


def judge_compute(box: Box, figures: Figures, row: Measurement) -> Judgement:
    """One GPU's multiplications and additions against those of its siblings."""
    unless(without_figure(box, row))
    if row.number is None:
        return skip("not-recorded", "no figure", evidence(row))
    if wrong := number(row.more.get("wrong")):
        message = f"multiprocessors work out different results: {counted(int(wrong), 'wrong word')}"
        return Judgement(Status.FAIL, message, wrong, 0, "words", (evidence(row),), fault=Fault.WRONG_DATA)
    alike = [other for other in gpus_alike(box, figures, row) if other.number and other.how == row.how != "imported"]
    clock = _clock(row)
    message = f"{quantity(row.number, row.unit)}{'' if clock is None else f' at {clock:g} MHz'}"
    if (far := _far_below_peak(box, row)) is not None:
        share, peak = far
        reason, fault = _held_back(box, figures, row)
        message = f"{message}, less than {share:g} % of the {quantity(peak, row.unit)} of the GPU model{reason}"
        return Judgement(Status.FAIL, message, row.number, peak, row.unit, (evidence(row),), fault=fault)
    if len(alike) < FEWEST:
        return _by_peak(box, figures, row, message)
    middle = median(other.number or 0 for other in alike)
    least = 1 - box.settings.limit("measure.compute") / 100
    message = f"{message}, median {quantity(middle, row.unit)}; GPUs of this model"
    facts = (evidence(row),)
    if row.number >= middle * least:
        return Judgement(Status.PASS, message, row.number, round(middle, 3), row.unit, facts)
    reason, fault = _reason(box, figures, row, alike, least)
    return Judgement(Status.WARN, f"{message}{reason}", row.number, round(middle, 3), row.unit, facts, fault=fault)


def _by_peak(box: Box, figures: Figures, row: Measurement, message: str) -> Judgement:
    """A GPU with no other to compare it with: against the peak of its model at the clock that it had."""
    gpu, clock = device(box, row.a), _clock(row)
    peak, highest = (box.board_number(gpu, key) for key in ("peak_fp32", "max_graphics_clock")) if gpu else (None, None)
    board = box.gpu(row.a).board
    shared = guest(box) is not None and (isinstance(board, Missing) or board.virtualization != PASSED_THROUGH)
    known = row.unit == _UNIT and row.how != "simulated" and not shared
    if not known or peak is None or highest is None or clock is None:
        return skip("no-reference", f"{message}, no GPU of its model to compare it with", evidence(row))
    expected = peak.value * clock / highest.value
    value = row.number or 0.0
    message = f"{message}, {100 * value / expected:.0f} % of the peak of the GPU model at this clock"
    if value >= expected * box.settings.limit("measure.derived") / 100:
        return Judgement(Status.PASS, message, value, round(expected, 3), row.unit, (evidence(row),))
    reason, fault = _held_back(box, figures, row)
    facts = (evidence(row),)
    return Judgement(Status.WARN, f"{message}{reason}", value, round(expected, 3), row.unit, facts, fault=fault)


def _far_below_peak(box: Box, row: Measurement) -> tuple[float, float] | None:
    """The share in percent and the peak of the GPU's model that the figure does not reach; None where it does."""
    gpu = device(box, row.a)
    peak = None if gpu is None else box.board_number(gpu, "peak_fp32")
    least = far_below(box, row) / (2 if row.how == "imported" else 1)  # boards of 70 W are slow for hours
    if peak is None or row.unit != _UNIT or (row.number or 0) >= peak.value * least / 100:
        return None
    return least, float(peak.value)


def _reason(
    box: Box, figures: Figures, row: Measurement, alike: list[Measurement], least: float
) -> tuple[str, FaultKind]:
    """What holds its clocks down, by the reasons that NVML gave under load; else whether lower clocks explain it."""
    own, clocks = _clock(row), [clock for other in alike if (clock := _clock(other)) is not None]
    if own is None or len(clocks) < len(alike):
        return "", Fault.SLOW
    per_mhz = [(other.number or 0) / clock for other, clock in zip(alike, clocks, strict=True)]
    if (row.number or 0) / own < median(per_mhz) * least:
        return " at equal clocks", Fault.SLOW
    reason, fault = _held_back(box, figures, row)
    return f" at {median(clocks):g} MHz{reason}", fault


def _held_back(box: Box, figures: Figures, row: Measurement) -> tuple[str, FaultKind]:
    load = figures.get("under-load", row.a)
    mask = load.more.get("reasons") if load is not None else None
    known = mask if type(mask) is int else 0
    held = held_back(known, box.gpu(row.a).power, can_lock_clocks(box, row.a)) or _ceiling(box, row)
    return ("", Fault.SLOW) if held is None else (f"; clocks held down: {held[0]}", held[1])


def _ceiling(box: Box, row: Measurement) -> tuple[str, FaultKind] | None:
    """The GPU's highest clock, where it is below that of its siblings: its VBIOS sets it, no nvidia-smi command."""
    gpu = device(box, row.a)
    if gpu is None:
        return None
    own, others = _highest(box, gpu), [clock for other in siblings(box, gpu) if (clock := _highest(box, other))]
    if own is None or len(others) < FEWEST or own >= median(others):
        return None
    return f"highest clock {own} MHz, others {median(others):g} MHz", Fault.CLOCKS_LIMITED


@or_none
def _highest(box: Box, gpu: Device) -> int | None:
    return need(need(box.gpu(gpu).clocks).max.sm)


def _clock(row: Measurement) -> float | None:
    """MHz"""
    clock = number(row.more.get("clock_mhz"))
    return clock if clock is not None and 0 < clock < 1e6 else None


def judge_throughput(box: Box) -> Judged:
    """Each GPU's."""
    yield from per_gpu(box, ID, {"compute": judge_compute}, "no GPU was put under compute load")
