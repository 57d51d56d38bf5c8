"""Dumps of working boxes that third parties published: ``health`` raises no fail on any of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from sample import swept

from dgxcheck.cli import main

SHARED = ROOT.parent / "shared"
FOLDER = SHARED / "recordings" / "smi-q"
if not FOLDER.is_dir():  # a worktree lies one folder deeper
    FOLDER = ROOT.parent.parent / "shared" / "recordings" / "smi-q"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason=f"no recordings in {SHARED}")
INDEX = FOLDER / "index.tsv"
DUMPS = [line.split("\t") for line in INDEX.read_text(encoding="utf-8").splitlines()[1:]] if INDEX.is_file() else []
WARNED = {
    "a100-sxm4-40gb-mig-vm-510.xml": {"driver.persistence": 1},
    "a100-sxm4-80gb-mig-500w-535.xml": {"driver.persistence": 1},
    "b200-8x-580.xml": {"driver.persistence": 8},
    "dgx1-v100-32gb-470-163w-table-head.txt": {"power.limit": 2},
    "k80-4x-azure-430.xml": {"driver.persistence": 4, "ecc.retired-pages": 2},  # a double-bit page each
    "k80-4x-sdu-367-head.txt": {"driver.persistence": 1},
    "k80-4x-sdu-367-table.txt": {"driver.persistence": 4},
    "k80-809-head.txt": {"driver.persistence": 1},
    "k80-816-head.txt": {"driver.persistence": 1},
    "p100-pcie-16gb-1x-vm-510.xml": {"driver.persistence": 1},
    "p100-sxm2-16gb-4x-440.txt": {"driver.persistence": 4},
    "v100-sxm2-16gb-8x-vm-550.txt": {"gpu.uniform": 1},  # two VBIOS versions, four GPUs each
}
"""All else that is judged passes; the dumps of tables and heads tell little."""
PASSED = {
    "k80-4x-azure-430.xml": {"ecc.aggregate": 4, "ecc.retired-pages": 2, "gpu.uniform": 4, "clock.application": 4},
    "v100-sxm2-32gb-power9-418.txt": {"ecc.volatile": 1, "power.limit": 1, "thermal.temperature": 1},
    "a100-sxm4-40gb-mig-vm-510.xml": {"gpu.mig": 1, "ecc.aggregate": 1},
    "a100-sxm4-80gb-8x-525.txt": {"ecc.volatile": 8, "ecc.row-remap": 8, "gpu.uniform": 8, "gpu.inforom": 8},
    "h100-sxm-8x-580.xml": {"thermal.margin": 8, "driver.fabric": 8, "ecc.row-remap": 8, "gpu.reset-required": 8},
    "p100-sxm2-16gb-4x-440.txt": {"clock.throttle": 4, "gpu.uniform": 4, "thermal.outlier": 3, "ecc.mode": 4},
}
"""What a dump tells is judged, not skipped: on so many GPUs."""


def judged(slug: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    path = folder / "dump.json"
    assert main(["import", str(FOLDER / slug), "-o", str(path)]) == 0
    main(["health", "--format", "json", "--from", str(path)])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.mark.parametrize("slug", swept([row[0] for row in DUMPS], 4))
def test_a_working_box_raises_no_fail(slug: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    findings = judged(slug, tmp_path, capsys)["findings"]
    assert [each for each in findings if each["status"] in ("fail", "unknown")] == []
    assert Counter(each["id"] for each in findings if each["status"] == "warn") == WARNED.get(slug, {})


@pytest.mark.parametrize("slug", PASSED)
def test_what_a_dump_tells_is_judged(slug: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    findings = judged(slug, tmp_path, capsys)["findings"]
    passed = Counter(each["id"] for each in findings if each["status"] == "pass")
    assert PASSED[slug].items() <= passed.items()


def test_errors_of_a_working_board_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    findings = judged("k80-4x-azure-430.xml", tmp_path, capsys)["findings"]
    counts = [each["measured"] for each in findings if each["id"] == "ecc.aggregate"]
    assert max(counts) == 7
