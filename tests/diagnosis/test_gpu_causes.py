"""Heat, power and BAR1 of GPUs among others of their kind, and what they are found to have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from changed_box import HOT, OF_H200, PCI, causes, document
from sample import BY_NAME

from dgxcheck.facts.missing import Json


def of_gpus(own: dict[str, Json], others: dict[str, Json]) -> dict[str, Json]:
    return {
        f"nvml nvmlDeviceGet{query.partition(' ')[0]} {bdf}{query[len(query.partition(' ')[0]) :]}": value
        for bdf in OF_H200 for query, value in (own if bdf == HOT else others).items()
    }  # fmt: skip


SLOWED: dict[str, Json] = {"Temperature 0": 90, "MarginTemperature": -3, "PowerUsage": 240_000}
COOL: dict[str, Json] = {"Temperature 0": 64, "MarginTemperature": 23, "PowerUsage": 690_000}


def test_a_gpu_that_heat_slowed_is_compared_with_those_that_draw_more(tmp_path: Path) -> None:
    own = {**SLOWED, "CurrentClocksEventReasons": 0x48}
    (cause,) = causes(tmp_path, "dgx-h200", of_gpus(own, {**COOL, "CurrentClocksEventReasons": 4}))
    assert cause["id"] == f"gpu/{HOT}/cooling"
    assert "heat sink" in next(each["text"] for each in cause["actions"] if each["action"] == "inspect")


def test_the_power_brake_does_not_hide_heat(tmp_path: Path) -> None:
    own = {**SLOWED, "CurrentClocksEventReasons": 0xC8}
    found = causes(tmp_path, "dgx-h200", of_gpus(own, {**COOL, "CurrentClocksEventReasons": 0x88}))
    assert {cause["id"]: cause["severity"] for cause in found} == {
        "host/host/power supply": "fail", f"gpu/{HOT}/cooling": "fail",
    }  # fmt: skip


def test_an_empty_line_of_bar1_is_no_small_bar1(tmp_path: Path) -> None:
    bdf = "0000:d1:00.0"
    zeros = "0x0000000000000000 0x0000000000000000 0x0000000000000000"
    bar0 = "0x000000009d000000 0x000000009dffffff 0x0000000000040200"
    bar3 = "0x00000c0000000000 0x00000c0001ffffff 0x000000000014220c"
    rows = [bar0, zeros, zeros, bar3, *[zeros] * 9]
    found = document(tmp_path, "hgx-h100", {f"text {PCI}/{bdf}/resource": "\n".join([*rows, ""])})
    (bad,) = [each for each in found["findings"] if each["id"] == "pcie.bar1" and each["status"] == "fail"]
    assert (bad["subject"]["bdf"], bad["message"]) == (bdf, "BAR1 is unassigned")


@pytest.mark.parametrize(("errors", "due"), [
    (152, "watch"), (200, "power-cycle"), (2110, "power-cycle"), (5_000_000, "power-cycle"),
])  # fmt: skip
def test_a_storm_of_corrected_errors_is_acted_upon(errors: int, due: str, tmp_path: Path) -> None:
    counts = f"RxErr {errors}\nBadTLP 0\nBadDLLP 0\nRollover 0\nTimeout 0\nNonFatalErr 0\nTOTAL_ERR_COR {errors}\n"
    later: dict[str, Json] = {f"{PCI}/0000:09:08.0": {"text": {"aer_dev_correctable": counts}}}
    found = document(tmp_path, "dgx-1-v100", {}, later=later)
    (bad,) = [each for each in found["findings"] if each["id"] == "pcie.aer" and each["status"] == "warn"]
    assert bad["fault"] == ("aer-correctable" if due == "watch" else "aer-storm")
    assert found["causes"][0]["action"]["action"] == due


def test_only_jobs_on_the_gpus_that_overheat_are_stopped(tmp_path: Path) -> None:
    """Half of them behind a fan that is lost: those that are cool work on."""
    hot = OF_H200[4:]
    facts: dict[str, Json] = {}
    for bdf in OF_H200:
        facts |= {f"nvml nvmlDeviceGetUtilizationRates {bdf} ": {"gpu": 99, "memory": 40},
                  f"nvml nvmlDeviceGetCurrentClocksEventReasons {bdf} ": 0x20 if bdf in hot else 0,
                  f"nvml nvmlDeviceGetTemperature {bdf} 0": 88 if bdf in hot else 55}  # fmt: skip
    (cause,) = causes(tmp_path, "dgx-h200", facts)
    (stop,) = [step for step in cause["actions"] if step["action"] == "stop-jobs"]
    assert stop["disturbs"] == [f"GPU{number}" for number in range(4, 8)]
    assert not any(bdf in str(stop) for bdf in OF_H200[:4])


def test_a_model_of_unknown_size_has_the_bar1_of_the_others(tmp_path: Path) -> None:
    """Where none has a large one the firmware has no room for it, which is no fault of these cards."""
    facts: dict[str, Json] = {}
    for number in range(1, 5):
        bdf = f"0000:2{number}:00.0"
        rows = json.loads(Path(BY_NAME["geforce-x4"]).read_text(encoding="utf-8"))["facts"][f"{PCI}/{bdf}"]["text"]
        large = next(row for row in rows["resource"].splitlines() if row.endswith("14220c"))
        small = f"{large[:18]} 0x{int(large[:18], 16) + (1 << 28) - 1:016x} {large[-18:]}"
        facts[f"text {PCI}/{bdf}/resource"] = rows["resource"].replace(large, small)
        sizes: Json = {"bar1Free": (1 << 28) - 1, "bar1Total": 1 << 28, "bar1Used": 1}
        facts[f"nvml nvmlDeviceGetBAR1MemoryInfo {bdf}"] = sizes
    assert not causes(tmp_path, "geforce-x4", facts)
    (cause,) = causes(tmp_path, "geforce-x4", {key: value for key, value in facts.items() if "0000:22:00.0" in key})
    assert (cause["id"], cause["faults"]) == ("gpu/0000:22:00.0/BAR1", ["bar1-small"])
    assert cause["action"]["action"] == "inspect"
