"""Every shipped fault gives exactly the findings that it says, every healthy box none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from judging import BAD, judged
from sample import BOXES, FAULTS

from dgxcheck.checks.registry import CHECKS

EXIT_CODE = {"pass": 0, "warn": 1, "fail": 2, "unknown": 3}
WITHOUT_FAULT = {
    "thermal.margin",  # no shipped board tells margins
    "gpu.memory-size", "clock.max",  # nobody reports a board that has less than its model
    "host.numa-balancing",  # for information alone
    "site.versions",  # of the configuration
    "measure.burn-in", "baseline.drift",  # of no box as it ships
    "gdr.path", "gdr.port",  # told by network.hca-placement and network.port-state
}  # fmt: skip
NOWHERE = {"thermal.margin", "power.violation", "site.versions"}  # no dump shows either, nothing is pinned
NO_FIRMWARE = {"network.firmware"}  # in no published dump
NO_HCA = {"network.hca-placement", "network.firmware", "network.port-state", "network.port-rate", "network.port-errors",
          "kernel.hca", "kernel.port-module"}  # fmt: skip
UNASKED = {"measure.burn-in", "baseline.drift"}  # say nothing where nobody asked
UNMEASURED = {check.id for check in CHECKS if check.id.startswith("measure.")} - UNASKED  # no box that ships
NO_RDMA = {check.id for check in CHECKS if check.id.startswith("gdr.")}
NO_NVLINK = {"nvlink.state", "nvlink.graph", "nvlink.symmetry", "nvlink.errors"}
NOT_BEFORE_AMPERE = NOWHERE | {"ecc.row-remap", "gpu.reset-required", "gpu.mig", "driver.fabric"}
SKIPPED = {
    "dgx-1-p100": NOT_BEFORE_AMPERE | NO_FIRMWARE,
    "dgx-1-v100": NOT_BEFORE_AMPERE | NO_FIRMWARE,
    "dgx-a100": NOWHERE
    | NO_FIRMWARE
    | {"ecc.retired-pages", "ecc.retirement-pending", "host.ethernet"}
    | {"nvlink.graph", "nvlink.symmetry"},  # through NVSwitches
    "dgx-station-v100": NOT_BEFORE_AMPERE
    | NO_HCA
    | NO_RDMA
    | {"topology.numa"}  # one node
    | {"pcie.replay"}  # no dump of such a board shows it, nor the next
    | {"ecc.aggregate", "ecc.retired-pages", "ecc.retirement-pending"}  # no dump of such a board shows these
    | {"clock.throttle", "clock.application", "power.limit", "thermal.temperature", "gpu.inforom"}
    | {"clock.max", "network.hca-count"},
    "k80-x8": NOT_BEFORE_AMPERE
    | NO_FIRMWARE
    | NO_NVLINK
    | {"pcie.generation"}  # idle at gen1
    | {"gdr.path", "gdr.acs", "gdr.max-payload"}  # its HCA is on a root port of its own
    | {"host.memory", "host.disks", "host.ethernet"},
}
"""What a healthy box cannot be judged by; all else must pass, on every GPU."""


def found(document: dict[str, Any]) -> set[tuple[str, str | None, str]]:
    return {(each["id"], each["subject"]["bdf"], each["status"]) for each in document["findings"]}


@pytest.mark.parametrize("box", BOXES)
def test_a_healthy_box_passes(box: str) -> None:
    code, document = judged(box)
    assert (code, document["verdict"]) == (0, "pass")
    passed = {each["id"] for each in document["findings"] if each["status"] == "pass"}
    skipped = {each["id"] for each in document["findings"] if each["status"] == "skip"}
    assert skipped == SKIPPED[box] | UNMEASURED
    assert passed == {check.id for check in CHECKS} - skipped - UNASKED


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_and_nothing_else(name: str) -> None:
    overlay = json.loads(Path(FAULTS[name]).read_text(encoding="utf-8"))
    assert overlay["sources"]
    due = {(each["id"], each["bdf"], each["status"]) for each in overlay["expect"]["findings"]}
    code, document = judged(name)
    assert {each for each in found(document) if each[2] in BAD} == due
    assert code == EXIT_CODE[document["verdict"]] == max((EXIT_CODE[status] for _, _, status in due), default=0)
    assert all(each["remedy"] and each["evidence"] for each in document["findings"] if each["status"] in BAD)


def statuses(document: dict[str, Any]) -> dict[str, set[str]]:
    """Of each check, how it ended for its subjects."""
    ended: dict[str, set[str]] = {}
    for each in document["findings"]:
        ended.setdefault(each["id"], set()).add(each["status"])
    return ended


@pytest.mark.parametrize("name", FAULTS)
def test_an_overlay_says_what_is_to_blame_and_what_skips(name: str) -> None:
    overlay = json.loads(Path(FAULTS[name]).read_text(encoding="utf-8"))
    expect = overlay["expect"]
    bdfs = {each["bdf"] for each in expect["findings"]} - {None}
    assert expect["component"]
    assert expect["component"].startswith("none: ") == (not expect["findings"])
    assert not bdfs or any(bdf in expect["component"] for bdf in bdfs)
    here, healthy = (statuses(judged(spec)[1]) for spec in (name, overlay["base"]))
    gone = {check for check, ended in healthy.items() if ended == {"pass"} and here.get(check) == {"skip"}}
    assert gone <= set(expect["skips"])
    assert {check for check in expect["skips"] if "skip" not in here[check] or "pass" not in healthy[check]} == set()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_hides_no_other_gpu(name: str) -> None:
    """GPUs without a finding are judged as on the healthy box, unless the driver as a whole is gone."""
    _, document = judged(name)
    overlay = json.loads(Path(FAULTS[name]).read_text(encoding="utf-8"))
    bad = {bdf for _, bdf, status in found(document) if status in BAD}
    of_all = {"driver.library", "driver.fabric"} & {check for check, _, status in found(document) if status == "fail"}
    if of_all or len(bad) == 8:
        assert document["summary"]["skip"] > 40
        return
    _, healthy = judged(overlay["base"])
    there = {each["subject"]["bdf"] for each in document["findings"]}
    late = {each["subject"]["bdf"] for each in document["findings"] if each["reason"] == "dependency-failed"}
    skips = set(overlay["expect"]["skips"])
    gpus = [each for each in healthy["findings"] if each["subject"]["kind"] == "gpu" and each["peer"] is None]
    others = {each for each in found({"findings": gpus}) if each[1] in there - bad - late and each[0] not in skips}
    assert len(others) > 50
    assert others - {("driver.responsive", None, "pass")} <= found(document)


def test_every_check_has_a_fault_that_it_finds() -> None:
    documents = [json.loads(Path(path).read_text(encoding="utf-8")) for path in FAULTS.values()]
    due = {each["id"] for document in documents for each in document["expect"]["findings"]}
    assert {check.id for check in CHECKS} - due == WITHOUT_FAULT  # no burn-in ships
