"""Are the GPUs of one model alike within a box?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dgxcheck.checks.engine.box import HOST, Box, gpu_unavailable, row_of
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.siblings import family, told
from dgxcheck.checks.gpu import clocks, ecc, limits
from dgxcheck.facts.gpu import GpuMemory, GpuModes, Nvml
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]
Value = int | str | Missing
MIB = 1 << 20


class _Feature(Record, kw_only=False):
    """One thing that is compared."""

    name: str
    unit: str
    function: str
    args: tuple[int, ...]
    facts: str
    value: Callable[[Any], Value]
    judged: Callable[[Box, Any], Judgement | Missing] | None = None
    """The rule of another check on the same thing: where it speaks of a GPU, this one does not."""


FEATURES = (
    _Feature("memory", "MiB", "nvmlDeviceGetMemoryInfo", (), "gpu_memory", lambda row: _mib(row.total)),
    _Feature("ECC mode", "", "nvmlDeviceGetEccMode", (), "gpu_memory", lambda row: row.ecc, ecc.mode),
    _Feature("VBIOS", "", "nvmlDeviceGetVbiosVersion", (), "gpu", lambda row: row.vbios),
    _Feature("InfoROM image", "", "nvmlDeviceGetInforomImageVersion", (), "gpu_board", lambda row: row.inforom_image),
    _Feature("power limit", "W", "nvmlDeviceGetEnforcedPowerLimit", (), "gpu_power",
            lambda row: _watts(row.enforced_limit_mw), limits.power_limit),
    _Feature("application graphics clock", "MHz", "nvmlDeviceGetApplicationsClock", (0,), "gpu_clocks",
            lambda row: row.application.graphics, clocks.application),
    _Feature("application memory clock", "MHz", "nvmlDeviceGetApplicationsClock", (2,), "gpu_clocks",
            lambda row: row.application.memory, clocks.application),
    _Feature("default graphics clock", "MHz", "nvmlDeviceGetDefaultApplicationsClock", (0,), "gpu_clocks",
            lambda row: row.default_application.graphics),
    _Feature("default memory clock", "MHz", "nvmlDeviceGetDefaultApplicationsClock", (2,), "gpu_clocks",
            lambda row: row.default_application.memory),
    _Feature("highest graphics clock", "MHz", "nvmlDeviceGetMaxClockInfo", (0,), "gpu_clocks",
            lambda row: row.max.graphics, clocks.highest),
    _Feature("highest memory clock", "MHz", "nvmlDeviceGetMaxClockInfo", (2,), "gpu_clocks",
            lambda row: row.max.memory, clocks.highest),
)  # fmt: skip


def _mib(total: int | Missing) -> Value:
    return total if isinstance(total, Missing) else round(total / MIB)


def _watts(milliwatts: int | Missing) -> Value:
    return milliwatts if isinstance(milliwatts, Missing) else milliwatts // 1000


def _uniform(box: Box) -> Judged:
    alike: dict[str, list[str]] = {}
    odd: dict[str, list[tuple[str, Evidence]]] = {}
    split: list[tuple[str, Evidence]] = []
    for group in _families(box):
        for feature in FEATURES:
            values = _values(box, feature, group)
            usual = _usual(box, feature, values)
            for bdf, value in values.items() if len(values) > 1 else ():
                fact = answered(value, feature.function, bdf, *feature.args)
                if usual is None:
                    split.append((feature.name, fact))
                elif _same(box, feature, value, usual, bdf):
                    alike.setdefault(bdf, []).append(feature.name)
                else:
                    message = f"{feature.name} {_worded(feature, value)}, others {_worded(feature, usual)}"
                    odd.setdefault(bdf, []).append((message, fact))
    for gpu in box.gpus:
        yield (
            box.subject(gpu),
            gpu_unavailable(box, gpu) or _judged(odd.get(gpu.bdf or "", []), alike.get(gpu.bdf or "", [])),
        )
    if split:
        names = ", ".join(dict.fromkeys(name for name, _ in split))
        message = f"the GPUs of one model differ, and no value is that of most: {names}"
        yield HOST, Judgement(Status.WARN, message, evidence=tuple(fact for _, fact in split))


def _judged(odd: list[tuple[str, Evidence]], alike: list[str]) -> Judgement:
    if odd:
        message = "; ".join(message for message, _ in odd)
        return Judgement(Status.WARN, message, evidence=tuple(fact for _, fact in odd))
    if not alike:
        return skip("no-reference", "no other GPU of its model tells the same things")
    return Judgement(Status.PASS, f"as the others of its model: {', '.join(alike)}")


def _families(box: Box) -> tuple[tuple[Device, ...], ...]:
    groups: dict[str, list[Device]] = {}
    for gpu in box.topology.gpus:
        if gpu.index is not None and (name := family(box, gpu)) is not None:
            groups.setdefault(name, []).append(gpu)
    return tuple(map(tuple, groups.values()))


def _values(box: Box, feature: _Feature, group: tuple[Device, ...]) -> dict[str, int | str]:
    """What each GPU has, without those that do not say, that another check names, or that must differ."""
    rows = getattr(box.snapshot, feature.facts)
    rows = rows.gpus if isinstance(rows, Nvml) else rows
    values: dict[str, int | str] = {}
    for gpu in group:
        row = row_of(rows, gpu.bdf)
        if isinstance(row, Missing | Judgement) or (feature.judged is not None and told(feature.judged(box, row))):
            continue
        value = feature.value(row)
        if not isinstance(value, Missing) and not (feature.name == "memory" and _without_ecc(box, gpu)):
            values[gpu.bdf or ""] = value
    return _of_boards(box, values) if feature.name == "VBIOS" else values


def _without_ecc(box: Box, gpu: Device) -> bool:
    """Has it more memory than the others because its ECC is off?"""
    memory = row_of(box.snapshot.gpu_memory, gpu.bdf)
    return isinstance(memory, GpuMemory) and memory.ecc is not True and told(ecc.mode(box, memory))


def _of_boards(box: Box, versions: dict[str, int | str]) -> dict[str, int | str]:
    """The two GPUs of a K80 board have a VBIOS each, and not the same: boards are compared, by what both have."""
    listed = () if isinstance(box.nvml, Missing) else box.nvml.gpus
    serials = {row.bdf: row.serial for row in listed if row.bdf in versions and isinstance(row.serial, str)}
    shared = {serial for serial, count in Counter(serials.values()).items() if count == 2}
    if not shared:
        return versions
    boards = {serial: sorted(str(versions[bdf]) for bdf, own in serials.items() if own == serial) for serial in shared}
    return {bdf: " and ".join(boards[serial]) for bdf, serial in serials.items() if serial in shared}


def _usual(box: Box, feature: _Feature, values: Mapping[str, int | str]) -> int | str | None:
    """The value that more than half of the GPUs have."""
    for candidate in values.values():
        if 2 * sum(_same(box, feature, candidate, value) for value in values.values()) > len(values):
            return candidate
    return None


def _same(box: Box, feature: _Feature, a: int | str, b: int | str, bdf: str = "") -> bool:
    """``bdf`` is the GPU that has ``a``; a display may take some of its memory."""
    if feature.name != "memory" or isinstance(a, str) or isinstance(b, str):
        return a == b
    modes = row_of(box.snapshot.gpu_modes, bdf)
    shows = isinstance(modes, GpuModes) and modes.display_active is True
    limit = box.settings.limit("gpu.uniform-display" if shows else "gpu.uniform-memory")
    return abs(a - b) <= max(a, b) * limit / 100


def _worded(feature: _Feature, value: int | str) -> str:
    word = ("off", "on")[value] if isinstance(value, bool) else value
    return f"{word} {feature.unit}".rstrip()


CHECKS = (
    Check(
        id="gpu.uniform",
        rule="Warns where a GPU differs from most others of its model in memory (by more than {gpu.uniform-memory},"
        " with a display by more than {gpu.uniform-display}), VBIOS, InfoROM image, power limit, ECC mode, application,"
        " default or highest clocks, unless another check names it for the same thing.",
        source="boxes in service with two VBIOS versions; https://github.com/NVIDIA/DCGM/issues/2",
        remedy="find out whether the odd one was replaced or set by hand; bring VBIOS and settings to the others'",
        judge=_uniform,
    ),
)
