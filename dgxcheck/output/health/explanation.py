"""``--explain``: the rule, then what this box has of it: reading, limit, reference machine, blame, first step, tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.assessment.explanation import Topic
from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import BAD, Finding, Status
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.registry import CHECKS
from dgxcheck.diagnosis.action import Action, first_remedy
from dgxcheck.facts.missing import Missing
from dgxcheck.output import provenance
from dgxcheck.output.health import rules
from dgxcheck.output.health.component_name import component_name
from dgxcheck.output.health.evidence import confidence_text
from dgxcheck.output.health.finding_lines import sentence
from dgxcheck.output.health.instructions import STEPS, URGENCIES, action_text
from dgxcheck.output.plain_text import lines, visible, wrapped
from dgxcheck.output.topo.tree import excerpt
from dgxcheck.settings import Settings

_MOST = 8
_MOST_EVIDENCE = 4
_RANK = {status: rank for rank, status in enumerate((*BAD, Status.PASS, Status.SKIP))}


def render(
    about: Topic, assessment: Assessment, found: Sequence[Finding], settings: Settings, width: int | None
) -> str:  # fmt: skip
    """The rules, every finding in a line, and the worst of them in full."""
    ids = {each.id for each in found} if about.fault is not None else {check.id for check in about.checks}
    told = [f"{about.fault.word}: {about.fault.meaning}", ""] if about.fault is not None else []
    for check in CHECKS:
        if check.id in ids:
            told += [*rules.explained(check, settings).splitlines(), ""]
    ranked = sorted(found, key=lambda each: _RANK[each.status])
    in_full = len(ranked) == 1 or bool(ranked and ranked[0].status in BAD)
    told.append(f"On this box, {counted(len(ranked), 'finding')}:" if ranked else "On this box: no such finding")
    if len(ranked) > 1:
        told += [f"  {sentence(each)}" for each in ranked[:_MOST]]
        told += [f"  and {len(ranked) - _MOST} more; list them with -v"] if ranked[_MOST:] else []
    told += ["", *_in_full(ranked[0], assessment)] if in_full else []
    told += ["", *provenance.line(assessment.origin)]
    return lines(wrapped(line, width, 20 if "─" in line else 11) for line in told)


def _in_full(finding: Finding, assessment: Assessment) -> list[str]:
    """Everything about one finding, a member a line."""
    said = finding.judgement
    unit = f" {said.unit}" if said.unit else ""
    told = [f"{finding.key}: {finding.status.value}", f"  Reading:   {visible(said.message)}"]
    if said.measured is not None:
        told.append(f"  Measured:  {visible(str(said.measured))}{unit}")
    if said.expected is not None:
        told.append(f"  Limit:     {visible(str(said.expected))}{unit}")
    if assessment.choice is not None:
        title = assessment.choice.profile.title
        told.append(f"  Compared:  {visible(f'{assessment.choice.profile.name}, {title}')}")
    if said.fault is not None:
        told.append(f"  Fault:     {said.fault.word}: {said.fault.meaning}")
    for number, each in enumerate(said.evidence[:_MOST_EVIDENCE]):
        told.append(f"  {'Evidence:' if not number else '         '}  {visible(f'{each.where} = {each.value}')}")
    told += _blame(finding, assessment)
    if finding.subject.bdf and (place := excerpt(assessment.topology, _names(assessment), finding.subject.bdf)):
        told += ["  Place:", *(f"    {line}" for line in place)]
    return told


def _blame(finding: Finding, assessment: Assessment) -> list[str]:
    """The cause that explains it and the first step; without one the finding's own remedy."""
    remedies = {each.key: each.remedy for each in assessment.findings}
    for cause in assessment.causes:
        if finding.key in cause.explains:
            first = first_remedy(cause.actions)
            others = len(cause.explains) - 1
            also = f"; explains {counted(others, 'other finding')}" if others else ""
            due = URGENCIES[first.urgency]
            return [
                f"  Blames:    {visible(component_name(cause.component))}{also}",
                f"  Sure:      {visible(confidence_text(cause.confidence))}",
                f"  First:     {visible(f'{_step(first, remedies)} ({due})')}",
            ]
    if finding.status not in BAD:
        return []
    blamed = [visible(component_name(each)) for each in finding.blames[:_MOST_EVIDENCE]]
    could = [f"  Blames:    {' or '.join(blamed)}"] if blamed else []
    return [*could, f"  First:     {visible(finding.remedy)}"]


def _step(action: Action, remedies: Mapping[str, str]) -> str:
    """``reboot``, or ``reset GPU: nvidia-smi -r ..``: the name of a step is not repeated."""
    step, text = STEPS[action.step], action_text(action, remedies)
    return step if text in ("", step) else f"{step}: {text}"


def _names(assessment: Assessment) -> dict[str, str]:
    names = assessment.snapshot.pci_names
    return {} if isinstance(names, Missing) else {key: name for key, name in names.items() if isinstance(name, str)}
