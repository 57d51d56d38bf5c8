"""What health --from says of a text alone: JSON that was cut, a driver that nvidia-smi cannot reach, nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dgxcheck.assessment.opening import open_source
from dgxcheck.cli import main
from dgxcheck.facts.missing import BadInput

CUT = """{
  "DCGM GPU Diagnostic": {
    "test_categories": [
      {
        "category": "Integration",
        "tests": [
          {"name": "PCIe", "results": [{"status": "FAIL", "gpu_ids": "3", "warnings": ["GPU 3 is slow"]}]},
          {"name": "Memory", "results": [{"gpu_ids": "0", "sta
"""


def test_a_diagnosis_that_was_cut_is_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "diag.json"
    file.write_text(CUT)
    assert main(["health", "--from", str(file), "--fail-on", "fail"]) == 2
    assert "GPU 3 is slow" in capsys.readouterr().out


def test_a_damaged_recording_stays_one(tmp_path: Path) -> None:
    file = tmp_path / "box.json"
    file.write_text(CUT.replace("{", '{\n"schema": "dgxcheck/recording/1",', 1))
    with pytest.raises(BadInput, match="damaged recording"):
        open_source(str(file))


def test_an_empty_text_is_called_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "nothing.txt"
    file.write_text("\n")
    assert main(["import", "--show", str(file)]) == 3
    said = capsys.readouterr()
    assert "nothing.txt: 1 line\n" in said.out
    assert "nothing.txt: file is empty\n" in said.err


def test_a_driver_that_nvidia_smi_cannot_reach_is_to_blame(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing else is known of the machine; where nothing was asked of NVML, nothing is blamed."""
    file = tmp_path / "mail.txt"
    file.write_text("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n")
    assert main(["health", "--from", str(file), "--format", "json"]) == 2
    document = json.loads(capsys.readouterr().out)
    assert [cause["component"]["kind"] for cause in document["causes"]] == ["driver"]
    assert "gpu.count" not in [found["check"] for found in document["findings"] if found["status"] == "unknown"]
