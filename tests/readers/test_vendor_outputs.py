"""What NVIDIA's tools printed on the machine of a recording, beside what dgxcheck recorded there a moment later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checkout import ROOT

from dgxcheck.cli import main
from dgxcheck.facts.missing import Json
from dgxcheck.source.recording.keys import flatten

VENDOR = ROOT / "tests" / "vendor"
OTHERWISE = (
    "MemoryInfo", "BAR1MemoryInfo",  # in MiB
    "FieldValues 0000:00:06.0 82", "MarginTemperature", "PowerUsage", "Temperature ",  # they move
    "GetSerial", "GetUUID",  # pseudonyms
    "GpuFabricInfo", "PlatformInfo", "DisplayMode",  # N/A or deprecated in nvidia-smi, zeros in NVML
)  # fmt: skip


def facts(path: Path) -> dict[str, Json]:
    return flatten(json.loads(path.read_text(encoding="utf-8"))["facts"])


def agree(told: Json, recorded: Json) -> bool:
    """A gap has words of each tool's own; of a structure the text has some members."""
    if not isinstance(told, dict) or not isinstance(recorded, dict):
        return told == recorded
    shared = ("missing",) if "missing" in told else tuple(told)
    return all(told[name] == recorded.get(name) for name in shared)


def test_every_value_of_nvidia_smi_is_that_of_the_recording(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", str(VENDOR / "h100.nvidia-smi-q.txt"), "-o", str(tmp_path / "q.json")]) == 0
    assert "not read" not in capsys.readouterr().err
    told, recorded = facts(tmp_path / "q.json"), facts(ROOT / "fixtures" / "h100.json")
    asked = {key: value for key, value in told.items() if key.startswith("nvml ")}
    held = {key: value for key, value in asked.items() if not any(name in key for name in OTHERWISE)}
    assert len(held) > 60
    assert {key: (value, recorded[key]) for key, value in held.items() if not agree(value, recorded[key])} == {}


def test_the_matrix_is_that_of_nvidia_smi_byte_for_byte(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topo", "--format", "nvidia-smi", "--from", "h100"]) == 0
    assert capsys.readouterr().out.startswith((VENDOR / "h100.nvidia-smi-topo-m.txt").read_text(encoding="utf-8"))
