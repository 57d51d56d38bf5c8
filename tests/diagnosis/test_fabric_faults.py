"""Healthy boxes held to reference machines that are set up by hand, and faults where there is no reference."""

from __future__ import annotations

import pytest
from fabric_box import MINE, PROFILES, box
from fabric_box import bad as bad_in
from judging import BAD, without_reference
from sample import FAULTS, expected, swept

from dgxcheck.checks.engine.box import DEFAULTS
from dgxcheck.checks.registry import CHECKS
from dgxcheck.output.health.rules import rule

INSTEAD = ("gdr.path",)
"""Without a reference it judges what network.hca-placement does with one."""


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("held", [True, False])
def test_a_healthy_box_has_no_finding(name: str, held: bool) -> None:
    assert bad_in(box(name, name if held else "")) == set()


@pytest.mark.parametrize("name", swept(FAULTS))
def test_without_a_reference_nothing_else_is_found(name: str) -> None:
    """A reference adds findings and makes some severe."""
    due = {(each["id"], each["bdf"]) for each in expected(name)["findings"]}
    bad = [each for each in without_reference(name)["findings"] if each["status"] in BAD]
    assert {(each["id"], each["subject"]["bdf"]) for each in bad if each["id"] not in INSTEAD} <= due


def test_rules_name_their_thresholds() -> None:
    for check in CHECKS:
        if check.id.partition(".")[0] in MINE:
            assert "{" not in rule(check, DEFAULTS)
