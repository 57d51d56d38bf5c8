"""What a terminal shows while the machine is measured or under load, line by line."""

from __future__ import annotations

import pytest

from dgxcheck.assessment.progress import HostNow
from dgxcheck.facts.missing import Json
from dgxcheck.output.progress import BurningIn, Measuring

KEYS = [f"measure {kind} 0000:0{gpu}:00.0" for gpu in (6, 7) for kind in ("host-to-device", "compute")]
HOST = HostNow(cpu_percent=12.4, load=3.25, memory_available=100 << 30, memory_total=503 << 30)
CALM: dict[str, Json] = {
    "temperature": 61, "power_w": 287.4, "sm_clock": 1380, "reasons": 0, "dbe": 0, "sbe": 5, "replays": 1,
}  # fmt: skip


def test_measurements_show_what_runs_what_comes_and_the_figures_so_far() -> None:
    shown = Measuring(KEYS)
    assert shown.lines(0.0, 80, 24)[:2] == ["[--------------------] 0 of 4 measured, -:-- left", "now   starting CUDA"]
    shown.figure(KEYS[0], {"value": 11.9, "unit": "GB/s"})
    shown.figure(KEYS[2], {"value": 12.3, "unit": "GB/s"})
    shown.figure(KEYS[1], {"failed": "died: SIGSEGV"})
    shown.figure("measure latency 0000:06:00.0 0000:07:00.0", {"value": 1.25, "unit": "us"})
    shown.figure("measure cuda all", {"value": 1, "unit": "x"})
    shown.figure(KEYS[3], {"skipped": "busy"})
    shown.step(KEYS[1], 1)
    shown.host = HOST
    assert shown.lines(20.0, 100, 24) == [
        "[#####---------------] 1 of 4 measured, 1:00 left",
        "now   compute 0000:06:00.0",
        "next  host-to-device 0000:07:00.0, compute 0000:07:00.0",
        "host  CPUs 12 % busy, load average 3.2, 100.0 of 503.0 GiB memory available",
        "  host-to-device  2 measured  11.9 to 12.3 GB/s",
        "  latency         1 measured  1.25 us",
        "  compute         1 failed",
    ]


def test_figures_that_are_measured_again() -> None:
    shown = Measuring(KEYS)
    shown.step(KEYS[0], 4)
    assert shown.lines(20.0, 80, 24)[0] == "[####################] measuring low figures again, -:-- left"


def test_a_burn_in_has_a_row_per_gpu() -> None:
    shown = BurningIn(600)
    shown.event({"event": "sample", "under_load_s": -1.0, "gpus": {"0000:06:00.0": CALM, "0000:07:00.0": CALM}})
    hot: dict[str, Json] = {**CALM, "temperature": 85, "reasons": 0x40 | 0x4, "dbe": 1, "sbe": 7, "sm_clock": None}
    second: dict[str, Json] = {"0000:06:00.0": hot, "0000:07:00.0": {"lost": True}}
    shown.event({"event": "sample", "under_load_s": 60.0, "gpus": second})
    shown.event({"event": "aer", "gpu": "0000:06:00.0", "text": "1 new fatal\x1b PCIe error", "under_load_s": 61.0})
    shown.event({"event": "started", "gpu": None, "text": "GPUs under load: 2", "under_load_s": 0.0})
    shown.moment(60.0, "fma", "fail: GPU0 1 new")
    shown.host = HOST
    assert shown.lines(120, 24) == [
        "[##------------------] 1:00 under load, 9:00 left; turn fma",
        "fail: GPU0 1 new",
        "host  CPUs 12 % busy, load average 3.2, 100.0 of 503.0 GiB memory available",
        "GPU           power  temp   SM clock  throttle                              errors",
        "0000:06:00.0  287 W  85 °C  ?         hardware thermal slowdown, power cap  1 uncorrected, 2 corrected",
        "0000:07:00.0                          stopped responding",
        "1:01 0000:06:00.0 1 new fatal\ufffd PCIe error",
        "0:00 GPUs under load: 2",
    ]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 8), (20, 4)])
def test_what_is_shown_fits_the_terminal(width: int, height: int) -> None:
    burning, measuring = BurningIn(600), Measuring(KEYS)
    burning.host = measuring.host = HOST
    burning.event({"event": "sample", "gpus": {f"0000:{bus:02x}:00.0": CALM for bus in range(16)}})
    for lines in (burning.lines(width, height), measuring.lines(5.0, width, height)):
        assert max(map(len, lines)) <= width
    assert len(burning.lines(80, 24)) < 24
    assert len(burning.lines(80, 12)) < 12
    assert "and 10 more GPUs" in burning.lines(80, 12)[-1]


def test_values_that_are_not_known_are_no_zeros() -> None:
    shown = BurningIn(60)
    shown.event({"event": "sample", "gpus": {"0000:06:00.0": {"temperature": None}}})
    assert shown.lines(80, 24)[-1].split() == ["0000:06:00.0", "?", "?", "?", "?", "?"]
