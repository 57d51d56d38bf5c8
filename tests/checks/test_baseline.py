"""``health --baseline``: what is worse than in an earlier recording, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from read_box import box
from sample import BOXES
from schemas import complaints
from test_probe_dimms import module

from dgxcheck.checks.baseline import _subject
from dgxcheck.cli import main
from dgxcheck.difference.model import Change, Difference
from dgxcheck.facts.sysfs import SMBIOS
from dgxcheck.source.recording.keys import to_rows

Capture = pytest.CaptureFixture[str]


def drift(capsys: Capture, source: str, baseline: str | None, *more: str) -> tuple[int, list[dict[str, Any]]]:
    argv = ["health", "--only", "baseline", "--format", "json", "--from", source, *more]
    code = main([*argv, *(["--baseline", baseline] if baseline else [])])
    document = json.loads(capsys.readouterr().out)
    assert complaints("health", document) == []
    return code, document["findings"]


def test_a_box_that_is_what_it_was_passes(capsys: Capture) -> None:
    code, findings = drift(capsys, "dgx-1-v100", "dgx-1-v100")
    assert (code, [each["key"] for each in findings]) == (0, ["baseline.drift"])
    assert findings[0]["message"] == "nothing is worse than in the baseline"


def test_a_baseline_of_another_machine_is_no_fault(capsys: Capture) -> None:
    code, (found,) = drift(capsys, "dgx-h100", "dgx-a100")
    assert (code, found["status"], found["message"]) == (
        3, "unknown", "the baseline is of another machine: 8 x NVIDIA A100-SXM4-40GB"
    )  # fmt: skip


def test_what_is_neither_worse_nor_better_passes(capsys: Capture) -> None:
    code, (found,) = drift(capsys, "dgx-1-v100-mixed-vbios", "dgx-1-v100")
    assert (code, found["status"]) == (0, "pass")
    assert "1 other difference " in found["message"]


@pytest.mark.parametrize(
    ("source", "key", "status"),
    [
        ("dgx-1-v100-gpu-missing", "baseline.drift/0000:0b:00.0/device", "fail"),
        ("dgx-1-v100-hca-missing", "baseline.drift/0000:0c:00.0/device", "fail"),
        ("dgx-1-v100-disk-missing", "baseline.drift/sdb/disk", "fail"),
        ("dgx-1-v100-switch-x8", "baseline.drift/0000:08:00.0/link-width", "warn"),
        ("dgx-1-v100-nvlink-down", "baseline.drift/0000:0a:00.0/nvlinks/0000:0b:00.0", "warn"),
        ("dgx-1-v100-cores-offline", "baseline.drift/cpu-cores", "warn"),
    ],
)
def test_what_is_worse_warns_and_what_is_lost_fails(source: str, key: str, status: str, capsys: Capture) -> None:
    code, findings = drift(capsys, source, "dgx-1-v100")
    assert (key, status) in [(each["key"], each["status"]) for each in findings]
    assert {each["status"] for each in findings} == {status}
    assert code == {"fail": 2, "warn": 1}[status]
    assert len({each["key"] for each in findings}) == len(findings)


@pytest.mark.parametrize(("source", "key", "kind", "component"), [
    ("dgx-1-v100-hca-x8", "0000:0c:00.0/link-width", "hca", "hca/0000:0c:00.0"),
    ("dgx-1-v100-edac-uncorrected", "mc1/uncorrected-memory-errors", "host", "host/host/memory/mc1"),
    ("dgx-a100-md-degraded", "md0/members-missing", "disk", "disk/md0"),
    ("dgx-h100 text /sys/class/net/enp11s0/speed", "0000:0b:00.0/speed", "interface", "interface/0000:0b:00.0"),
])  # fmt: skip
def test_what_is_worse_is_blamed_on_what_it_is(
    source: str, key: str, kind: str, component: str, tmp_path: Path, capsys: Capture
) -> None:
    base, _, fact = source.partition(" ")
    if fact:
        source = str(tmp_path / "slow.json")
        Path(source).write_text(json.dumps({"schema": "dgxcheck/overlay/1", "base": base, "facts": {fact: "1000\n"}}))
    argv = ["health", "--only", "baseline", "--format", "json", "--from", source]
    main([*argv, "--baseline", next(name for name in BOXES if base == name or base.startswith(f"{name}-"))])
    document = json.loads(capsys.readouterr().out)
    (found,) = [each for each in document["findings"] if each["key"] == f"baseline.drift/{key}"]
    assert (found["status"], found["subject"]["kind"]) == ("warn", kind)
    assert component in [cause["id"] for cause in document["causes"]]


def _difference(what: str, name: str, bdf: str | None, gone: bool = True) -> Difference:
    change: Change = "gone" if gone else "changed"
    return Difference(kind="worse", area="hardware", change=change, device=name, bdf=bdf, what=what, old=None, new=None,
                      message="words")  # fmt: skip


@pytest.mark.parametrize(("difference", "due"), [
    (_difference("device", "GPU3", "0000:0b:00.0"), ("gpu", "GPU3", "device")),
    (_difference("device", "GPU9", None), ("gpu", "GPU9", "device")),  # of a text without bus ids
    (_difference("device", "mlx5_0", None), ("hca", "mlx5_0", "device")),
    (_difference("dimm", "DIMM_A1", None), ("host", "host", "DIMM_A1/dimm")),
    (_difference("disk", "sda", None), ("disk", "sda", "disk")),
    (_difference("pci-function", "0000:ff:00.0", "0000:ff:00.0"), ("pci", "0000:ff:00.0", "pci-function")),
    (_difference("link-width", "0000:ff:00.0", "0000:ff:00.0", gone=False), ("pci", "0000:ff:00.0", "link-width")),
    (_difference("listed", "GPU3", "0000:0b:00.0", gone=False), ("gpu", "GPU3", "listed")),
    (_difference("size", "mc0", None, gone=False), ("host", "host", "mc0/size")),
    (_difference("speed", "ib0", "0000:05:00.0", gone=False), ("interface", "ib0", "speed")),
])  # fmt: skip
def test_what_a_difference_is_of(difference: Difference, due: tuple[str, str, str]) -> None:
    subject = _subject(box("dgx-1-v100"), difference)
    assert (subject.kind, subject.name, subject.part) == due


def test_memory_that_is_missing_is_part_of_the_host(tmp_path: Path, capsys: Capture) -> None:
    for name, slots in (("old", ("A1", "B1")), ("new", ("A1",))):
        table = to_rows(b"".join(module(slot, "12AB34CD") for slot in slots))
        box = {"schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": {f"data {SMBIOS}": table}}
        (tmp_path / f"{name}.json").write_text(json.dumps(box))
    _, (found,) = drift(capsys, str(tmp_path / "new.json"), str(tmp_path / "old.json"))
    assert (found["status"], found["subject"]["kind"], found["key"].endswith("B1/dimm")) == ("fail", "host", True)


def test_what_could_not_be_compared_is_named(capsys: Capture) -> None:
    _, (found,) = drift(capsys, "dgx-1-v100", "dgx-1-v100-no-nvml")
    assert found["status"] == "pass"
    assert "not compared: GPUs in NVML" in found["message"]


def test_what_has_been_cured_passes(capsys: Capture) -> None:
    code, (found,) = drift(capsys, "dgx-1-v100", "dgx-1-v100-gpu-missing")
    assert (code, found["status"]) == (0, "pass")


def test_of_the_gpus_asked_about(capsys: Capture) -> None:
    assert [each["status"] for each in drift(capsys, "dgx-1-v100-gpu-x8", "dgx-1-v100", "-i", "2")[1]] == ["warn"]
    assert [each["status"] for each in drift(capsys, "dgx-1-v100-gpu-x8", "dgx-1-v100", "-i", "1")[1]] == ["pass"]


def test_without_a_baseline_nothing_is_said(capsys: Capture) -> None:
    assert main(["health", "--format", "json", "--from", "dgx-1-v100"]) == 0
    assert "baseline" not in capsys.readouterr().out
    assert drift(capsys, "dgx-1-v100", None) == (3, [])
    assert main(["health", "--explain", "baseline.drift"]) == 0
    assert "With --baseline" in capsys.readouterr().out


def test_it_cannot_be_required_without_one(capsys: Capture) -> None:
    assert main(["health", "--require", "baseline.drift", "--from", "dgx-1-v100"]) == 3
    assert "requires --baseline FILE" in capsys.readouterr().err


def test_what_is_no_recording_is_refused(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "report.json"
    main(["health", "--format", "json", "--from", "dgx-1-v100", "-o", str(path)])
    assert main(["health", "--baseline", str(path), "--from", "dgx-1-v100"]) == 3
    assert "a result of dgxcheck health, not a recording" in capsys.readouterr().err


def test_whole_reports_with_one(capsys: Capture) -> None:
    """Causes and every format take the findings of this check too."""
    for form in ("text", "prometheus", "nagios", "junit"):
        argv = ["health", "--from", "dgx-1-v100-gpu-missing", "--baseline", "dgx-1-v100", "--format", form]
        assert main(argv) == 2
        assert "baseline.drift" in capsys.readouterr().out
