"""The verdict: the worst status, unknown where too few checks were judged."""

from __future__ import annotations

from functools import cache

from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.assessment import assess
from dgxcheck.checks.engine.box import HOST
from dgxcheck.checks.engine.finding import Finding, Status, Subject
from dgxcheck.checks.engine.run import LEAST_CHECKS, judged_checks, verdict
from dgxcheck.facts.faults import Fault
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


@given(st.lists(st.sampled_from(Status), max_size=2 * LEAST_CHECKS), st.booleans())
def test_a_warning_of_a_text_stands_whatever_is_open_of_the_host(statuses: list[Status], of_gpu: bool) -> None:
    subject = Subject(kind="gpu", name="GPU1", bdf="0000:07:00.0") if of_gpu else HOST
    found = verdict([replace(each, subject=subject) for each in ended(statuses)], LEAST_CHECKS, of_text=True)
    order = [Status.FAIL, *([Status.UNKNOWN, Status.WARN] if of_gpu else [Status.WARN])]
    bad = [status for status in order if status in statuses]
    assert found is (bad[0] if bad else verdict(ended(statuses), LEAST_CHECKS))


def test_a_warning_of_a_text_hides_no_required_check() -> None:
    findings = [replace(each, subject=HOST) for each in ended([Status.WARN, Status.UNKNOWN])]
    assert verdict(findings, of_text=True) is Status.WARN
    assert verdict(findings, of_text=True, required=("made.1",)) is Status.UNKNOWN
    broken = replace(findings[1], judgement=replace(findings[1].judgement, fault=Fault.CHECK_FAILED))
    assert verdict([findings[0], broken], of_text=True) is Status.UNKNOWN
