"""No cause, action or verdict depends on words: with every message replaced by noise all of them stay the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import pytest
from measured_box import of_box
from sample import BOXES, BY_NAME, FOUND_BY, swept

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Subject
from dgxcheck.checks.engine.run import run, verdict
from dgxcheck.checks.registry import CHECKS
from dgxcheck.diagnosis.causes import diagnose
from dgxcheck.facts.missing import Json, gap_from_json, gap_to_json
from dgxcheck.facts.record import replace
from dgxcheck.source.recording.load import open_source
from dgxcheck.source.recording.replay import RecordedSource

NOISE = "zzq xid 79 fallen off the bus, no subnet manager, disabled; NVML 16: %s {x}"
"""Words that once decided something."""


def noisy(check: Check) -> Check:
    """The check, each of whose judgements says nothing that makes sense."""

    def judge(box: Box) -> Iterator[tuple[Subject, Judgement]]:
        for subject, judgement in check.judge(box):
            yield subject, replace(judgement, message=NOISE)

    return replace(check, judge=judge)


NOISY = tuple(map(noisy, CHECKS))


@lru_cache(maxsize=2)
def recorded(name: str) -> RecordedSource:
    source = open_source(name)
    assert isinstance(source, RecordedSource)
    return source


def without_details(fact: Json) -> Json:
    """The fact with the words of each gap replaced, and its code kept."""
    if isinstance(fact, dict) and "missing" in fact:
        return {**gap_to_json(gap_from_json(fact, "")), "detail": NOISE}
    if isinstance(fact, dict):
        return {key: without_details(value) for key, value in fact.items()}
    return fact


def garbled(source: RecordedSource) -> RecordedSource:
    """The machine, each of whose gaps says nothing that makes sense."""
    lines = {line: {key: without_details(fact) for key, fact in facts.items()} for line, facts in source.lines.items()}
    return RecordedSource(lines, source.origin, source.moments, head=source.head)


def outcome(source: RecordedSource, name: str, checks: Sequence[Check]) -> dict[str, Any]:
    box = of_box(source, "k80-x8" if name.startswith("k80") else "auto")
    findings = run(box, checks)
    diagnosis = diagnose(box, findings)
    return {
        "verdict": verdict(findings),
        "statuses": {finding.key: finding.status for finding in findings},
        "faults": {finding.key: finding.judgement.fault for finding in findings},
        "causes": [
            (cause.component, cause.explains, cause.severity, cause.confidence, cause.actions, cause.recurrence)
            for cause in diagnosis.causes
        ],
        "unexplained": diagnosis.unexplained,
    }


@pytest.mark.in_ci
@pytest.mark.parametrize("name", swept(BY_NAME, few=(*BOXES[::5], *[*FOUND_BY.values()][::16])))
def test_noise_in_place_of_every_message_changes_nothing(name: str) -> None:
    source = recorded(name)
    expected = outcome(source, name, CHECKS)
    assert outcome(garbled(source), name, NOISY) == expected
