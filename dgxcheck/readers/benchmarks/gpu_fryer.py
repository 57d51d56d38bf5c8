"""gpu-fryer: how fast each GPU computed, and what held its clocks down (https://github.com/huggingface/gpu-fryer)."""

from __future__ import annotations

import re

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.typical import median
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import Reports
from dgxcheck.readers.values import bounded, gpu

TOOL = "gpu-fryer"
SLOW = 0.85
"""Of the median of the other GPUs; the tool itself takes 90 % of the fastest."""
_RATE = re.compile(r"GPU #(?P<gpu>\d{1,3}): {1,4}(?P<rate>\d{1,9}(?:\.\d{1,3})?) Gflops/s \(min: .{1,120}\)")
_THROTTLING = re.compile(
    r"Throttling HW: (?P<hw>true|false), Thermal SW: (?P<sw>true|false), Thermal HW: (?P<hot>true|false)"
)
_CHATTER = re.compile(
    r"Temperature: .{1,80}|All GPUs seem healthy|Detected \d{1,3} GPUs?.{0,80}|Burning .{0,120}|.{0,60}Creating"
    r" random .{0,80}"
    r"|.{0,60}Matrices created.{0,40}"
)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``stated report GPU3 gpu-fryer-..``: throttled, slower than the others, or neither."""
    rates: dict[int, float] = {}
    throttled: dict[int, FaultKind | None] = {}
    understood: set[int] = set()
    chatter: set[int] = set()
    index: int | None = None
    for number, raw in enumerate(bounded(lines)):
        line = raw.strip()
        if (match := _RATE.fullmatch(line)) and (index := gpu(match["gpu"])) is not None:
            rates[index] = float(match["rate"])
        elif index is not None and (held := _THROTTLING.fullmatch(line)):
            thermal = "true" in (held["sw"], held["hot"])
            by_hardware = Fault.HARDWARE_SLOWDOWN if held["hw"] == "true" else None
            throttled[index] = Fault.THERMAL_SLOWDOWN if thermal else by_hardware
        else:
            chatter |= {number} if _CHATTER.fullmatch(line) else set()
            continue
        understood.add(number)
    if not rates:
        return ()
    reports = Reports(TOOL)
    for index, rate in rates.items():
        others = [value for other, value in rates.items() if other != index]
        _judge(reports, f"GPU{index}", rate, others, throttled.get(index))
    return (Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(understood | chatter)),)


def _judge(reports: Reports, subject: str, rate: float, others: list[float], fault: FaultKind | None) -> None:
    if fault:
        reports.add(subject, "throttling", "warn", fault, "its clocks were held down under load")
    elif len(others) > 1 and rate < SLOW * median(others):
        text = f"{rate:.0f} Gflop/s, median of the other GPUs {median(others):.0f} Gflop/s"
        reports.add(subject, "rate", "warn", Fault.SLOW, text)
    else:
        reports.add(subject, "rate", "pass")
