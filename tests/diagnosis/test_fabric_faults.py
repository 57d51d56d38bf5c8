"""Healthy boxes held to reference machines that are set up by hand, and faults where there is no reference."""

from __future__ import annotations

import pytest
from fabric_box import MINE, PROFILES, box
from fabric_box import bad as bad_in
from judging import BAD, without_reference
from sample import FAULTS, FOUND_BY, expected, swept

from dgxcheck.checks.engine.box import DEFAULTS
from dgxcheck.checks.registry import CHECKS
from dgxcheck.output.health.explanation import rule

INSTEAD = {"gdr.path", *(check.id for check in CHECKS if check.last)}
"""Without a reference gdr.path judges the place of an HCA, and siblings show what a check with one had reported."""


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("held", [True, False])
def test_a_healthy_box_has_no_finding(name: str, held: bool) -> None:
    assert bad_in(box(name, name if held else "")) == set()


@pytest.mark.parametrize("name", swept(FAULTS, [*FOUND_BY.values()][2::16]))
def test_without_a_reference_nothing_else_is_found(name: str) -> None:
    """A reference adds findings and makes some severe; what stands in for one that is gone is the only other."""
    due = {(each["id"], each["bdf"]) for each in expected(name)["findings"]}
    bad = [each for each in without_reference(name)["findings"] if each["status"] in BAD]
    found = {(each["id"], each["subject"]["bdf"]) for each in bad}
    assert {check for check, _ in found - due} <= INSTEAD
    assert found <= due or due - found


def test_rules_name_their_thresholds() -> None:
    for check in CHECKS:
        if check.id.partition(".")[0] in MINE:
            assert "{" not in rule(check, DEFAULTS)
