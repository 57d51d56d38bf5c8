"""``health --extended`` through the command, on a live box of both stand-ins: measured, reported, kept."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from live_box import Box, Ran, finished, gpu_bdfs
from sample import swept
from standin import cuda

Served = Callable[..., Box]
Extended = Callable[..., Ran]
GPUS = 2
MEMORY_MIB, ENOUGH_MIB = 1100, 1650
"""Of each GPU, few, for real bytes are written and read back. A whole test of memory writes 1024 MiB and leaves 512
free, and other measurements hold some; where the test is of something else, less is checked."""
HEALTH = ("health", "-e", "--profile", "none", "--format", "json")
SOON = (*HEALTH, "--window", "1")
"""Not the 5 s that counters are given to grow without it."""


@pytest.fixture
def given(served: Served, standin: Path, cuda_library: Path, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """``given(fault, ..)``: the environment in which the first GPUs of a DGX-1 are live, with faults of CUDA."""

    def environment(*faults: str, memory_mib: int = MEMORY_MIB) -> dict[str, str]:
        (tmp_path / "cuda-box").write_text(cuda.dgx1_v100(GPUS, memory_mib).text(*faults))
        base = served("dgx-1-v100", GPUS).environment(standin, XDG_RUNTIME_DIR=str(tmp_path))
        return cuda.environment(cuda_library, tmp_path / "cuda-box", ledger=tmp_path / "ledger", base=base)

    return environment


def found(ran: Ran) -> dict[str, dict[str, Any]]:
    """Findings that are no pass and no skip, by key."""
    document: dict[str, Any] = json.loads(ran.out)
    return {each["key"]: each for each in document["findings"] if each["status"] not in ("pass", "skip")}


def test_a_healthy_box_passes_and_its_figures_are_recorded(
    served: Served, given: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    box, environment = served("dgx-1-v100", GPUS), given(memory_mib=ENOUGH_MIB)
    ran = box.live(environment, *HEALTH, seconds=90)
    assert (ran.code, ran.err, found(ran)) == (0, "", {})
    document = json.loads(ran.out)
    assert document["level"] == "extended"
    assert document["host_load"]["cpus"] > 0
    kinds = {each["id"] for each in document["findings"] if each["status"] == "pass"}
    assert {"measure.host-bandwidth", "measure.memory-integrity", "measure.p2p-integrity"} <= kinds
    assert not any(cuda.read_ledger(tmp_path / "ledger").values())
    kept = tmp_path / "kept.json"
    assert box.live(environment, "record", str(kept), seconds=60).code == 0
    again = box.live(environment, "health", "--from", str(kept), "--profile", "none", "--format", "json")
    assert found(again) == {}
    judged = {
        each["key"]: each["measured"] for each in json.loads(again.out)["findings"] if each["id"][:8] == "measure."
    }
    assert judged == {each["key"]: each["measured"] for each in document["findings"] if each["id"][:8] == "measure."}


@pytest.mark.in_ci
@pytest.mark.parametrize(("fault", "check"), swept([
    ("drop 0 1", "measure.p2p-integrity"),
    ("oom 0 9", "measure.host-bandwidth"),
    ("mirror 1 0", "measure.p2p-integrity"),
    ("wrong-memory 1 4096", "measure.memory-integrity"),
], 4))  # fmt: skip
def test_a_fault_is_one_finding(served: Served, given: Callable[..., dict[str, str]], fault: str, check: str) -> None:
    box = served("dgx-1-v100", GPUS)
    bdfs = gpu_bdfs(box.lines)
    memory_mib = ENOUGH_MIB if fault.startswith("wrong-memory") else MEMORY_MIB
    ran = box.live(given(fault, memory_mib=memory_mib), *SOON, seconds=90)
    ends = [bdfs[int(word)] for word in fault.split()[1:] if int(word) < GPUS]
    assert (ran.code, ran.err) == (2, "")
    assert [*found(ran)] == ["/".join((check, *sorted(ends)))]


@pytest.mark.in_ci
def test_a_hang_costs_its_step(served: Served, given: Callable[..., dict[str, str]]) -> None:
    box = served("dgx-1-v100", GPUS)
    one = gpu_bdfs(box.lines)[1]
    ran = box.live(given("hang dgx_fill 1"), *SOON, "-t", "10", seconds=120)
    assert ran.code == 2
    assert [*found(ran)] == [f"measure.memory-integrity/{one}"]


@pytest.mark.parametrize("number", swept([signal.SIGINT, signal.SIGTERM], 2, first=1))
def test_what_was_seen_is_told_when_it_is_interrupted(
    served: Served, given: Callable[..., dict[str, str]], number: signal.Signals
) -> None:
    import time

    running = served("dgx-1-v100", GPUS).start(given("hang dgx_fill 1"), *SOON)
    time.sleep(4)
    running.process.send_signal(number)
    ran = finished(running, 60)
    assert ran.code == 3
    document = json.loads(ran.out)
    assert document["verdict"] == "unknown"
    assert document["summary"]["pass"] > 20
