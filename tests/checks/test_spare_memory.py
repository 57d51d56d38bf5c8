"""Retired pages, remapped rows, spare rows, SRAM and corrected errors: thresholds, gaps and two readings."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_health_checks import NVML, box, changed

from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.facts.nvml.readings import GpuEcc
from dgxcheck.facts.record import replace

V100, A100 = "0000:0a:00.0", "0000:47:00.0"
HOUR, DAY = 3600, 86400
BANKS = {"max": 640, "high": 0, "partial": 0, "low": 0, "none": 0}


def finding(machine: Box, check: str, bdf: str) -> Finding:
    (wanted,) = [each for each in CHECKS if each.id == check]
    (found,) = [each for each in run(machine, [wanted]) if each.subject.bdf == bdf]
    return found


def judged(machine: Box, check: str, bdf: str) -> tuple[str, FaultKind | None]:
    found = finding(machine, check, bdf)
    return " ".join((found.status.value, found.judgement.reason)).rstrip(), found.judgement.fault


@pytest.mark.parametrize(
    ("check", "facts", "expected"),
    [
        ("ecc.row-remap", {"RemappedRows {}": [0, 511, 0, 0]}, ("pass", None)),
        ("ecc.row-remap", {"RemappedRows {}": [0, 512, 0, 0]}, ("fail", Fault.ROWS_EXHAUSTED)),
        ("ecc.row-remap", {"RemappedRows {}": [600, 0, 0, 0]}, ("pass", None)),
        ("ecc.row-remap", {"RemappedRows {}": [0, 1, 1, 0]}, ("fail", Fault.REMAP_PENDING)),
        ("ecc.row-remap", {"RemappedRows {}": [0, 512, 1, 1]}, ("fail", Fault.REMAP_FAILED)),
        ("ecc.spare-rows", {}, ("pass", None)),
        ("ecc.spare-rows", {"RowRemapperHistogram {}": BANKS | {"partial": 3}}, ("pass", None)),
        ("ecc.spare-rows", {"RowRemapperHistogram {}": BANKS | {"low": 1}}, ("warn", Fault.ROWS_LOW)),
        ("ecc.spare-rows", {"RowRemapperHistogram {}": BANKS | {"none": 2}}, ("warn", Fault.ROWS_LOW)),
        ("ecc.spare-rows", {"RowRemapperHistogram {}": {"missing": "unsupported"}}, ("skip not-supported", None)),
        ("ecc.repair", {}, ("skip not-supported", None)),
        ("ecc.repair", {"RepairStatus {}": [0, 0]}, ("pass", None)),
        ("ecc.repair", {"RepairStatus {}": [1, 0]}, ("warn", Fault.REPAIR_PENDING)),
        ("ecc.repair", {"RepairStatus {}": [0, 1]}, ("warn", Fault.REPAIR_PENDING)),
        ("ecc.repair", {"UnrepairableMemoryFlag {}": 1}, ("fail", Fault.MEMORY_UNREPAIRABLE)),
        ("ecc.repair", {"UnrepairableMemoryFlag {}": 0, "RepairStatus {}": [0, 0]}, ("pass", None)),
        ("ecc.repair", {"UnrepairableMemoryFlag {}": 7, "RepairStatus {}": [0, 0]}, ("unknown", None)),
        ("ecc.sram", {}, ("pass", None)),
        ("ecc.sram", {"SramEccErrorStatus {}": {"bThresholdExceeded": 1}}, ("fail", Fault.SRAM_EXCEEDED)),
        ("ecc.sram", {"SramEccErrorStatus {}": {"bThresholdExceeded": 7}}, ("unknown", None)),
        ("ecc.sram", {"SramEccErrorStatus {}": {"missing": "unsupported"}}, ("skip not-supported", None)),
        ("ecc.sram", {"SramEccErrorStatus {}": {"missing": "unrecorded"}}, ("skip not-recorded", None)),
    ],
)  # fmt: skip
def test_rows(check: str, facts: dict[str, Json], expected: tuple[str, FaultKind | None], tmp_path: Path) -> None:
    spec = changed(tmp_path, {f"{NVML}{key.format(A100)}": fact for key, fact in facts.items()}, base="dgx-a100")
    assert judged(box(spec), check, A100) == expected


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([DAY * 30 * n for n in range(1, 17)], ("warn", Fault.PAGES_MANY)),
        ([DAY * 30 * n for n in range(1, 16)] + [DAY * 457], ("fail", Fault.PAGES_GROWING)),
        ([DAY * 30 * n for n in range(1, 16)] + [DAY * 457 + 1], ("warn", Fault.PAGES_MANY)),
        ([DAY * 30 * n for n in range(1, 15)] + [DAY * 420 + HOUR], ("warn", Fault.PAGES_MANY)),
        ([0] * 16, ("warn", Fault.PAGES_MANY)),
        ([0] * 59, ("warn", Fault.PAGES_MANY)), ([0] * 60, ("warn", Fault.PAGES_EXHAUSTED)),
    ],
    ids=["once a month", "two in a week", "two in more", "two in a week of fifteen", "times not known", "59", "60"],
)
def test_pages_within_a_week(times: list[int], expected: tuple[str, FaultKind], tmp_path: Path) -> None:
    pages: list[Json] = [{"address": n, "timestamp": time} for n, time in enumerate(times)]
    spec = changed(tmp_path, {f"{NVML}RetiredPages {V100} 1": pages})
    assert judged(box(spec), "ecc.retired-pages", V100) == expected


def grown(tmp_path: Path, old: dict[str, Json], new: dict[str, Json], seconds: float) -> Box:
    """The second of two readings, with both."""
    (tmp_path / "old").mkdir()
    first = box(changed(tmp_path / "old", {f"{NVML}{key.format(V100)}": fact for key, fact in old.items()}))
    second = box(changed(tmp_path, {f"{NVML}{key.format(V100)}": fact for key, fact in new.items()}))
    growth = Growth(old=first.snapshot, new=second.snapshot, seconds=seconds, how="since yesterday")
    return replace(second, growth=growth)


@pytest.mark.parametrize(
    ("before", "seconds", "expected"),
    [
        (14, 7 * DAY, ("fail", Fault.PAGES_GROWING)),
        (15, DAY, ("warn", Fault.PAGES_MANY)),
        (14, 7 * DAY + 1, ("warn", Fault.PAGES_MANY)),
    ],
)
def test_new_pages_between_two_readings(
    before: int, seconds: float, expected: tuple[str, FaultKind], tmp_path: Path
) -> None:
    question = "RetiredPages {} 1"
    old: list[Json] = [{"address": n} for n in range(before)]
    machine = grown(tmp_path, {question: old}, {question: [{"address": n} for n in range(16)]}, seconds)
    assert judged(machine, "ecc.retired-pages", V100) == expected


def test_a_page_that_waits_is_among_the_retired(tmp_path: Path) -> None:
    """nvml.h, nvmlDeviceGetRetiredPages: those that are pending retirement are included."""
    facts: dict[str, Json] = {f"{NVML}RetiredPages {V100} 1": [{"address": 1}]}
    facts[f"{NVML}RetiredPagesPendingStatus {V100}"] = 1
    assert finding(box(changed(tmp_path, facts)), "ecc.retired-pages", V100).judgement.measured == 1


@pytest.mark.parametrize(
    ("new", "seconds", "expected"),
    [
        (2000, HOUR, ("pass", None)),
        (2001, HOUR, ("warn", Fault.ECC_CORRECTED)),
        (2001, DAY, ("pass", None)),
        (500, HOUR, ("pass", None)),
        (60_000_000, DAY, ("fail", Fault.ECC_FLOOD)),
    ],
)
def test_corrected_errors(new: int, seconds: float, expected: tuple[str, FaultKind | None], tmp_path: Path) -> None:
    question = "TotalEccErrors {} 0 0"
    machine = grown(tmp_path, {question: 1000}, {question: new}, seconds)
    assert judged(machine, "ecc.corrected", V100) == expected


def test_a_counter_that_was_reset_is_no_growth(tmp_path: Path) -> None:
    question = "TotalEccErrors {} 0 0"
    assert judged(grown(tmp_path, {question: 9000}, {question: 4000}, HOUR), "ecc.corrected", V100) == ("pass", None)


def test_sram_of_a_recording_made_before_it_was_asked(tmp_path: Path) -> None:
    ecc = box("dgx-a100").gpu(A100).ecc
    assert isinstance(ecc, GpuEcc)
    assert ecc.sram_exceeded is False
    v100 = box("dgx-1-v100").gpu(V100).ecc
    assert isinstance(v100, GpuEcc)
    assert isinstance(v100.sram_exceeded, Missing)


@pytest.mark.parametrize(
    ("check", "question", "later", "expected"),
    [
        ("ecc.corrected", "TotalEccErrors {} 0 0", 500_000, ("warn", Fault.ECC_CORRECTED)),
        ("ecc.retirement-pending", "RetiredPagesPendingStatus {}", 1, ("warn", Fault.RETIREMENT_PENDING)),
        ("ecc.retired-pages", "RetiredPages {} 1", [{"address": 1}], ("warn", Fault.PAGES_MANY)),
    ],
)
def test_what_the_second_reading_of_a_window_finds(
    check: str, question: str, later: Json, expected: tuple[str, FaultKind], tmp_path: Path
) -> None:
    """The box itself is that of the first reading."""
    machine = grown(tmp_path, {}, {question: later}, 60.0)
    assert isinstance(machine.growth, Growth)
    first = replace(machine, snapshot=machine.growth.old)
    assert judged(first, check, V100) == expected


H100, GH200, VGPU = "dgx-h100", "gh200", "vgpu-l40s"
PROCESS: Json = [{"pid": 4711, "usedGpuMemory": 1 << 30}]
HELD: dict[str, Json] = {"free": 10 << 30, "reserved": 0, "total": 70 << 30, "used": 60 << 30}


@pytest.mark.parametrize(
    ("base", "query", "answer", "due"),
    [
        (H100, "", None, "warn"), (H100, "nvmlDeviceGetMemoryInfo", HELD | {"used": 4096 << 20}, "pass"),
        (H100, "nvmlDeviceGetMemoryInfo", HELD | {"used": (4096 << 20) + 1}, "warn"),
        (H100, "nvmlDeviceGetComputeRunningProcesses", PROCESS, "pass"),
        (H100, "nvmlDeviceGetGraphicsRunningProcesses", PROCESS, "pass"),
        (H100, "nvmlDeviceGetUtilizationRates", {"gpu": 40, "memory": 3}, "skip"),
        (H100, "nvmlDeviceGetMigMode", [1, 1], "skip"), (GH200, "", None, "skip"), (VGPU, "", None, "skip"),
    ],
)  # fmt: skip
def test_memory_that_no_process_holds(base: str, query: str, answer: Json, due: str, tmp_path: Path) -> None:
    gpu = str(box(base).gpus[0].bdf)
    facts: dict[str, Json] = {f"nvml nvmlDeviceGetMemoryInfo {gpu}": HELD}
    if query:
        facts[f"nvml {query} {gpu}"] = answer
    assert finding(box(changed(tmp_path, facts, base)), "gpu.memory-held", gpu).status.name.lower() == due
