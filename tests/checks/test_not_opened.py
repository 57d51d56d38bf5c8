"""What NVML itself says of a GPU that it counts and does not open."""

from __future__ import annotations

from pathlib import Path

import pytest
from changed_box import document, off_the_bus
from test_health_checks import NVML, changed

from dgxcheck.cli import main
from dgxcheck.facts.missing import Json

CARD, OTHER = "0000:1a:00.0", "0000:1b:00.0"


def refusing(indexes: tuple[int, ...], code: int) -> dict[str, Json]:
    gap: dict[str, Json] = {"missing": "garbled", "detail": f"NVML {code}", "code": code}
    return {f"nvml nvmlDeviceGetHandleByIndex {index}": {**gap} for index in indexes}


@pytest.mark.parametrize(("code", "due"), [
    (8, ("fail", "gpu-unpowered", "power cables")), (11, ("fail", "gpu-refused", "INTx")),
    (999, ("fail", "gpu-lost", "")), (20, ("unknown", None, "nvidia-smi -L")),
])  # fmt: skip
def test_what_the_code_says(code: int, due: tuple[str, str | None, str], tmp_path: Path) -> None:
    found = document(tmp_path, "l40s-x8", refusing((0,), code))
    (bad,) = [each for each in found["findings"] if each["id"] == "gpu.lost" and each["status"] in ("fail", "unknown")]
    assert (bad["status"], bad["fault"], bad["subject"]["bdf"]) == (*due[:2], CARD)
    assert due[2] in bad["remedy"]
    assert [cause["id"] for cause in found["causes"]] == ([f"gpu/{CARD}"] if bad["fault"] else [])


def test_an_unknown_error_of_every_gpu_blames_none(tmp_path: Path) -> None:
    """It is the driver's, then."""
    found = document(tmp_path, "l40s-x8", refusing(tuple(range(8)), 999))
    assert {each["fault"] for each in found["findings"] if each["id"] == "gpu.lost"} == {None}


def test_the_driver_s_reason_comes_before_that_of_nvml(tmp_path: Path) -> None:
    line = f"NVRM: GPU {CARD}: GPU does not have the necessary power cables connected."
    (cause,) = document(tmp_path, "l40s-x8", refusing((0,), 999), (line,))["causes"]
    assert (cause["id"], cause["faults"]) == (f"gpu/{CARD}", ["gpu-unpowered"])


def test_several_answers_name_no_gpu(tmp_path: Path) -> None:
    """One of the two lacks its power, and nobody knows which."""
    found = document(tmp_path, "l40s-x8", {**refusing((0,), 8), **refusing((1,), 999)})
    bad = {each["subject"]["bdf"]: each["status"] for each in found["findings"]
           if each["id"] == "gpu.lost" and each["status"] in ("fail", "unknown")}  # fmt: skip
    assert bad == {CARD: "unknown", OTHER: "unknown"}


def test_of_two_that_nvml_does_not_open_one_left_the_bus(tmp_path: Path) -> None:
    found = document(tmp_path, "l40s-x8", {**refusing((0, 1), 20), **off_the_bus(CARD)})
    bad = {each["subject"]["bdf"]: each["fault"] for each in found["findings"]
           if each["id"] == "gpu.lost" and each["status"] in ("fail", "unknown")}  # fmt: skip
    assert bad == {CARD: "gpu-lost", OTHER: None}


def test_lines_without_a_bus_id_are_of_the_gpu_that_is_lost(tmp_path: Path) -> None:
    line = "NVRM: _issueRpcAndWait: rpcSendMessage failed with status 0x0000000f for fn 76!"
    lost: Json = {"missing": "lost", "detail": "NVML 15: GPU is lost", "code": 15}
    found = document(tmp_path, "dgx-station-a100", {"nvml nvmlDeviceGetHandleByIndex 2": lost}, (line,))
    assert [(cause["id"], len(cause["explains"])) for cause in found["causes"]] == [("gpu/0000:81:00.0", 2)]


@pytest.mark.parametrize(("argv", "code", "words"), [
    (("health", "-i", "2"), 2, "FAIL  GPU (0a:00.0): lost"),
    (("health", "-i", "9"), 3, "no GPU '9'; give the index, name, bus id or UUID of one of GPU0 (0000:06:00.0)"),
    (("health", "-i", "0", "--only", "gpu.lost"), 0, ""),
    (("topo", "--path", "GPU0", "nic1"), 0, "GPU0 (0000:06:00.0) - mlx5_1 (0000:0c:00.0): PHB"),
    (("topo", "--path", "GPU0", "nic4"), 3, "'nic4'"),
])  # fmt: skip
def test_devices_that_are_asked_for(
    argv: tuple[str, ...], code: int, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lost: Json = {"missing": "lost", "detail": "NVML 15: GPU is lost", "code": 15}
    assert main([*argv, "--from", changed(tmp_path, {f"{NVML}HandleByIndex 2": lost})]) == code
    assert words in "".join(capsys.readouterr())


def test_of_two_lost_gpus_the_number_says_not_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lost: Json = {"missing": "lost", "detail": "NVML 15: GPU is lost", "code": 15}
    path = changed(tmp_path, {f"{NVML}HandleByIndex {number}": lost for number in (2, 5)})
    assert main(["health", "-i", "2", "--from", path]) == 3
    assert "GPU 2 cannot be accessed: NVML 15: GPU is lost; 'dgxcheck topo' shows" in capsys.readouterr().err
