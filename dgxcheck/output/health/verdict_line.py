"""The first line: the verdict, the worst cause and the first action."""

from __future__ import annotations

import shlex

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import Finding, Status, Witness
from dgxcheck.checks.engine.run import LEAST_CHECKS, judged_checks
from dgxcheck.checks.engine.wording import counted
from dgxcheck.diagnosis.action import PREPARATORY, Action, first_remedy
from dgxcheck.diagnosis.causes import Cause
from dgxcheck.output.health.component_name import component_name
from dgxcheck.output.health.finding_lines import subject_name, worst_first
from dgxcheck.output.health.instructions import STEPS, action_text
from dgxcheck.output.plain_text import visible

_KINDS: dict[Witness, str] = {
    "state": "state", "log": "kernel log", "counters": "counter growth", "measurement": "measurements under load",
}  # fmt: skip
_LONGEST_COMMAND = 60


def verdict_line(assessment: Assessment) -> str:
    """``FAIL  memory of GPU2 0000:0a:00.0: 3 uncorrected memory errors -> drain, then reset GPU: nvidia-smi -r``"""
    head = assessment.verdict.value.upper()
    bad = worst_first(assessment.findings)
    if not bad:
        return f"{head}  {_without_findings(assessment)}"
    causes = assessment.diagnosis.causes
    if not causes:
        more = f"; {counted(len(bad) - 1, 'more finding')}" if bad[1:] else ""
        return visible(f"{head}  {subject_name(bad[0].subject)}: {bad[0].judgement.message}{more}")
    others = len(causes) - 1 + len(assessment.diagnosis.unexplained)
    more = f" ({counted(others, 'more problem')} below)" if others else ""
    return visible(f"{head}  {_blamed(assessment, causes[0])} -> {_first_action(assessment, causes[0])}{more}")


def what_ran(assessment: Assessment) -> str:
    """``410 of 485 checks ran (state, kernel log, counter growth)``"""
    ran = sum(each.status is not Status.SKIP for each in assessment.findings)
    kinds = _kinds(assessment)
    return f"{ran} of {counted(len(assessment.findings), 'check')} ran{f' ({kinds})' if kinds else ''}"


def _kinds(assessment: Assessment) -> str:
    """What the checks that ran looked at."""
    witnesses = {each.witness for each in assessment.findings if each.status is not Status.SKIP}
    return ", ".join(kind for witness, kind in _KINDS.items() if witness in witnesses)


def _without_findings(assessment: Assessment) -> str:
    if assessment.verdict is Status.PASS:
        return f"no problems found; checked: {_kinds(assessment)}"
    judged = judged_checks(assessment.findings)
    if not judged:
        return "nothing could be judged"
    return f"too few different checks ran: {judged}, at least {LEAST_CHECKS} needed"


def _blamed(assessment: Assessment, cause: Cause) -> str:
    """The component and its worst finding."""
    found = {finding.key: finding for finding in assessment.findings}
    lead: Finding | None = next((found[key] for key in cause.explains if key in found), None)
    name = component_name(cause.component)
    return name if lead is None else f"{name}: {lead.judgement.message}"


def _first_action(assessment: Assessment, cause: Cause) -> str:
    action = first_remedy(cause.actions)
    before = cause.actions[: cause.actions.index(action)]
    drain = "drain, then " if any(each.step in PREPARATORY for each in before) else ""
    remedies = {finding.key: finding.remedy for finding in assessment.findings}
    return f"{drain}{_short(action, action_text(action, remedies))}"


def _short(action: Action, text: str) -> str:
    """The step with its command where that is short, else with what is done by hand."""
    step = STEPS[action.step]
    command = "; ".join(map(shlex.join, action.commands))
    if command and len(command) <= _LONGEST_COMMAND:
        return command if action.step == "change-setting" or command == step else f"{step}: {command}"
    return step if command or text == step else f"{step}: {text}"
