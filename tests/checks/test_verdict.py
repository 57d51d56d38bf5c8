"""The verdict: the worst status, unknown where too few checks were judged."""

from __future__ import annotations

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.assessment import assess
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.checks.engine.run import LEAST_CHECKS, judged_checks, verdict
from dgxcheck.facts.record import replace


@cache
def healthy() -> tuple[Finding, ...]:
    return assess("dgx-1-v100").findings


def ended(statuses: list[Status]) -> list[Finding]:
    """One finding of each of so many checks."""
    one = healthy()[0]
    return [
        replace(one, id=f"made.{n}", judgement=replace(one.judgement, status=status))
        for n, status in enumerate(statuses)
    ]


@given(st.lists(st.sampled_from(Status), max_size=2 * LEAST_CHECKS))
def test_too_few_checks_never_pass(statuses: list[Status]) -> None:
    findings = ended(statuses)
    judged = sum(status is not Status.SKIP for status in statuses)
    assert judged_checks(findings) == judged
    found = verdict(findings, LEAST_CHECKS)
    if Status.FAIL in statuses:
        assert found is Status.FAIL
    else:
        assert found is (verdict(findings) if judged >= LEAST_CHECKS else Status.UNKNOWN)


@given(st.lists(st.sampled_from(Status), min_size=1, max_size=2 * LEAST_CHECKS), st.data())
def test_what_is_not_judged_makes_no_verdict_better(statuses: list[Status], data: st.DataObject) -> None:
    """Passes that become skips."""
    harmless = [n for n, status in enumerate(statuses) if status is Status.PASS]
    left_out = data.draw(st.sets(st.sampled_from(harmless))) if harmless else set()
    fewer = [Status.SKIP if n in left_out else status for n, status in enumerate(statuses)]
    order = [Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS]
    before, after = verdict(ended(statuses), LEAST_CHECKS), verdict(ended(fewer), LEAST_CHECKS)
    assert order.index(after) <= order.index(before)


@given(st.lists(st.sampled_from(Status), max_size=2 * LEAST_CHECKS))
def test_a_fault_in_a_text_is_the_verdict_whatever_the_text_leaves_open(statuses: list[Status]) -> None:
    found = verdict(ended(statuses), LEAST_CHECKS, of_text=True)
    bad = [status for status in (Status.FAIL, Status.WARN) if status in statuses]
    assert found is (bad[0] if bad else verdict(ended(statuses), LEAST_CHECKS))
