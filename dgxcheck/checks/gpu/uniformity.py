"""Are GPUs of the same model alike within a machine?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dgxcheck.checks.engine.blame import component_of
from dgxcheck.checks.engine.box import HOST, Box, gpu_unavailable, row_of
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.per_gpu import ruled
from dgxcheck.checks.engine.siblings import has_problem, model_family
from dgxcheck.checks.gpu import clocks, ecc, limits
from dgxcheck.components.component import Component
from dgxcheck.facts.gpu import GpuMemory, GpuModes, Nvml
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]
Value = int | str | Missing
MIB = 1 << 20


class _Feature(Record, kw_only=False):
    """One feature that is compared."""

    name: str
    unit: str
    function: str
    args: tuple[int, ...]
    facts: str
    value: Callable[[Any], Value]
    rule: Callable[[Box, Any], Judgement | Missing] | None = None
    """The rule of another check on the same feature: a GPU that it reports is not reported here."""


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
    same: dict[str, list[str]] = {}
    odd: dict[str, list[tuple[str, Evidence]]] = {}
    split: list[tuple[str, Evidence]] = []
    for group in _models(box):
        for feature in FEATURES:
            values = _values(box, feature, group)
            usual = _usual(box, feature, values)
            for bdf, value in values.items() if len(values) > 1 else ():
                evidence = answered(value, feature.function, bdf, *feature.args)
                if usual is None:
                    split.append((feature.name, evidence))
                elif _equal(box, feature, value, usual, bdf):
                    same.setdefault(bdf, []).append(feature.name)
                else:
                    message = f"{feature.name} {_text(feature, value)}, others {_text(feature, usual)}"
                    odd.setdefault(bdf, []).append((message, evidence))
    for gpu in box.gpus:
        bdf = gpu.bdf or ""
        yield box.subject(gpu), gpu_unavailable(box, gpu) or _judgement(odd.get(bdf, []), same.get(bdf, []))
    if split:
        names = ", ".join(dict.fromkeys(name for name, _ in split))
        message = f"GPUs of one model differ, without a majority, in {names}"
        yield HOST, Judgement(Status.WARN, message, evidence=tuple(fact for _, fact in split), fault=Fault.UNEQUAL)


def _judgement(odd: list[tuple[str, Evidence]], same: list[str]) -> Judgement:
    if odd:
        message = "; ".join(message for message, _ in odd)
        return Judgement(Status.WARN, message, evidence=tuple(fact for _, fact in odd), fault=Fault.UNEQUAL)
    if not same:
        return skip("no-reference", "no other GPU of its model reports comparable values")
    return Judgement(Status.PASS, f"same as other GPUs of its model: {', '.join(same)}")


def _models(box: Box) -> tuple[tuple[Device, ...], ...]:
    """The GPUs that NVML lists, grouped by model."""
    groups: dict[str, list[Device]] = {}
    for gpu in box.topology.gpus:
        if gpu.index is not None and (name := model_family(box, gpu)) is not None:
            groups.setdefault(name, []).append(gpu)
    return tuple(map(tuple, groups.values()))


def _values(box: Box, feature: _Feature, group: tuple[Device, ...]) -> dict[str, int | str]:
    """By bdf the values of a feature, without those that are missing, reported by another check or must differ."""
    rows = getattr(box.snapshot, feature.facts)
    rows = rows.gpus if isinstance(rows, Nvml) else rows
    values: dict[str, int | str] = {}
    for gpu in group:
        row = row_of(rows, gpu.bdf)
        if isinstance(row, Missing) or (feature.rule is not None and has_problem(ruled(feature.rule, box, row))):
            continue
        value = feature.value(row)
        if not isinstance(value, Missing) and not (feature.name == "memory" and _without_ecc(box, gpu)):
            values[gpu.bdf or ""] = value
    return _by_board(box, values) if feature.name == "VBIOS" else values


def _without_ecc(box: Box, gpu: Device) -> bool:
    """Does the GPU have more memory than the others because its ECC is off?"""
    memory = box.gpu(gpu).memory
    return isinstance(memory, GpuMemory) and memory.ecc is not True and has_problem(ruled(ecc.mode, box, memory))


def _by_board(box: Box, versions: dict[str, int | str]) -> dict[str, int | str]:
    """The GPUs of a K80 board have different VBIOS versions: boards are compared, by the versions of both GPUs."""
    listed = () if isinstance(box.nvml, Missing) else box.nvml.gpus
    serials = {row.bdf: row.serial for row in listed if row.bdf in versions and isinstance(row.serial, str)}
    shared = {serial for serial, count in Counter(serials.values()).items() if count == 2}
    if not shared:
        return versions
    boards = {serial: sorted(str(versions[bdf]) for bdf, own in serials.items() if own == serial) for serial in shared}
    return {bdf: " and ".join(boards[serial]) for bdf, serial in serials.items() if serial in shared}


def _usual(box: Box, feature: _Feature, values: Mapping[str, int | str]) -> int | str | None:
    """The value that more than half of the GPUs have; None if there is none."""
    for candidate in values.values():
        if 2 * sum(_equal(box, feature, candidate, value) for value in values.values()) > len(values):
            return candidate
    return None


def _equal(box: Box, feature: _Feature, a: int | str, b: int | str, bdf: str = "") -> bool:
    """``bdf``: the GPU that has ``a``; a display may use some of its memory."""
    if feature.name != "memory" or isinstance(a, str) or isinstance(b, str):
        return a == b
    modes = box.gpu(bdf).modes
    display = isinstance(modes, GpuModes) and modes.display_active is True
    limit = box.settings.limit("gpu.uniform-display" if display else "gpu.uniform-memory")
    return abs(a - b) <= max(a, b) * limit / 100


def _text(feature: _Feature, value: int | str) -> str:
    return f"{('off', 'on')[value] if isinstance(value, bool) else value} {feature.unit}".rstrip()


def _blame(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    part = "VBIOS and settings of GPUs" if subject.kind == "host" else "versions and settings"
    yield component_of(box, subject, part)


CHECKS = (
    Check(
        id="gpu.uniform",
        rule="Warns if a GPU differs from most others of its model in memory (by more than {gpu.uniform-memory}, with a"
        " display by more than {gpu.uniform-display}), VBIOS, InfoROM image, power limit, ECC mode, application,"
        " default or highest clocks, unless another check reports it for the same reason.",
        source="machines in service with two VBIOS versions; https://github.com/NVIDIA/DCGM/issues/2",
        remedy="find out whether this GPU was replaced or configured by hand; bring its VBIOS and settings to those of"
        " the others",
        judge=_uniform,
        blames=_blame,
    ),
)
