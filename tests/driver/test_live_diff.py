"""``diff`` of a recording and this machine: the live facts are those of the recording, and a fault is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from live_box import Box, gpu_bdfs

Served = Callable[..., Box]
DIFF = ("diff", "--profile", "none", "--format", "json")


def test_a_machine_is_what_was_recorded_of_it(served: Served, standin: Any) -> None:
    box = served("dgx-1-v100", 3)
    ran = box.live(box.environment(standin), *DIFF, str(box.recording), "live")
    document: dict[str, Any] = ran.json
    assert (ran.code, ran.err) == (0, "")
    assert [each for each in document["differences"] if each["kind"] != "neutral"] == []
    assert document["new"]["source"]["kind"] == "live"


def test_a_gpu_that_nvml_no_longer_lists_is_told(served: Served, standin: Any) -> None:
    box = served("dgx-1-v100", 3)
    ran = box.live(box.environment(standin, "error 15 * 1"), *DIFF, str(box.recording), "live")
    document: dict[str, Any] = ran.json
    gone = gpu_bdfs(box.lines)[1]
    assert ran.code == 1
    assert {(each["what"].partition("/")[0], each["bdf"]) for each in document["differences"]
            if each["kind"] == "worse"} == {("nvml-listed", gone), ("gpu.lost", gone)}  # fmt: skip


def test_a_baseline_judges_this_machine(served: Served, standin: Any) -> None:
    box = served("dgx-1-v100", 3)
    argv = ("health", "--profile", "none", "--only", "baseline", "--baseline", str(box.recording), "--format", "json")
    ran = box.live(box.environment(standin), *argv)
    document: dict[str, Any] = ran.json
    assert (ran.code, [each["status"] for each in document["findings"]]) == (0, ["pass"])
