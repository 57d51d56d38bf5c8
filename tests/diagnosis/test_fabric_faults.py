"""Faults of the fabric and healthy boxes, held to reference machines that are set up by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fabric_box import MINE, PROFILES, bad, box, findings

from dgxcheck.checks.engine.box import DEFAULTS
from dgxcheck.checks.registry import CHECKS
from dgxcheck.output.health.rules import rule
from dgxcheck.profiles.library import names
from dgxcheck.source.recording.shipped import shipped

FAULTS = {
    name: path
    for name, path in shipped()
    if "faults" in Path(path).parts and "later" not in json.loads(Path(path).read_text(encoding="utf-8"))
}
"""Those of one reading."""
SIBLINGS = "pcie.uniform"
"""Leaves out what other checks report, and only those of the fabric run here."""


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("held", [True, False])
def test_a_healthy_box_has_no_finding(name: str, held: bool) -> None:
    assert bad(box(name, name if held else "")) == set()


@pytest.mark.parametrize("name", FAULTS)
def test_exactly_the_faults_of_the_fabric_are_found(name: str) -> None:
    overlay = json.loads(Path(FAULTS[name]).read_text(encoding="utf-8"))
    expected = overlay["expect"]["findings"]
    due = {(each["id"], each["bdf"], each["status"]) for each in expected if each["id"].partition(".")[0] in MINE}
    held = box(FAULTS[name], overlay["base"] if overlay["base"] in names() else "")
    assert {each for each in bad(held) if each[0] != SIBLINGS} == {each for each in due if each[0] != SIBLINGS}
    keys = [each.key for each in findings(held)]
    assert len(keys) == len(set(keys))
    for each in findings(held):
        if each.status.value in ("warn", "fail"):
            assert each.judgement.evidence


@pytest.mark.parametrize("name", FAULTS)
def test_without_a_reference_nothing_else_is_found(name: str) -> None:
    """A reference adds findings and makes some severe; without one gdr.path alone judges what the reference does with
    one (network.hca-placement)."""
    overlay = json.loads(Path(FAULTS[name]).read_text(encoding="utf-8"))
    due = {(each["id"], each["bdf"]) for each in overlay["expect"]["findings"]}
    assert {(check, bdf) for check, bdf, _ in bad(box(FAULTS[name])) if check not in ("gdr.path", SIBLINGS)} <= due


def test_rules_name_their_thresholds() -> None:
    for check in CHECKS:
        if check.id.partition(".")[0] in MINE:
            assert "{" not in rule(check, DEFAULTS)
