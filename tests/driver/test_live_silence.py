"""Rows of silence live, through the binding and the workers: what must answer and did not is never a pass."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live_box import CHILD, Box, Ran, finished, gpu_bdfs, started
from sample import swept
from standin import nvml

Served = Callable[..., Box]
GPUS = 3
JSON = ("--format", "json", "--profile", "none", "--deadline", "10")


def bad(ran: Ran) -> dict[str, str]:
    findings: Any = ran.json["findings"]
    return {each["key"]: each["status"] for each in findings if each["status"] in ("warn", "fail", "unknown")}


@pytest.mark.parametrize("code", swept([2, 4, 9, 13, 25, 999], 3))
def test_a_gpu_without_a_handle(served: Served, standin: Path, code: int) -> None:
    box = served("dgx-1-v100", GPUS)
    fault = f"error {code} nvmlDeviceGetHandleByIndex 1"
    ran = box.live(box.environment(standin, fault), "health", "-q", *JSON)
    due = "fail" if code == 999 else "unknown"
    assert bad(ran).get(f"gpu.lost/{gpu_bdfs(box.lines)[1]}") == due
    assert ran.code == (2 if code == 999 else 3)


@pytest.mark.parametrize("fault", ["error 4 nvmlInit", "error 17 nvmlInit", "error 4 nvmlDeviceGetCount"])
def test_a_user_whom_the_driver_refuses(served: Served, standin: Path, fault: str) -> None:
    box = served("dgx-1-v100", GPUS)
    ran = box.live(box.environment(standin, fault), "health", "-q", *JSON)
    assert (ran.code, bad(ran).get("driver.library")) == (3, "unknown")
    assert "fail" not in bad(ran).values()


def test_no_gpu_answers_what_its_model_does(served: Served, standin: Path) -> None:
    box = served("dgx-1-v100", GPUS)
    fault = "missing nvmlDeviceGetTotalEccErrors"
    ran = box.live(box.environment(standin, fault), "health", "-q", "--format", "json", "--deadline", "10")
    assert {f"driver.answers/{bdf}" for bdf in gpu_bdfs(box.lines)} <= {*bad(ran)}


@pytest.mark.parametrize("fault", ["error 3 nvmlDeviceGetTemperature 1"])
def test_a_gpu_does_not_answer_what_its_model_does(served: Served, standin: Path, fault: str) -> None:
    box = served("dgx-1-v100", GPUS)
    ran = box.live(box.environment(standin, fault), "health", "-q", *JSON)
    assert (ran.code, bad(ran).get(f"driver.answers/{gpu_bdfs(box.lines)[1]}")) == (3, "unknown")


@pytest.mark.in_ci
@pytest.mark.parametrize(
    ("fault", "due"),
    [
        ("error 15 nvmlDeviceGetPcieReplayCounter 1", "gpu.lost"),
        ("error 3 nvmlDeviceGetPcieReplayCounter 1", "driver.answers"),
        ("error 4 nvmlDeviceGetTotalEccErrors 1", "driver.answers"),
        (f"value {GPUS + 1} nvmlDeviceGetCount", "gpu.lost"),
        ("value 0 nvmlDeviceGetNvLinkState 1", "nvlink.state"),
        ("value 77 nvmlDeviceGetMemoryErrorCounter 1", "consistency.readings"),
    ],
)
def test_the_second_reading(served: Served, standin: Path, tmp_path: Path, fault: str, due: str) -> None:
    """The driver's answers change between the two readings of ``--window``."""
    box = served("dgx-1-v100", GPUS)
    given = box.environment(standin, f"again {fault}", NVML_STANDIN_CALLS=str(tmp_path / "calls"))
    ran = box.live(given, "health", "--window", "1", *JSON, seconds=60)
    key = due if "GetCount" in fault else f"{due}/{gpu_bdfs(box.lines)[1]}"
    assert key in bad(ran), ran.out[:500]


def test_no_process_can_be_started(served: Served, standin: Path) -> None:
    """With too few file descriptors no worker starts: nothing is known, and the driver is not to blame."""
    box = served("dgx-1-v100", GPUS)
    code = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6)); {CHILD}"
    command = (sys.executable, "-c", code, str(box.tree), "health", "-q", *JSON)
    ran = finished(started(command, box.environment(standin)), 60)
    assert bad(ran).get("driver.responsive") == "unknown", ran.err
    assert "fail" not in {status for key, status in bad(ran).items() if key.startswith("driver.")}
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 6


def test_a_worker_that_the_kernel_kills(served: Served, standin: Path) -> None:
    """The OOM killer's SIGKILL is no crash of the driver."""
    box = served("dgx-1-v100", GPUS)
    running = box.start(box.environment(standin, "slow 3 nvmlInit"), "health", "-q", *JSON)
    children: list[str] = []
    until = time.monotonic() + 10
    while not children and time.monotonic() < until:
        time.sleep(0.2)
        listed = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")
        children = [pid for pid in listed.read_text().split() if b"nvml" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert children
    time.sleep(0.5)
    os.kill(int(children[0]), 9)
    found = bad(finished(running, 60))
    assert found.get("driver.responsive") == "unknown"
    assert "fail" not in {status for key, status in found.items() if key.startswith("driver.")}


def test_extended_without_libcuda(served: Served, standin: Path) -> None:
    if subprocess.run((sys.executable, "-c", "import ctypes; ctypes.CDLL('libcuda.so.1')"), stderr=-3).returncode == 0:
        pytest.skip("this machine has a libcuda.so.1")
    box = served("dgx-1-v100", GPUS)
    ran = box.live(box.environment(standin), "health", "-e", "--window", "1", *JSON, seconds=90)
    assert [key for key, status in bad(ran).items() if status == "unknown"] == ["measure.host-bandwidth"]
    assert nvml.SONAME
