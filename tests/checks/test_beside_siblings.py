"""A fully used GPU that is slower than those of its model beside it, by its power cap or in idle clocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from changed_box import document
from judging import judged

from dgxcheck.facts.missing import Json

OF_H200 = [f"0000:{bus}:00.0" for bus in ("1b", "43", "52", "61", "9d", "c3", "d1", "df")]
SLOW = OF_H200[5]
GEFORCE = [f"0000:{bus}:00.0" for bus in (21, 22, 23, 24)]


def load(bdf: str, percent: int, mask: int, clock: int, draw: int, state: int) -> dict[str, Json]:
    """What NVML answers about a GPU with this load: percent, MHz, W."""
    values: dict[str, Json] = {
        "UtilizationRates {} ": {"gpu": percent, "memory": 40}, "CurrentClocksEventReasons {} ": mask,
        "ClockInfo {} 0": clock, "ClockInfo {} 1": clock, "PowerUsage {} ": draw * 1000, "PerformanceState {} ": state,
    }  # fmt: skip
    return {f"nvml nvmlDeviceGet{key.format(bdf)}": value for key, value in values.items()}


def throttled(folder: Path, base: str, facts: dict[str, Json], later: dict[str, Json] | None = None) -> list[Any]:
    found = document(folder, base, facts, later=later)["findings"]
    return [each for each in found if each["id"] in ("clock.throttle", "consistency.readings")
            and each["status"] in ("warn", "fail", "unknown")]  # fmt: skip


def of_h200(own: tuple[int, int, int, int], others: tuple[int, int, int, int]) -> dict[str, Json]:
    return {key: value for bdf in OF_H200 for key, value in load(bdf, *(own if bdf == SLOW else others), 0).items()}


@pytest.mark.parametrize(("own", "others", "due"), [
    ((100, 0x4, 700, 300), (100, 0x4, 1700, 690), ["power-violation"]),
    ((100, 0x4, 700, 300), (100, 0, 1900, 600), ["power-violation"]),
    ((95, 0x4, 700, 300), (95, 0x4, 1700, 690), ["power-violation"]),
    ((94, 0x4, 700, 300), (100, 0x4, 1700, 690), []),  # another load
    ((100, 0x4, 1199, 476), (100, 0x4, 1600, 560), ["power-violation"]),  # 85 % of what another draws, that 80 %
    ((100, 0x4, 1200, 476), (100, 0x4, 1600, 560), []),  # three quarters of its clock
    ((100, 0x4, 700, 477), (100, 0x4, 1600, 560), []),
    ((100, 0x4, 700, 300), (100, 0x4, 1600, 559), []),
    ((100, 0x4, 700, 489), (100, 0x4, 1700, 690), ["power-violation"]),
    ((100, 0x4, 700, 490), (100, 0x4, 1700, 690), []),  # 70 % of its limit
    ((100, 0, 700, 300), (100, 0x4, 1700, 690), []),  # no cap: a program that draws less
    ((100, 0x6, 700, 300), (100, 0x4, 1700, 690), []),  # clocks that were set
    ((100, 0x4, 1650, 300), (100, 0x4, 1700, 690), []),  # as fast as the others: the mean of its draw lags behind
    ((100, 0x4, 700, 300), (100, 0x4, 700, 300), []),  # all alike
    ((0, 0x1, 345, 75), (0, 0x1, 345, 75), []),
])  # fmt: skip
def test_a_cap_far_below_the_limit(
    own: tuple[int, int, int, int], others: tuple[int, int, int, int], due: list[str], tmp_path: Path
) -> None:
    found = throttled(tmp_path, "dgx-h200", of_h200(own, others))
    assert [each["fault"] for each in found] == due
    assert all(each["subject"]["bdf"] == SLOW for each in found)
    assert all(f"cap at {own[3]} of 700 W" in each["message"] for each in found)


def reasons(bdf: str, mask: Json) -> dict[str, Json]:
    return {f"nvml nvmlDeviceGetCurrentClocksEventReasons {bdf}": {"": mask}}


@pytest.mark.parametrize("mask", [0, 0x6])
def test_a_cap_that_is_over(mask: int, tmp_path: Path) -> None:
    """A load that changes: the reason is of an instant, the draw a mean. And clocks that were set meanwhile."""
    facts = of_h200((100, 0x4, 700, 300), (100, 0x4, 1700, 690))
    assert not throttled(tmp_path, "dgx-h200", facts, reasons(SLOW, mask))


def test_a_cap_read_once(tmp_path: Path) -> None:
    facts = of_h200((100, 0x4, 700, 300), (100, 0x4, 1700, 690))
    gap: dict[str, Json] = {"missing": "unrecorded"}
    assert not throttled(tmp_path, "dgx-h200", facts, reasons(SLOW, gap))


def test_a_cap_that_one_reading_alone_shows(tmp_path: Path) -> None:
    facts = of_h200((100, 0x4, 700, 300), (100, 0x4, 1700, 690))
    found = document(tmp_path, "dgx-h200", facts, later={})["findings"]
    (own,) = [each for each in found if each["id"] == "clock.throttle" and each["subject"]["bdf"] == SLOW]
    assert (own["status"], own["reason"]) == ("skip", "no-history")
    assert own["message"].endswith("W at the same utilisation; a second reading shows whether it stays so")


@pytest.mark.parametrize(("function", "before", "after", "mask", "due"), [
    ("TotalEnergyConsumption", 1, 1 + 600 * 60_000, 0x4, []),  # it drew near its limit meanwhile
    ("TotalEnergyConsumption", 1, 1 + 490 * 60_000, 0x4, []),
    ("TotalEnergyConsumption", 1, 1 + 489 * 60_000, 0x4, ["power-violation"]),
    ("ViolationStatus", 0, 30 * 10**9, 0, ["power-violation"]),  # the cap held it for most of the time
    ("ViolationStatus", 0, 29 * 10**9, 0, []),
])  # fmt: skip
def test_what_a_capped_gpu_did_between_two_readings(
    function: str, before: int, after: int, mask: int, due: list[str], tmp_path: Path
) -> None:
    line, entry = f"nvml nvmlDeviceGet{function} {SLOW}", "0" if function == "ViolationStatus" else ""

    def read(value: int) -> Json:
        return {"referenceTime": 0, "violationTime": value} if entry else value

    facts = of_h200((100, 0x4, 700, 300), (100, 0x4, 1700, 690)) | {f"{line} {entry}": read(before)}
    later = reasons(SLOW, mask) | {line: {entry: read(after)}}
    assert [each["fault"] for each in throttled(tmp_path, "dgx-h200", facts, later)] == due


def test_siblings_with_a_lower_limit(tmp_path: Path) -> None:
    """They draw a larger share of what they may, and fewer watts."""
    facts = of_h200((100, 0x4, 700, 480), (100, 0x4, 1700, 330))
    facts |= {f"nvml nvmlDeviceGetEnforcedPowerLimit {bdf} ": 400_000 for bdf in OF_H200 if bdf != SLOW}
    facts |= {f"nvml nvmlDeviceGetPowerManagementLimit {bdf} ": 400_000 for bdf in OF_H200 if bdf != SLOW}
    assert not throttled(tmp_path, "dgx-h200", facts)


@pytest.mark.parametrize(("question", "answer"), [
    ("UtilizationRates", {"missing": "unsupported", "detail": "NVML 3: Not Supported"}),  # of MIG
    ("EnforcedPowerLimit", 0),
])  # fmt: skip
def test_a_gpu_without_a_figure_is_not_compared(question: str, answer: Json, tmp_path: Path) -> None:
    facts = of_h200((100, 0x4, 700, 300), (100, 0x4, 1700, 690))
    found = throttled(tmp_path, "dgx-h200", facts | {f"nvml nvmlDeviceGet{question} {SLOW} ": answer})
    assert "clock.throttle" not in [each["id"] for each in found]


@pytest.mark.parametrize(("seconds", "due"), [(600, ["power-violation"]), (601, [])])
def test_readings_far_apart_say_nothing_of_the_time_between(seconds: int, due: list[str], tmp_path: Path) -> None:
    facts = of_h200((100, 0x4, 700, 300), (100, 0x4, 1700, 690))
    found = document(tmp_path, "dgx-h200", facts, later=reasons(SLOW, 0x4), at_s=seconds)["findings"]
    assert [each["fault"] for each in found if each["id"] == "clock.throttle" and each["status"] == "warn"] == due


def of_geforce(own: tuple[int, int, int, int, int], others: tuple[int, int, int, int, int]) -> dict[str, Json]:
    return {key: value for bdf in GEFORCE
            for key, value in load(bdf, *(own if bdf == GEFORCE[1] else others)).items()}  # fmt: skip


PROGRAM: list[Json] = [{"pid": 4242, "usedGpuMemory": 1 << 30, "gpuInstanceId": 0xFFFFFFFF, "computeInstanceId": 0}]


@pytest.mark.parametrize(("own", "others", "due"), [
    ((100, 0, 180, 40, 8), (99, 0, 2600, 500, 1), ["clocks-stuck"]),
    ((100, 0x2, 180, 40, 8), (99, 0, 2600, 500, 1), [None]),  # locked: the readings alone say nothing
    ((100, 0, 180, 40, 8), (0, 0x1, 180, 24, 8), [None]),  # nothing to compare with
    ((0, 0x1, 180, 24, 8), (99, 0, 2600, 500, 1), []),  # idle beside busy ones
])  # fmt: skip
def test_idle_clocks_at_full_use(
    own: tuple[int, int, int, int, int], others: tuple[int, int, int, int, int], due: list[str | None], tmp_path: Path
) -> None:
    assert [each["fault"] for each in throttled(tmp_path, "geforce-x4", of_geforce(own, others))] == due


@pytest.mark.parametrize(("own", "later", "running", "due"), [
    ((97, 0, 1200, 300), 0, True, ["clocks-stuck"]),  # locked, and the driver does not say so
    ((97, 0, 1200, 300), 0, False, []),
    ((97, 0, 1200, 300), 0x4, True, []),  # a load that changes
    ((97, 0, 1484, 314), 0, True, ["clocks-stuck"]),
    ((97, 0, 1485, 314), 0, True, []),
    ((97, 0, 1200, 315), 0, True, []),  # what it does needs no high clocks, or the clock is of an instant
    ((60, 0, 1200, 300), 0, True, []),
])  # fmt: skip
def test_low_clocks_without_a_reason(
    own: tuple[int, int, int, int], later: int, running: bool, due: list[str], tmp_path: Path
) -> None:
    facts = of_h200(own, (97, 0, 1980, 420))
    facts |= {f"nvml nvmlDeviceGetComputeRunningProcesses {bdf} ": PROGRAM for bdf in OF_H200 if running}
    assert [each["fault"] for each in throttled(tmp_path, "dgx-h200", facts, reasons(SLOW, later))] == due


@pytest.mark.parametrize(("now", "later"), [(0x1, 0x1), (0, 0x1)])
def test_utilisation_of_a_program_that_ended(now: int, later: int, tmp_path: Path) -> None:
    facts = of_geforce((100, now, 180, 40, 8), (99, 0, 2600, 500, 1))
    found = throttled(tmp_path, "geforce-x4", facts, reasons(GEFORCE[1], later))
    assert [each["status"] for each in found] == ["unknown"]


def test_utilisation_without_a_program_may_itself_be_wrong(tmp_path: Path) -> None:
    facts = of_geforce((100, 0, 180, 40, 8), (99, 0, 2600, 500, 1))
    facts |= {f"nvml nvmlDeviceGetComputeRunningProcesses {bdf} ": PROGRAM for bdf in GEFORCE if bdf != GEFORCE[1]}
    assert [each["status"] for each in throttled(tmp_path, "geforce-x4", facts)] == ["unknown"]


def test_whether_a_program_runs_need_not_be_known_of_idle_clocks(tmp_path: Path) -> None:
    facts = of_geforce((100, 0, 180, 40, 8), (99, 0, 2600, 500, 1))
    facts |= {f"nvml nvmlDeviceGetComputeRunningProcesses {bdf} ": PROGRAM for bdf in GEFORCE}
    facts[f"nvml nvmlDeviceGetComputeRunningProcesses {GEFORCE[1]} "] = {"missing": "unsupported"}
    assert [each["fault"] for each in throttled(tmp_path, "geforce-x4", facts)] == ["clocks-stuck"]


def test_two_in_idle_clocks_are_no_odd_one(tmp_path: Path) -> None:
    slow = (100, 0, 180, 40, 8)
    facts = of_geforce(slow, (99, 0, 2600, 500, 1)) | load(GEFORCE[3], *slow)
    assert {each["fault"] for each in throttled(tmp_path, "geforce-x4", facts)} == {None}


def test_what_is_done_about_a_gpu_in_idle_clocks(tmp_path: Path) -> None:
    found = document(tmp_path, "geforce-x4", of_geforce((100, 0, 180, 40, 8), (99, 0, 2600, 500, 1)))["causes"]
    cause = next(each for each in found if each["id"] == f"gpu/{GEFORCE[1]}")
    assert [each["action"] for each in cause["actions"]][:4] == ["inspect", "drain", "stop-jobs", "reset-gpu"]


@pytest.mark.parametrize("base", ["dgx-h200", "geforce-x4"])
def test_idle_boxes_are_quiet(base: str) -> None:
    assert not [each for each in judged(base)[1]["findings"]
                if each["id"] == "clock.throttle" and each["status"] in ("warn", "fail")]  # fmt: skip
