"""``health`` with a sick driver: the sick GPU or the driver is named, every other GPU is judged, in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from clock import SPARE
from live_box import Box, Ran, gpu_bdfs
from sample import swept

Served = Callable[..., Box]
SLACK = 1.0
"""Seconds beyond the deadline that a command may take."""


HEALTH = ("health", "--profile", "none", "--format", "json")
"""A reference machine would miss the GPUs that are not served."""


def statuses(ran: Ran) -> dict[tuple[str, str | None], str]:
    document: dict[str, Any] = ran.json
    return {(each["id"], each["subject"]["bdf"]): each["status"] for each in document["findings"]}


@pytest.mark.parametrize("bad", swept([0, 1, 2], 3))
def test_a_hang_at_one_gpu_is_one_fail(served: Served, standin: Any, bad: int) -> None:
    box = served("dgx-1-v100", 3)
    given = box.environment(standin, f"hang nvmlDeviceGetPersistenceMode {bad}")
    ran = box.live(given, *HEALTH, "--deadline", "8")
    assert (ran.code, ran.err) == (2, "")
    assert ran.seconds < 8 + SLACK + SPARE
    found = statuses(ran)
    assert [key for key, status in found.items() if status in ("warn", "fail", "unknown")] == [
        ("driver.responsive", gpu_bdfs(box.lines)[bad])
    ]
    healthy = statuses(box.recorded(*HEALTH))
    others = [bdf for index, bdf in enumerate(gpu_bdfs(box.lines)) if index != bad]
    for (check, bdf), status in healthy.items():
        if bdf in others:
            assert found[check, bdf] == status, check
    assert found["driver.persistence", gpu_bdfs(box.lines)[bad]] == "skip"


@pytest.mark.parametrize("bad", swept([0, 4], 2))
def test_a_slow_gpu_is_named_and_does_not_starve_the_others(served: Served, standin: Any, bad: int) -> None:
    """It takes 0.5 s for each of some hundred calls; its own answers are what the deadline cuts off."""
    box = served("dgx-1-v100", 5)
    ran = box.live(box.environment(standin, f"slow 0.5 * {bad}"), *HEALTH, "--deadline", "10")
    assert (ran.code, ran.err) == (2, "")
    assert ran.seconds < 10 + SLACK + SPARE
    found = statuses(ran)
    assert [key for key, status in found.items() if status in ("warn", "fail", "unknown")] == [
        ("driver.responsive", gpu_bdfs(box.lines)[bad])
    ]
    bdfs = gpu_bdfs(box.lines)
    findings: Any = ran.json["findings"]
    silent = next(each for each in findings if each["id"] == "driver.responsive")
    assert all(bdfs[bad] in each["where"] for each in silent["evidence"])
    healthy = statuses(box.recorded(*HEALTH))
    changed = {check for (check, bdf), status in healthy.items()
               if bdf in bdfs and bdf != bdfs[bad] and found[check, bdf] != status}  # fmt: skip
    assert changed <= {"nvlink.symmetry", "p2p.status"}, "these need both ends"


@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_gpu_that_is_lost_is_one_fail(served: Served, standin: Any, bad: int) -> None:
    box = served("dgx-1-v100", 3)
    ran = box.live(box.environment(standin, f"error 15 * {bad}"), *HEALTH)
    assert (ran.code, ran.err) == (2, "")
    found = statuses(ran)
    gone = gpu_bdfs(box.lines)[bad]
    assert [key for key, status in found.items() if status in ("warn", "fail", "unknown")] == [("gpu.lost", gone)]
    assert found["ecc.volatile", gone] == "skip"
    assert found["pcie.width", gone] == "pass"


@pytest.mark.parametrize("bad", swept([0, 1, 2], 3))
def test_a_crash_at_one_gpu_is_one_fail(served: Served, standin: Any, bad: int) -> None:
    box = served("dgx-1-v100", 3)
    ran = box.live(box.environment(standin, f"crash nvmlDeviceGetPersistenceMode {bad}"), *HEALTH)
    assert (ran.code, ran.err) == (2, "")
    found = statuses(ran)
    bdfs = gpu_bdfs(box.lines)
    assert [key for key, status in found.items() if status in ("warn", "fail", "unknown")] == [
        ("driver.responsive", bdfs[bad])
    ]
    assert [found["driver.persistence", bdf] for bdf in bdfs] == [
        "skip" if index == bad else "pass" for index in range(3)
    ]


def test_a_crash_is_said_and_nothing_passes_for_it(served: Served, standin: Any) -> None:
    box = served("dgx-1-v100", 3)
    ran = box.live(box.environment(standin, "crash nvmlInit"), *HEALTH)
    assert (ran.code, ran.err) == (2, "")
    found = statuses(ran)
    assert found["driver.responsive", None] == "fail"
    assert {status for (check, _), status in found.items() if check.startswith(("ecc", "clock"))} == {"skip"}


def test_the_letters_that_only_tell_work_on_the_machine_itself(served: Served, standin: Any, tmp_path: Any) -> None:
    box = served("dgx-1-v100", 3)
    given = box.environment(standin, "")
    due = box.live(given, "list")
    told = box.live(given, "health", "-L")
    assert (told.code, told.out, told.err) == (due.code, due.out, due.err)
    judged = box.live(given, "health", "--profile", "none", "-d", str(tmp_path / "debug"))
    assert judged.out.startswith("PASS ")
    text = (tmp_path / "debug").read_text(encoding="utf-8")
    assert '"source": "live"' in text
    assert f'"asked": "nvml nvmlDeviceGetPersistenceMode {gpu_bdfs(box.lines)[1]}", "answer": ' in text
    assert '"asked": "text /sys/bus/pci/devices/' in text


def test_t_bounds_what_a_driver_may_take(served: Served, standin: Any) -> None:
    """``-t`` is nvidia-healthmon's limit of one test; the driver's stage is never longer than it."""
    box = served("dgx-1-v100", 3)
    ran = box.live(box.environment(standin, "hang nvmlInit"), *HEALTH, "-t", "4")
    assert ran.code == 2
    assert statuses(ran)["driver.responsive", None] == "fail"
    assert ran.seconds < 4 + SLACK + SPARE
