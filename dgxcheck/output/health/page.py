"""The whole report of ``dgxcheck health`` as blocks, for the formats that are one file."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dgxcheck import __version__
from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.checks.engine.wording import counted
from dgxcheck.facts.missing import Missing
from dgxcheck.output import provenance
from dgxcheck.output.health import figure_blocks, overview
from dgxcheck.output.health.cause_marks import cause_marks
from dgxcheck.output.health.finding_lines import SKIPPED, skip_counts, subject_name, worst_first
from dgxcheck.output.health.problem_blocks import TONES, problems
from dgxcheck.output.health.report import Report
from dgxcheck.output.health.text import score_line
from dgxcheck.output.health.verdict_line import verdict_line, what_ran
from dgxcheck.output.page.blocks import (
    Bars,
    Block,
    Cell,
    Drawing,
    Fold,
    Page,
    Section,
    Table,
    Text,
    Tone,
)
from dgxcheck.output.picture import layout
from dgxcheck.output.picture.shapes import Picture
from dgxcheck.output.plain_text import visible
from dgxcheck.output.topo.matrix import matrix
from dgxcheck.output.topo.picture import title_of


def page_of(report: Report) -> Page:
    """Verdict, what is wrong and what to do, picture, devices, figures, findings, and what did not run."""
    assessment = report.assessment
    status = assessment.verdict.value.upper()
    sections = (
        Section(title="What is wrong, and what to do", blocks=tuple(problems(assessment))),
        Section(title="Score", blocks=tuple(_score(assessment))),
        Section(title="Wiring", blocks=(_drawing(assessment),) if assessment.topology.devices else ()),
        Section(title="Devices", blocks=tuple(_devices(assessment))),
        Section(title="Measurements", blocks=tuple(figure_blocks.figures(assessment))),
        Section(title="Under load", blocks=tuple(figure_blocks.burn_in(assessment))),
        Section(title="Findings", blocks=tuple(_findings(assessment))),
        Section(title="Checks that did not run", blocks=tuple(_skipped(assessment))),
    )
    return Page(
        title=_title(assessment),
        status=status,
        tone=TONES[assessment.verdict],
        lead=verdict_line(assessment).removeprefix(status).strip(),
        facts=tuple(_facts(assessment)),
        sections=tuple(section for section in sections if section.blocks),
    )


def picture_of(assessment: Assessment) -> Picture:
    """The wiring, with each cause at its place."""
    topology = assessment.topology
    title = title_of(topology, provenance.describe(assessment.origin))
    return layout.drawn(topology, assessment.snapshot.numa, title, cause_marks(assessment), topology.notes)


def _title(assessment: Assessment) -> str:
    host = assessment.host.get("host", "")
    named = "" if isinstance(host, Missing) else visible(host)
    return named or overview.machine(assessment) or provenance.describe(assessment.origin)


def _facts(assessment: Assessment) -> Iterator[tuple[str, str]]:
    machine = overview.machine(assessment)
    if machine and machine != _title(assessment):
        yield "Machine", machine
    yield "Source", provenance.describe(assessment.origin)
    if assessment.choice is not None:
        yield "Reference", visible(assessment.choice.profile.title)
    yield "Level", f"{assessment.level}; {what_ran(assessment)}"
    written = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    yield "Written", f"{written} by dgxcheck {__version__}"


def _score(assessment: Assessment) -> Iterator[Block]:
    yield Text(score_line(assessment))
    if assessment.score is not None and assessment.score.areas:
        rows = tuple((str(area), share) for area, share in assessment.score.areas.items())
        yield Bars(rows=rows, caption="Areas, of 100")


def _drawing(assessment: Assessment) -> Drawing:
    return Drawing(pictures=(picture_of(assessment),), text=matrix(assessment.topology, False, "soc", None, []))


def _devices(assessment: Assessment) -> Iterator[Block]:
    for columns in overview.glance(assessment):
        rows = tuple(
            tuple(Cell(text, _STATES.get(text) if number == 2 else None) for number, text in enumerate(row))
            for row in zip(*(column[1:] for column in columns), strict=True)
        )
        yield Table(head=tuple(column[0] for column in columns), rows=rows)


_STATES: Mapping[str, Tone] = {"ok": "pass", "WARN": "warn", "FAIL": "fail", "?": "unknown"}


def _findings(assessment: Assessment) -> Iterator[Block]:
    bad = worst_first(assessment.findings)
    if bad:
        yield _listed(bad)
        evidence = [line for finding in bad for line in _evidence(finding)]
        if evidence:
            yield Fold(title="Evidence", blocks=(Text("\n".join(evidence), code=True),))
    passed = [each for each in assessment.findings if each.status is Status.PASS]
    by_check: dict[str, list[Finding]] = {}
    for finding in passed:
        by_check.setdefault(finding.id.partition(".")[0], []).append(finding)
    for area, same in by_check.items():
        yield Fold(title=f"{area}: {counted(len(same), 'check')} passed", blocks=(_listed(same),))


def _evidence(finding: Finding) -> Iterator[str]:
    """The finding, and below it each raw fact."""
    if finding.judgement.evidence:
        yield visible(f"{finding.id} {subject_name(finding.subject)}")
        yield from (visible(f"  {each.where}: {each.value}") for each in finding.judgement.evidence)


def _listed(findings: Iterable[Finding]) -> Table:
    rows = tuple(
        (
            Cell(each.id),
            Cell(each.status.value.upper(), TONES[each.status]),
            Cell(visible(subject_name(each.subject))),
            Cell(visible(each.judgement.message)),
        )
        for each in findings
    )
    return Table(head=("Check", "Status", "Device", "Finding"), rows=rows)


def _skipped(assessment: Assessment) -> Iterator[Block]:
    skipped: Sequence[Finding] = [each for each in assessment.findings if each.status is Status.SKIP]
    if not skipped:
        return
    yield Text(f"{counted(len(skipped), 'check')}: {skip_counts(skipped)}.")
    for reason, text in SKIPPED.items():
        same = [each for each in skipped if each.judgement.reason == reason]
        if same:
            rows = tuple(
                tuple(map(Cell, (each.id, visible(subject_name(each.subject)), visible(each.judgement.message))))
                for each in same
            )
            table = Table(head=("Check", "Device", "Reason"), rows=rows)
            yield Fold(title=f"{counted(len(same), 'check')}: {text}", blocks=(table,))
