"""One line for a site that collects many results: the document of schema ``dgxcheck/result/1``.

What passed has its key and its figure alone; what did not pass has what an admin reads first.
"""

from __future__ import annotations

from dgxcheck.assessment.node_facts import gpu_models, nvlink_domains, nvlinks, parts, settings, versions
from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import BAD, Finding, Status
from dgxcheck.diagnosis.action import first_remedy
from dgxcheck.diagnosis.model import Cause
from dgxcheck.facts.missing import Json
from dgxcheck.facts.typical import gathered
from dgxcheck.fleet.document import RESULT
from dgxcheck.fleet.node import COMPARED
from dgxcheck.output.health.finding_lines import component_name, subject_name
from dgxcheck.output.health.for_programs.metrics import number
from dgxcheck.output.health.instructions import action_text, remedies
from dgxcheck.output.json_values import compact, either, head, members, part, source
from dgxcheck.output.report import HealthReport


def render(report: HealthReport) -> str:
    """A line of about 30 kB for a machine of eight GPUs."""
    assessment = report.assessment
    findings = assessment.findings
    return compact({
        **head(RESULT),
        **{key: value for name in assessment.host for key, value in either(name, assessment.host[name]).items()},
        "source": source(assessment.origin),
        **members(assessment, "level profile=profile.name"),
        "gpus": {**gpu_models(assessment.snapshot)},
        "versions": {name: [*values] for name, values in versions(assessment.snapshot).items()},
        "settings": {name: [*values] for name, values in settings(assessment.snapshot).items()},
        "nvlink_domains": [*nvlink_domains(assessment.snapshot)],
        "parts": [part(each) for each in parts(assessment.snapshot, assessment.settings)],
        "nvlinks": {gpu: {**links} for gpu, links in nvlinks(assessment.snapshot).items()},
        **members(assessment, "verdict=verdict.value score=score.total coverage=score.coverage"),
        # of what passed what can be compared with other machines, in the unit of the check; null for anything else
        "passed": {
            each.key: number(each.judgement.measured) if each.judgement.unit in COMPARED else None
            for each in findings if each.status is Status.PASS
        },
        "skipped": {
            reason: [*sorted({*ids})] for reason, ids in sorted(gathered(
                (each.judgement.reason, each.id) for each in findings if each.status is Status.SKIP).items())
        },
        "found": _found(assessment),
        "causes": [_cause(cause, assessment) for cause in assessment.causes],
    })  # fmt: skip


def _found(assessment: Assessment) -> list[Json]:
    """What did not pass, the worst first."""
    blamed = {key: cause.component.id for cause in assessment.causes for key in cause.explains}
    remedy = remedies(assessment)
    problems = [finding for status in BAD for finding in assessment.findings if finding.status is status]
    return [_finding(finding, blamed.get(finding.key), remedy[finding.key]) for finding in problems]


def _finding(finding: Finding, cause: str | None, remedy: str) -> Json:
    judged, entry = finding.judgement, finding.acknowledgement
    return {
        **members(finding, "key status=judgement.status.value fault=judgement.fault.word"),
        "subject": subject_name(finding.subject),
        **members(judged, "message measured expected unit?"),
        "cause": cause,
        "action": remedy,
        **({"acknowledged": entry.reason} if entry is not None and finding.acknowledged else {}),
    }


def _cause(cause: Cause, assessment: Assessment) -> Json:
    action = first_remedy(cause.actions)
    return {
        **members(cause.component, "id kind"),
        "name": component_name(cause.component),
        **members(cause, "severity=severity.value confidence=confidence.level"),
        **members(action, "action=step urgency"),
        "commands": [list(command) for command in action.commands],
        "text": action_text(action, assessment.found),
    }
