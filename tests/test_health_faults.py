"""Every shipped fault gives exactly the findings that it says, every healthy box none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dgxcheck.checks.catalogue import CHECKS
from dgxcheck.cli import main
from dgxcheck.source.library import shipped

FAULTS = {name: path for name, path in shipped() if "faults" in Path(path).parts}
BOXES = [name for name, _ in shipped() if name not in FAULTS]
BAD = ("warn", "fail", "unknown")
EXIT_CODE = {"pass": 0, "warn": 1, "fail": 2, "unknown": 3}
NOT_BEFORE_AMPERE = {"ecc.row-remap", "gpu.reset-required"}
NO_PROFILE = {"nvlink.state", "nvlink.graph", "topology.profile", "network.hca-count", "network.hca-placement"}
"""Until a profile is chosen: then out of the sets below, but for what stands there as well."""
NO_GROWTH = {"pcie.replay", "pcie.aer", "nvlink.errors", "network.port-errors"}
"""Until counters are read twice, likewise."""
NO_FIRMWARE = {"network.firmware"}  # in no published dump
NO_HCA = {"network.hca-placement", "network.firmware", "network.port-state", "network.port-rate", "network.port-errors"}
NO_NVLINK = {"nvlink.state", "nvlink.graph", "nvlink.symmetry", "nvlink.errors"}
SKIPPED = {
    "dgx-1-p100": NOT_BEFORE_AMPERE | NO_PROFILE | NO_GROWTH | NO_FIRMWARE,
    "dgx-1-v100": NOT_BEFORE_AMPERE | NO_PROFILE | NO_GROWTH | NO_FIRMWARE,
    "dgx-a100": {"ecc.retired-pages", "ecc.retirement-pending"}
    | NO_PROFILE
    | NO_GROWTH
    | NO_FIRMWARE
    | {"nvlink.graph", "nvlink.symmetry"},  # through NVSwitches
    "dgx-station-v100": NOT_BEFORE_AMPERE
    | NO_PROFILE
    | NO_GROWTH
    | NO_HCA
    | {"topology.numa"}  # one node
    | {"pcie.replay"}  # no dump of such a board shows it, nor the next
    | {"ecc.aggregate", "ecc.retired-pages", "ecc.retirement-pending"}  # no dump of such a board shows these
    | {"clock.throttle", "power.limit", "thermal.temperature"},
    "k80-x8": NOT_BEFORE_AMPERE
    | NO_PROFILE
    | NO_GROWTH
    | NO_FIRMWARE
    | NO_NVLINK
    | {"pcie.generation"},  # idle at gen1
}
"""What a healthy box cannot be judged by; all else must pass, on every GPU."""


def judged(capsys: pytest.CaptureFixture[str], spec: str, *argv: str) -> tuple[int, dict[str, Any]]:
    code = main(["health", "--format", "json", "--from", spec, *argv])
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, document


def found(document: dict[str, Any]) -> set[tuple[str, str | None, str]]:
    return {(each["id"], each["subject"]["bdf"], each["status"]) for each in document["findings"]}


@pytest.mark.parametrize("box", BOXES)
def test_a_healthy_box_passes(box: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = judged(capsys, box)
    assert (code, document["verdict"]) == (0, "pass")
    passed = {each["id"] for each in document["findings"] if each["status"] == "pass"}
    skipped = {each["id"] for each in document["findings"] if each["status"] == "skip"}
    assert skipped == SKIPPED[box]
    assert passed == {check.id for check in CHECKS} - skipped


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_nothing_else(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    overlay = json.loads(Path(FAULTS[name]).read_text(encoding="utf-8"))
    assert overlay["sources"]
    due = {(each["id"], each["bdf"], each["status"]) for each in overlay["expect"]["findings"]}
    code, document = judged(capsys, name)
    assert {each for each in found(document) if each[2] in BAD} == due
    assert code == EXIT_CODE[document["verdict"]] == max(EXIT_CODE[status] for _, _, status in due)
    assert all(each["remedy"] and each["evidence"] for each in document["findings"] if each["status"] in BAD)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_hides_no_other_gpu(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """GPUs without a finding are judged as on the healthy box, unless the driver as a whole is gone."""
    _, document = judged(capsys, name)
    base = json.loads(Path(FAULTS[name]).read_text(encoding="utf-8"))["base"]
    bad = {bdf for _, bdf, status in found(document) if status in BAD}
    if "driver.library" in {check for check, _, status in found(document) if status == "fail"} or len(bad) == 8:
        assert document["summary"]["skip"] > 50
        return
    _, healthy = judged(capsys, base)
    late = {each["subject"]["bdf"] for each in document["findings"] if each["reason"] == "dependency-failed"}
    gpus = [each for each in healthy["findings"] if each["subject"]["kind"] == "gpu" and each["peer"] is None]
    others = {each for each in found({"findings": gpus}) if each[1] not in bad | late}
    assert len(others) > 50
    assert others - {("driver.responsive", None, "pass")} <= found(document)


def test_every_check_has_a_fault_that_it_finds() -> None:
    documents = [json.loads(Path(path).read_text(encoding="utf-8")) for path in FAULTS.values()]
    due = {each["id"] for document in documents for each in document["expect"]["findings"]}
    assert {check.id for check in CHECKS} - due == {"ecc.aggregate"}  # for information alone
