"""Rules that stop a burn-in early, and the GPU that causes it: pure functions of samples and logs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.nvml.readings import GpuThermal
from dgxcheck.facts.record import Record

Sample = Mapping[str, Any]
"""A sample of the sampler, once a second: ``at`` (monotonic), ``gpus`` (bus id to ``NvmlSampler.sample``), ``aer``."""
StopReason = Literal[
    "memory-error", "xid", "off-bus", "near-slowdown", "slowdown", "vanished", "unwatched", "no-load", "interrupted",
]  # fmt: skip
NEAR_C = 3
"""°C below the slowdown temperature at which the load ends."""
HELD_S = 10.0
"""Seconds of hardware slowdown after which the load ends."""
UNWATCHED_S = 30.0
"""Seconds without a sample, or without a GPU's temperature, after which the load ends: it would overheat unnoticed."""
FATAL_XIDS = (48, 79)
"""A double-bit ECC error; the GPU has fallen off the bus."""
BITS = {
    0x80: "power brake", 0x40: "hardware thermal slowdown", 0x8: "hardware slowdown", 0x20: "software thermal slowdown",
    0x4: "power cap",
}  # fmt: skip
"""Of ``nvmlClocksEventReasons``; drivers before R390 only set 0x8 in place of 0x40 and 0x80."""
HARDWARE = 0x80 | 0x40 | 0x8


class Stop(Record, kw_only=False):
    """Why the load ended early."""

    reason: StopReason
    gpu: str
    """Bus id of the GPU that caused it; empty if none did."""
    text: str


class SlowdownThresholds(Record):
    """Slowdown thresholds of the GPUs by bus id, in °C."""

    degrees: Mapping[str, int]
    margins: Mapping[str, int]
    """Thermal margin (T.Limit) at slowdown, for GPUs from Hopper on that report margins and no threshold."""


def limits(listed: tuple[GpuThermal, ...] | Missing) -> SlowdownThresholds:
    """The slowdown thresholds that the GPUs report (``NVML_TEMPERATURE_THRESHOLD_SLOWDOWN``)."""
    thermal = rows(listed)
    return SlowdownThresholds(
        degrees={row.bdf: row.slowdown_c for row in thermal if isinstance(row.slowdown_c, int)},
        margins={row.bdf: row.slowdown_tlimit_c for row in thermal if isinstance(row.slowdown_tlimit_c, int)},
    )


def stop_for_samples(
    first: Sample, recent: Sequence[Sample], thresholds: SlowdownThresholds, held_s: float = HELD_S
) -> Stop | None:
    """Why the last of the ``recent`` samples ends the load; ``first`` was taken before the load."""
    for bdf, now in recent[-1]["gpus"].items() if recent else ():
        before = first["gpus"].get(bdf, {})
        stop = (
            _stop_for_gpu(bdf, before, now, thresholds) or _lasting_slowdown(bdf, recent, held_s)
            or (_unwatched(bdf, recent) if has_temperature(before) else None)
        )  # fmt: skip
        if stop is not None:
            return stop
    return None


def stop_for_log(old: KernelLog | Missing, new: KernelLog | Missing, gpus: Collection[str]) -> Stop | None:
    """A new fatal Xid, or a GPU newly fallen off the bus, in the kernel log."""
    if isinstance(old, Missing) or isinstance(new, Missing):
        return None
    before = {(xid.bdf, xid.number, xid.seconds) for xid in old.xids}
    for xid in new.xids:
        if xid.number in FATAL_XIDS and xid.bdf in gpus and (xid.bdf, xid.number, xid.seconds) not in before:
            return Stop("xid", xid.bdf, f"Xid {xid.number} in the kernel log: {xid.text}")
    known_off_bus = {(lost.bdf, lost.seconds) for lost in old.off_bus}
    for lost in new.off_bus:
        if lost.bdf in gpus and (lost.bdf, lost.seconds) not in known_off_bus:
            return Stop("off-bus", lost.bdf, "the kernel log reports that the GPU has fallen off the bus")
    return None


def _stop_for_gpu(
    bdf: str, before: Mapping[str, Any], now: Mapping[str, Any], thresholds: SlowdownThresholds
) -> Stop | None:
    if now.get("lost"):
        return Stop("vanished", bdf, "the GPU stopped responding")
    if grew := grown(before, now, "dbe"):
        return Stop("memory-error", bdf, f"{grew} new uncorrected memory error{'' if grew == 1 else 's'}")
    celsius, slowdown = now.get("temperature"), thresholds.degrees.get(bdf)
    if celsius is not None and slowdown is not None:
        if celsius >= slowdown - NEAR_C:
            return Stop("near-slowdown", bdf, f"{celsius:g} °C, slowdown at {slowdown} °C")
        return None
    margin, least = now.get("margin"), thresholds.margins.get(bdf)
    if margin is not None and least is not None and margin - least <= NEAR_C:
        return Stop("near-slowdown", bdf, f"margin {margin:g} °C, slowdown at a margin of {least} °C")
    return None


def has_temperature(row: Mapping[str, Any]) -> bool:
    """Does a sample of a GPU tell how far from its slowdown it is? A sensor that does not work reads 0 or less."""
    return row.get("margin") is not None or (row.get("temperature") or 0) > 0


def _unwatched(bdf: str, recent: Sequence[Sample]) -> Stop | None:
    """Has the GPU told no temperature for ``UNWATCHED_S``?"""
    for sample in reversed(recent):
        if has_temperature(sample["gpus"].get(bdf, {})):
            return None
        if recent[-1]["at"] - sample["at"] >= UNWATCHED_S:
            return Stop("unwatched", bdf, f"no temperature for {UNWATCHED_S:g} s")
    return None


def _lasting_slowdown(bdf: str, recent: Sequence[Sample], held_s: float) -> Stop | None:
    """Was a hardware slowdown active in every sample of the last ``held_s`` seconds?"""
    last, since, bits = recent[-1]["at"], None, 0
    for sample in reversed(recent):
        if not (mask := int(sample["gpus"].get(bdf, {}).get("reasons") or 0) & HARDWARE):
            break
        since, bits = sample["at"], bits or mask
    if since is None or last - since < held_s:
        return None
    return Stop("slowdown", bdf, f"{name_of(bits)} for {last - since:.0f} s")


def name_of(mask: int) -> str:
    """Name of the most specific bit."""
    return next((name for bit, name in BITS.items() if mask & bit), "no slowdown")


def grown(before: Mapping[str, Any], now: Mapping[str, Any], counter: str) -> int | None:
    """By how much a counter of a GPU grew; None if it is unknown or fell."""
    old, new = before.get(counter), now.get(counter)
    return int(new - old) if old is not None and new is not None and new >= old else None
