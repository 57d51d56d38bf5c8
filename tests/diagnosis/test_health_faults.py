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
    "gpu.memory-size",  # nobody reports a board that has less than its model
    "report.complete", "tools.reports", "nvlink.matrix",  # of bug reports and of what other tools printed
    "site.versions",  # of the configuration
    "host.inventory", "host.last-run",  # against the state file of a live machine
    "baseline.drift",  # of no box as it ships
    "gdr.path", "gdr.port",  # reported by network.hca-placement and network.port-state
    "nvlink.switch-port",  # seen in growth alone: test_checks_hcas.py
}  # fmt: skip
UNASKED = {"measure.burn-in", "baseline.drift", "report.complete", "tools.reports", "nvlink.matrix"}
"""Say nothing where nobody asked."""
DRIVERLESS = (
    "dgx-1-v100-mismatch", "dgx-1-v100-no-nvml", "dgx-1-v100-nouveau", "dgx-2-driver-not-loaded",
    "dgx-2-open-modules",
    "dgx-1-v100-no-gpu-starts",
)  # fmt: skip
"""Their ``skips`` do not list the checks that need NVML."""
HEALTHY_SKIPS = {"not-supported", "not-recorded", "not-visible", "not-configured", "not-in-level", "no-reference"}
"""Reasons that a healthy box can have; which check skips on which box is in ``golden/health-v.txt``."""


def found(document: dict[str, Any]) -> set[tuple[str, str | None, str]]:
    return {(each["id"], each["subject"]["bdf"], each["status"]) for each in document["findings"]}


@pytest.mark.parametrize("box", BOXES)
def test_a_healthy_box_passes(box: str) -> None:
    code, document = judged(box)
    assert (code, document["verdict"]) == (0, "pass")
    passed = {each["id"] for each in document["findings"] if each["status"] == "pass"}
    skips = {each["id"]: each["reason"] for each in document["findings"] if each["status"] == "skip"}
    assert {*skips.values()} <= HEALTHY_SKIPS
    assert passed - skips.keys() == {check.id for check in CHECKS} - skips.keys() - UNASKED


def a_fault_is_found_and_nothing_else(name: str) -> None:
    overlay = json.loads(Path(FAULTS[name]).read_text(encoding="utf-8"))
    assert overlay["sources"]
    due = {(each["id"], each["bdf"], each["status"]) for each in overlay["expect"]["findings"]}
    code, document = judged(name)
    assert {each for each in found(document) if each[2] in BAD} == due
    worst = next((status for status in ("fail", "unknown", "warn") if status in {each[2] for each in due}), "pass")
    assert code == EXIT_CODE[document["verdict"]] == EXIT_CODE[worst]
    keys = [each["key"] for each in document["findings"]]
    assert len(keys) == len(set(keys))
    assert all(each["remedy"] and each["evidence"] for each in document["findings"] if each["status"] in BAD)


def statuses(document: dict[str, Any]) -> dict[str, set[str]]:
    """Of each check, how it ended for its subjects."""
    ended: dict[str, set[str]] = {}
    for each in document["findings"]:
        ended.setdefault(each["id"], set()).add(each["status"])
    return ended


def dependent(document: dict[str, Any]) -> set[str]:
    """Checks of which nothing was judged because a dependency failed."""
    reasons: dict[str, set[str]] = {}
    for each in document["findings"]:
        reasons.setdefault(each["id"], set()).add(each["reason"])
    return {check for check, those in reasons.items() if those == {"dependency-failed"}}


def an_overlay_says_what_is_to_blame_and_what_skips(name: str) -> None:
    overlay = json.loads(Path(FAULTS[name]).read_text(encoding="utf-8"))
    expect = overlay["expect"]
    bdfs = {each["bdf"] for each in expect["findings"]} - {None}
    assert expect["component"]
    assert expect["component"].startswith("none: ") == (not expect["findings"])
    assert not bdfs or any(bdf in expect["component"] for bdf in bdfs)
    here, healthy = (statuses(judged(spec)[1]) for spec in (name, overlay["base"]))
    gone = {check for check, ended in healthy.items() if ended == {"pass"} and here.get(check) == {"skip"}}
    follow = gone & dependent(judged(name)[1]) if name in DRIVERLESS else set()
    assert gone - follow <= set(expect["skips"]) <= here.keys() - follow
    assert {check for check in expect["skips"] if "skip" not in here[check] or "pass" not in healthy[check]} == set()


def test_without_the_driver_the_same_checks_depend_on_it() -> None:
    hidden = [dependent(judged(name)[1]) - dependent(judged("dgx-1-v100")[1]) for name in DRIVERLESS]
    assert hidden[0] == hidden[1] == hidden[2]
    assert {"ecc.volatile", "thermal.temperature", "nvlink.state", "p2p.status", "gpu.lost"} <= hidden[0]
    assert not {"host", "kernel", "network", "gdr"} & {check.partition(".")[0] for check in hidden[0]}


def a_fault_hides_no_other_gpu(name: str) -> None:
    """GPUs without a finding are judged as on the healthy box, unless the driver as a whole is gone."""
    _, document = judged(name)
    overlay = json.loads(Path(FAULTS[name]).read_text(encoding="utf-8"))
    bad = {bdf for _, bdf, status in found(document) if status in BAD}
    of_all = {"driver.library", "driver.fabric"} & {check for check, _, status in found(document) if status in BAD}
    of_all |= {check for check, _, status in found(document) if (check, status) == ("driver.responsive", "unknown")}
    _, healthy = judged(overlay["base"])
    every = {each["subject"]["bdf"] for each in healthy["findings"] if each["subject"]["kind"] == "gpu"}
    if of_all:
        assert document["summary"]["skip"] > 40
        return
    there = {each["subject"]["bdf"] for each in document["findings"]}
    late = {each["subject"]["bdf"] for each in document["findings"] if each["reason"] == "dependency-failed"}
    skips = set(overlay["expect"]["skips"])
    gpus = [each for each in healthy["findings"] if each["subject"]["kind"] == "gpu" and each["peer"] is None]
    others = {each for each in found({"findings": gpus}) if each[1] in there - bad - late and each[0] not in skips}
    assert len(others) > 50 or every <= bad
    judged_here_alone = {(check, bdf, "skip") for check, bdf, status in found(document) if status == "pass"}
    assert others - {("driver.responsive", None, "pass")} - judged_here_alone <= found(document)


def test_every_check_has_a_fault_that_it_finds() -> None:
    documents = [json.loads(Path(path).read_text(encoding="utf-8")) for path in FAULTS.values()]
    due = {each["id"] for document in documents for each in document["expect"]["findings"]}
    assert {check.id for check in CHECKS} - due == WITHOUT_FAULT
