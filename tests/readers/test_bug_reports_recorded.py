"""Real bug reports of many eras: what a human reads in each is what health and topo say of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from seam import run

FOLDER = next(
    (up / "shared/recordings/bug-reports" for up in Path(__file__).parents if (up / "shared/recordings").is_dir()),
    Path("none"),
)
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no recordings beside this checkout")
A6000 = "535-2x-a6000-lambda-vector.log.gz"
RTX3080 = "535-2x-rtx3080.log.gz"
NOUVEAU = "nodriver-a5000-precision5820.log.gz"
FALLEN = "418-quadro-fallen-off-bus.log.gz"
CUT = "575-cut-after-head.log.gz"
READ = {
    A6000: ("pass", set()),
    RTX3080: ("warn", {"pcie.replay", "gpu.uniform", "tools.reports"}),
    CUT: ("unknown", set()),
    NOUVEAU: ("fail", {"driver.bound", "tools.reports"}),
    "430-1080ti-z10ped8.log.gz": ("pass", set()),
    "352-titanx-2015-plain.log": ("warn", {"host.clock-source"}),  # TSC unstable: check_tsc_sync_source failed
    FALLEN: ("fail", {"driver.library", "kernel.off-bus"}),
}
"""Verdict, and the checks that warn or fail."""


@pytest.fixture
def judged(capsys: pytest.CaptureFixture[str]) -> Any:
    def judge(name: str) -> Any:
        done = run(capsys, "health", "--format", "json", "--from", str(FOLDER / name))
        assert "Traceback" not in done.err
        return json.loads(done.out)

    return judge


@pytest.fixture
def wired(capsys: pytest.CaptureFixture[str]) -> Any:
    def show(name: str) -> Any:
        done = run(capsys, "topo", "--format", "json", "--from", str(FOLDER / name))
        return json.loads(done.out)

    return show


def test_every_report_is_here() -> None:
    assert {path.name for path in FOLDER.glob("*.log*")} == set(READ)


@pytest.mark.parametrize("name", READ)
def test_the_verdict_is_what_a_human_reads(name: str, judged: Any) -> None:
    document = judged(name)
    bad = {finding["id"] for finding in document["findings"] if finding["status"] in ("warn", "fail")}
    assert (document["verdict"], bad) == READ[name]
    assert document["source"]["kind"] == "report"
    skips = [finding for finding in document["findings"] if finding.get("reason") == "not-recorded"]
    said = [finding["message"] for finding in skips if finding["message"].startswith(("/", "nvml", "measure"))]
    assert said
    assert all(message.endswith("not in the bug report") for message in said)


@pytest.mark.parametrize("name", [NOUVEAU, CUT])
def test_a_driver_that_is_not_there_blames_no_hardware(name: str, judged: Any) -> None:
    assert all(cause["component"]["kind"] in ("driver", "host") for cause in judged(name)["causes"])


def test_the_wiring_comes_from_lspci_and_nvlink(wired: Any) -> None:
    lambda_vector = wired(A6000)
    assert [gpu["bdf"] for gpu in lambda_vector["devices"]] == ["0000:2e:00.0", "0000:41:00.0"]
    assert [(link["label"], link["pci"]) for link in lambda_vector["links"]] == [("NV4", "NODE")]
    assert [link["label"] for link in wired(RTX3080)["links"]] == ["PHB"]


def test_the_gpu_that_replays_is_named(judged: Any) -> None:
    (finding,) = [
        each for each in judged(RTX3080)["findings"] if each["id"] == "pcie.replay" and each["status"] == "warn"
    ]
    assert finding["subject"]["bdf"] == "0000:03:00.0"
    assert finding["measured"] == 538


def test_a_cut_report_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "health", "--from", str(FOLDER / CUT))
    assert done.code == 3
    assert "is cut off: its end is missing" in done.out


def test_a_cut_report_is_a_finding_of_its_own(judged: Any) -> None:
    (finding,) = [each for each in judged(CUT)["findings"] if each["id"] == "report.complete"]
    assert finding["status"] == "unknown"


def test_events_of_several_boots_are_told_apart(judged: Any) -> None:
    """kern.log holds 63 boots, the driver lost the GPU in five of them, and not in the one that was running."""
    (finding,) = [each for each in judged(FALLEN)["findings"] if each["id"] == "kernel.off-bus"]
    assert finding["measured"] == 5
