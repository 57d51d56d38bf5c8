"""The first line: the verdict, the worst cause and the first action."""

from __future__ import annotations

import shlex

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import Finding, Status, Witness
from dgxcheck.checks.engine.run import LEAST_CHECKS, judged_checks
from dgxcheck.checks.engine.wording import counted
from dgxcheck.components.component import Component
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
    head = assessment.verdict.value.upper() + _too_little(assessment)
    bad = worst_first(assessment.findings)
    if not bad:
        return f"{head}  {_without_findings(assessment)}"
    causes = assessment.diagnosis.causes
    if not causes:
        more = f"; {counted(len(bad) - 1, 'more finding')}" if bad[1:] else ""
        return visible(f"{head}  {subject_name(bad[0].subject)}: {bad[0].judgement.message}{more}")
    others = len(causes) - 1 + len(assessment.diagnosis.unexplained)
    unexplained = bool(assessment.diagnosis.unexplained)
    more = f" ({counted(others, 'more problem' if unexplained else 'more cause')} below)" if others else ""
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
    unread = _alarms(assessment.origin.alarms)
    if assessment.verdict is Status.PASS:
        return f"no problems found{' in what was read' if unread else ''}; checked: {_kinds(assessment)}{unread}"
    judged = judged_checks(assessment.findings)
    if not judged:
        return f"nothing could be judged{unread}"
    few = f"only {counted(judged, 'kind')} of check ran; a pass needs {LEAST_CHECKS}"
    return f"nothing wrong was found{' in what was read' if unread else ''}, but {few}{unread}"


def _alarms(lines: int) -> str:
    """The number of unread lines that may report a fault, for a text."""
    what = counted(lines, "line that mentions an error", "lines that mention errors")
    return f"; {what} {'was' if lines == 1 else 'were'} not recognised: see dgxcheck import --show" if lines else ""


def _too_little(assessment: Assessment) -> str:
    """Why the verdict is unknown where what was found is a warning: too few checks ran to say that it is no more."""
    worst = {finding.status for finding in worst_first(assessment.findings)}
    if assessment.verdict is not Status.UNKNOWN or Status.UNKNOWN in worst or not worst:
        return ""
    return f" (only {counted(judged_checks(assessment.findings), 'kind')} of check ran, {LEAST_CHECKS} needed)"


def _blamed(assessment: Assessment, cause: Cause) -> str:
    """The component and its worst finding, with the device where that is another."""
    found = {finding.key: finding for finding in assessment.findings}
    explained = [found[key] for key in cause.explains if key in found]
    name = component_name(cause.component)
    if not explained:
        return name
    lead = next((each for each in explained if _is_about(each, cause.component)), explained[0])
    subject, message = lead.subject, lead.judgement.message
    if subject.kind == "host" or subject.peer is not None or _is_about(lead, cause.component) or subject.name in name:
        return f"{name}: {message}"
    others = len({each.subject.name for each in explained} - {subject.name})
    more = f" and {others} more" if others else ""
    return f"{name}: {subject.name}{more}: {message}"


def _is_about(finding: Finding, component: Component) -> bool:
    return finding.subject.bdf is not None and finding.subject.bdf in (component.bdf, component.peer_bdf)


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
