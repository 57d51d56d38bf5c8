"""What is wrong and what to do, as blocks of a report: causes with numbered actions, then findings without a cause."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import BAD, Finding, Status
from dgxcheck.checks.engine.wording import counted
from dgxcheck.diagnosis.action import PREPARATORY, Action
from dgxcheck.diagnosis.causes import Cause
from dgxcheck.output.health.causes import Remedies, due, place, remedies_of
from dgxcheck.output.health.evidence import confidence_text, recurrence_text
from dgxcheck.output.health.finding_lines import sentence, subject_name, worst_first
from dgxcheck.output.health.instructions import STEPS, URGENCIES, disturbed, instruction_text, preserve_text
from dgxcheck.output.health.verdict_line import what_ran
from dgxcheck.output.page.blocks import Block, Fold, Problem, Step, Steps, Text, Tone
from dgxcheck.output.plain_text import visible

TONES: Mapping[Status, Tone] = {
    Status.PASS: "pass", Status.WARN: "warn", Status.FAIL: "fail", Status.UNKNOWN: "unknown", Status.SKIP: "skip",
}  # fmt: skip


def problems(assessment: Assessment) -> Iterator[Block]:
    """The worst first; where nothing is wrong, that."""
    remedies, found = remedies_of(assessment.findings), {each.key: each for each in assessment.findings}
    for number, cause in enumerate(assessment.causes, 1):
        yield _cause(number, cause, found, remedies)
    loose = {*assessment.diagnosis.unexplained}
    for number, finding in enumerate(
        (each for each in worst_first(assessment.findings) if each.key in loose), len(assessment.causes) + 1
    ):
        told: list[Block] = [Text(sentence(finding), TONES[finding.status])]
        advised = finding.status is not Status.UNKNOWN or finding.judgement.remedy
        told += [Text(f"Do: {visible(finding.remedy)}")] if advised else []
        yield Problem(title=f"{number}. {visible(subject_name(finding.subject))}", tone=TONES[finding.status],
                      blocks=tuple(told))  # fmt: skip
    for finding in assessment.findings:
        known = finding.acknowledgement
        if known is not None and finding.acknowledged:
            text = f"{sentence(finding)} (acknowledged until {known.expiry}: {visible(known.reason)})"
            yield Text(text, "skip")
    if not any(each.status in BAD and not each.acknowledged for each in assessment.findings):
        yield Text(f"No problems found in the checks that ran: {what_ran(assessment)}.")


def _cause(number: int, cause: Cause, found: Mapping[str, Finding], remedies: Remedies) -> Problem:
    notes = [f"Confidence {confidence_text(cause.confidence)}."]
    notes += [f"{recurrence_text(cause.recurrence)}."] if cause.recurrence is not None else []
    findings = [sentence(found[key]) for key in cause.explains if key in found]
    save = list(dict.fromkeys(preserve_text(each) for each in cause.preserve))
    disturbs = any(action.scope != "none" for action in cause.actions)
    more = len(findings) - 3
    blocks: list[Block] = [Text(text, TONES[cause.severity]) for text in findings[:3]]
    if more > 0:
        blocks.append(Fold(title=f"and {counted(more, 'more finding')}", blocks=tuple(map(Text, findings[3:]))))
    blocks += [Text(visible(note)) for note in notes]
    blocks.append(Steps(steps=tuple(_step(action, remedies, number) for number, action in enumerate(cause.actions))))
    if save and disturbs:
        blocks += [Text("Save first what this destroys:"), Text("\n".join(map(visible, save)), code=True)]
    title = f"{number}. {place(cause.component)} ({cause.severity.value}, {due(cause)})"
    return Problem(title=visible(title), tone=TONES[cause.severity], blocks=tuple(blocks))


def _step(action: Action, remedies: Remedies, number: int) -> Step:
    how = instruction_text(action.instruction, remedies.get(action.remedy_of, ""))
    commands = tuple(visible(shlex.join(command)) for command in action.commands)
    notes = [f"disturbs {disturbed(action)}"] if action.scope != "none" else []
    notes += [URGENCIES[action.urgency]] if number == 0 or action.step not in PREPARATORY else []
    return Step(name=STEPS[action.step], commands=commands, how=visible(how), note=visible("; ".join(notes)))
