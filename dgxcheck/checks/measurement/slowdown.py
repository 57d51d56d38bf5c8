"""The faults for which clocks are held down under load, by the reasons that NVML gives."""

from __future__ import annotations

from dgxcheck.checks.gpu.clocks import HELD_BACK, slowdown
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.gpu import GpuPower
from dgxcheck.facts.missing import Missing

POWER_CAP, CLOCK_SETTING = 0x4, 0x2
"""``nvmlClocksEventReasonSwPowerCap``, ``..ApplicationsClocksSetting``: faults only where a GPU is slower for them."""
FAULTS = {
    "power brake": Fault.POWER_BRAKE,
    "hardware thermal slowdown": Fault.THERMAL_SLOWDOWN,
    "hardware slowdown": Fault.HARDWARE_SLOWDOWN,
    "software thermal slowdown": Fault.THERMAL_SLOWDOWN,
}
"""By name of the reason, the one that says most first: 0x8 is set along with the others."""


def held_back(mask: int, power: GpuPower | Missing, can_lock: bool) -> tuple[str, FaultKind] | None:
    """What holds the clocks down, in words, and its fault; None where nothing does.

    ``power``: the GPU's. A power limit is a setting to blame only where it is below its default: a GPU that reaches the
    default limit at lower clocks than its siblings needs more power than they do. ``can_lock``: from Volta on.
    """
    bit = slowdown(mask)
    if bit:
        return HELD_BACK[bit], FAULTS[HELD_BACK[bit]]
    if mask & POWER_CAP:
        if not isinstance(power, Missing) and _is_lowered(power):
            return "lowered power limit reached", Fault.POWER_CAPPED
        return "power limit reached, which was not lowered", Fault.POWER_REACHED
    setting = "application or locked clocks" if can_lock else "application clocks"
    return (setting, Fault.CLOCKS_LOWERED) if mask & CLOCK_SETTING else None


def _is_lowered(power: GpuPower) -> bool:
    limit, default = power.enforced_limit_mw, power.default_limit_mw
    return isinstance(limit, int) and isinstance(default, int) and limit < default
