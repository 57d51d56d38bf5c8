"""The stand-in for NVML with faults: errors, missing symbols, crashes, hangs, and a fault that is misspelt."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from standin import nvml
from standin.binding import asked, child
from standin.boxes import A, B, box

from dgxcheck.source.protocol import Json

pytestmark = pytest.mark.skipif(nvml.compiler() is None, reason="no gcc to compile the stand-in with")


@pytest.mark.parametrize("fault", ["error 15 nvmlDeviceGetPowerUsage 1", "error 15 * 1", " error 15  * 3,1 ;"])
def test_an_error_fault_hits_the_gpus_named(standin: Path, fault: str) -> None:
    facts = box(PowerUsage={"": 43210}) | {f"nvml nvmlDeviceGetPowerUsage {B}": {"": 50000}}
    calls = ("nvmlDeviceGetPowerUsage(gpu(0))", "nvmlDeviceGetPowerUsage(gpu(1))", "nvmlDeviceGetCount()")
    assert asked(standin, facts, *calls, faults=[fault]) == [43210, {"error": 15}, 2]


def test_a_fault_of_any_call_takes_pairs_but_not_handles(standin: Path) -> None:
    facts = box(Name={"": "x"}) | {f"nvml nvmlDeviceGetP2PStatus {A} {B}": {"0": 0}}
    calls = ("nvmlDeviceGetP2PStatus(gpu(0), gpu(1), 0)", "nvmlDeviceGetName(gpu(0))")
    assert asked(standin, facts, *calls, faults=["error 4 * 1"]) == [{"error": 4}, "x"]
    assert asked(standin, facts, *calls, faults=["error 15 nvmlDeviceGetHandleByIndex 1"]) == [{"error": 15}, "x"]


def test_a_fault_of_a_function_takes_its_newer_symbols(standin: Path) -> None:
    calls = ("nvmlDeviceGetTemperatureV(gpu(0), 0)", "nvmlDeviceGetTemperature(gpu(0), 0)")
    facts = box(Temperature={"0": 41})
    assert asked(standin, facts, *calls, faults=["error 4 nvmlDeviceGetTemperature"]) == [{"error": 4}, {"error": 4}]
    assert asked(standin, facts, *calls, faults=["error 4 nvmlDeviceGetTemperatureV"]) == [{"error": 4}, 41]


def test_a_missing_symbol_leaves_the_older_one(standin: Path) -> None:
    calls = ("nvmlDeviceGetCurrentClocksEventReasons(gpu(0))", "nvmlDeviceGetCurrentClocksThrottleReasons(gpu(0))")
    faults = ["missing nvmlDeviceGetCurrentClocksEventReasons", "missing nvmlDeviceGetMemoryInfo_v2"]
    memory: Json = {"total": 3, "reserved": 0, "free": 2, "used": 1}
    facts = box(CurrentClocksEventReasons={"": 8}, MemoryInfo={"": memory})
    memories = ("nvmlDeviceGetMemoryInfo(gpu(0), version=nvmlMemory_v2)", "nvmlDeviceGetMemoryInfo(gpu(0)).total")
    assert asked(standin, facts, *calls, *memories, faults=faults) == [{"error": 13}, 8, {"error": 13}, 3]


def test_a_crash_kills_the_child(standin: Path, tmp_path: Path) -> None:
    nvml.write_answers(box(Name={"": "x"}), tmp_path / "t")
    environment = nvml.environment(standin, tmp_path / "t", faults=["crash nvmlDeviceGetName 0"])
    ran = child(environment, "nvmlInit()", "nvmlDeviceGetCount()", "nvmlDeviceGetName(gpu(0))")
    assert ran.returncode == -signal.SIGSEGV
    assert ran.stdout.splitlines() == ["null", "2"]


def test_a_hang_hangs_and_the_log_says_where(standin: Path, tmp_path: Path) -> None:
    nvml.write_answers(box(), tmp_path / "t")
    faults = ["hang nvmlDeviceGetTemperature 1"]
    environment = nvml.environment(standin, tmp_path / "t", faults=faults, calls=tmp_path / "calls")
    with pytest.raises(subprocess.TimeoutExpired):
        child(environment, "nvmlInit()", "nvmlDeviceGetTemperatureV(gpu(1), 0)", seconds=1.0)
    assert nvml.read_calls(tmp_path / "calls") == (
        ("nvmlInit", "nvmlInitWithFlags"),
        ("nvmlDeviceGetHandleByIndex 1", "nvmlDeviceGetHandleByIndex_v2"),
        (f"nvmlDeviceGetTemperature {B} 0", "nvmlDeviceGetTemperatureV"),
    )


def test_slow_is_late_but_right(standin: Path) -> None:
    before = time.monotonic()
    assert asked(standin, box(), "nvmlDeviceGetCount()", faults=["slow 0.4 nvmlInit"]) == [2]
    assert time.monotonic() - before >= 0.4


def test_library_and_kernel_module_that_do_not_match(standin: Path, tmp_path: Path) -> None:
    nvml.write_answers(box(), tmp_path / "t")
    ran = child(nvml.environment(standin, tmp_path / "t", faults=["error 18 nvmlInit"]), "nvmlInit()")
    assert json.loads(ran.stdout) == {"error": 18}


@pytest.mark.parametrize("fault", ["hangs nvmlInit", "hang", "error nvmlInit", "slow x nvmlInit"])
def test_a_misspelt_fault_is_noticed(standin: Path, tmp_path: Path, fault: str) -> None:
    nvml.write_answers(box(), tmp_path / "t")
    ran = child(nvml.environment(standin, tmp_path / "t", faults=[fault]), "nvmlInit()")
    assert json.loads(ran.stdout) == {"error": 999}
    assert "bad fault" in ran.stderr


def test_a_fault_of_the_second_time_and_another_value(standin: Path, tmp_path: Path) -> None:
    calls = ("nvmlDeviceGetPowerUsage(gpu(0))", "nvmlDeviceGetPowerUsage(gpu(1))", "nvmlDeviceGetPowerUsage(gpu(0))")
    facts = box(PowerUsage={"": 43210}) | {f"nvml nvmlDeviceGetPowerUsage {B}": {"": 50000}}
    for fault, due in (("again error 15", {"error": 15}), ("again value 7", 7)):
        given = [f"{fault} nvmlDeviceGetPowerUsage 0"]
        assert asked(standin, facts, *calls, faults=given, calls=tmp_path / fault) == [43210, 50000, due]
    assert asked(standin, facts, calls[0], faults=["value 7 nvmlDeviceGetPowerUsage"]) == [7]
