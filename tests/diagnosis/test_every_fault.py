"""Every shipped fault is judged once, and its document is held to every rule; the rules stand with their subjects."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sample import FAULTS, FOUND_BY, swept
from test_diagnosis import a_fault_has_one_cause_at_its_component
from test_diagnosis_shipped import the_cause_and_what_to_do
from test_drain_reason import the_items_of_a_fault_can_be_read
from test_fault_layers import the_layers_of_a_fault_agree
from test_health_faults import (
    a_fault_hides_no_other_gpu,
    a_fault_is_found_and_nothing_else,
    an_overlay_says_what_is_to_blame_and_what_skips,
)
from test_messages import causes_and_actions_keep_the_rules, messages_keep_the_rules
from test_score_causes import nothing_bad_leaves_a_full_score
from together import holds_for_each

RULES: tuple[Callable[[str], None], ...] = (
    a_fault_is_found_and_nothing_else, an_overlay_says_what_is_to_blame_and_what_skips, a_fault_hides_no_other_gpu,
    a_fault_has_one_cause_at_its_component, the_cause_and_what_to_do, the_items_of_a_fault_can_be_read,
    the_layers_of_a_fault_agree, messages_keep_the_rules, causes_and_actions_keep_the_rules,
    nothing_bad_leaves_a_full_score,
)  # fmt: skip


@pytest.mark.parametrize("name", swept(FAULTS, [*FOUND_BY.values()][::3], others=pytest.mark.in_ci))
def test_every_rule_holds(name: str) -> None:
    holds_for_each(RULES, lambda rule: rule(name), named=lambda rule: rule.__name__)
