"""The whole report of ``dgxcheck health`` as blocks, for the formats that are one file."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import Finding, Status, counted
from dgxcheck.diagnosis.action import PREPARATORY, Action
from dgxcheck.diagnosis.model import Cause
from dgxcheck.facts.typical import gathered
from dgxcheck.output.health import figure_blocks, overview
from dgxcheck.output.health.cause_marks import cause_marks
from dgxcheck.output.health.causes import again, conditions, due, fru_lines, place
from dgxcheck.output.health.finding_lines import SKIPPED, sentence, skip_counts, subject_name, worst_first
from dgxcheck.output.health.instructions import (
    STEPS,
    URGENCIES,
    confidence_text,
    disturbed,
    preserve_text,
    recurrence_text,
    where,
)
from dgxcheck.output.health.problem import problem
from dgxcheck.output.health.sentences import instruction_text
from dgxcheck.output.health.text import score_line, verdict_line, what_ran
from dgxcheck.output.origin import source_text
from dgxcheck.output.page import html, markdown
from dgxcheck.output.page.blocks import (
    Bars,
    Block,
    Cell,
    Drawing,
    Fold,
    ListItem,
    OrderedList,
    Page,
    Paragraph,
    ProblemBlock,
    Table,
    Tone,
    sections,
    written,
)
from dgxcheck.output.picture import layout, svg
from dgxcheck.output.picture.shapes import Picture
from dgxcheck.output.plain_text import visible
from dgxcheck.output.report import HealthReport
from dgxcheck.output.topo.matrix import matrix
from dgxcheck.output.topo.picture import title_of


def page_of(report: HealthReport) -> Page:
    """Verdict, what is wrong and what to do, picture, devices, figures, findings, and what did not run."""
    assessment = report.assessment
    status = assessment.verdict.value.upper()
    return Page(
        title=_title(assessment),
        status=status,
        tone=TONES[assessment.verdict],
        lead=verdict_line(assessment).removeprefix(status).strip(),
        facts=tuple(_facts(assessment)),
        sections=sections(
            ("What is wrong, and what to do", problems(assessment)), ("Score", _score(assessment)),
            ("Wiring", _drawing(assessment)), ("Devices", _devices(assessment)),
            ("Measurements", figure_blocks.figures(assessment)), ("Under load", figure_blocks.burn_in(assessment)),
            ("Findings", _findings(assessment)), ("Checks that did not run", _skipped(assessment)),
        ),
    )  # fmt: skip


def picture_of(assessment: Assessment, widest: float = layout.WIDEST) -> Picture:
    """The wiring, with each cause at its place."""
    topology, host = assessment.topology, overview.host_name(assessment)
    title = title_of(topology, assessment.origin, f"host {host}" if host else "", overview.machine(assessment))
    marks = cause_marks(assessment)
    return layout.drawn(topology, assessment.snapshot.numa, title, marks, topology.notes, widest=widest)


def _title(assessment: Assessment) -> str:
    return overview.host_name(assessment) or overview.machine(assessment) or source_text(assessment.origin)


def _facts(assessment: Assessment) -> Iterator[tuple[str, str]]:
    machine = overview.machine(assessment)
    if machine and machine != _title(assessment):
        yield "Machine", machine
    yield "Source", source_text(assessment.origin)
    if assessment.choice is not None:
        yield "Reference", visible(assessment.choice.profile.title)
    yield "Level", f"{assessment.level}; {what_ran(assessment)}"
    yield written()


def _score(assessment: Assessment) -> Iterator[Block]:
    yield Paragraph(score_line(assessment))
    if assessment.score is not None and assessment.score.areas:
        rows = tuple((str(area), share) for area, share in assessment.score.areas.items())
        yield Bars(rows=rows, caption="Areas, of 100")


def _drawing(assessment: Assessment) -> Iterator[Block]:
    if assessment.topology.devices:
        text, tall = matrix(assessment.topology, False, "soc", None, []), picture_of(assessment, layout.TALL)
        yield Drawing(pictures=(picture_of(assessment),), text=text, tall=(tall,))


def _devices(assessment: Assessment) -> Iterator[Block]:
    for columns in overview.glance(assessment):
        rows = tuple(
            tuple(Cell(text, _STATES.get(text) if number == 2 else None) for number, text in enumerate(row))
            for row in zip(*(column[1:] for column in columns), strict=True)
        )
        yield Table(head=tuple(column[0] for column in columns), rows=rows)


_STATES: Mapping[str, Tone] = {"ok": "pass", "WARN": "warn", "FAIL": "fail", "?": "unknown"}


def _findings(assessment: Assessment) -> Iterator[Block]:
    if bad := worst_first(assessment.findings):
        yield _listed(bad)
        if evidence := [line for finding in bad for line in _evidence(finding)]:
            yield Fold(title="Evidence", blocks=(Paragraph("\n".join(evidence), code=True),))
    passed = (each for each in assessment.findings if each.status is Status.PASS)
    for area, same in gathered((each.id.partition(".")[0], each) for each in passed).items():
        yield Fold(title=f"{area}: {counted(len(same), 'check')} passed", blocks=(_listed(same),))


def _evidence(finding: Finding) -> Iterator[str]:
    """The finding, and below it each raw fact."""
    if finding.judgement.evidence:
        yield visible(f"{finding.id} {subject_name(finding.subject)}")
        yield from (visible(f"  {item.where}: {item.value}") for item in finding.judgement.evidence)


def _listed(findings: Iterable[Finding]) -> Table:
    rows = tuple((Cell(finding.id), Cell(finding.status.value.upper(), TONES[finding.status]),
                  Cell(visible(subject_name(finding.subject))), Cell(visible(finding.judgement.message)))
                 for finding in findings)
    return Table(head=("Check", "Status", "Device", "Finding"), rows=rows)


def _skipped(assessment: Assessment) -> Iterator[Block]:
    skipped = [finding for finding in assessment.findings if finding.status is Status.SKIP]
    if not skipped:
        return
    yield Paragraph(f"{counted(len(skipped), 'check')}: {skip_counts(skipped)}.")
    for reason, text in SKIPPED.items():
        if same := [finding for finding in skipped if finding.judgement.reason == reason]:
            rows = tuple(
                tuple(map(Cell, (each.id, visible(subject_name(each.subject)), visible(each.judgement.message))))
                for each in same
            )
            table = Table(head=("Check", "Device", "Reason"), rows=rows)
            yield Fold(title=f"{counted(len(same), 'check')}: {text}", blocks=(table,))


TONES: Mapping[Status, Tone] = {
    Status.PASS: "pass", Status.WARN: "warn", Status.FAIL: "fail", Status.UNKNOWN: "unknown", Status.SKIP: "skip",
}  # fmt: skip


def problems(assessment: Assessment) -> Iterator[Block]:
    """The worst first; where nothing is wrong, that."""
    for number, cause in enumerate(assessment.causes, 1):
        yield _cause(assessment, number, cause)
    loose = worst_first(assessment.unexplained)
    for number, finding in enumerate(loose, len(assessment.causes) + 1):
        paragraphs: list[Block] = [Paragraph(sentence(finding), TONES[finding.status])]
        advised = finding.status is not Status.UNKNOWN or finding.judgement.remedy
        paragraphs += [Paragraph(f"Do: {visible(finding.remedy)}")] if advised else []
        yield ProblemBlock(title=f"{number}. {visible(subject_name(finding.subject))}", tone=TONES[finding.status],
                      blocks=tuple(paragraphs))  # fmt: skip
    for finding in assessment.findings:
        entry = finding.acknowledgement
        if entry is not None and finding.acknowledged:
            text = f"{sentence(finding)} (acknowledged until {entry.expiry}: {visible(entry.reason)})"
            yield Paragraph(text, "skip")
    if not any(each.counts for each in assessment.findings):
        yield Paragraph(f"No problems found in the checks that ran: {what_ran(assessment)}.")


def _cause(assessment: Assessment, number: int, cause: Cause) -> ProblemBlock:
    found = assessment.found
    notes = [f"Suspect: {place(cause.component)}", *fru_lines([cause])]
    notes += [f"Confidence: {confidence_text(cause.confidence)}."]
    notes += [f"{recurrence_text(cause.recurrence)}."] if cause.recurrence is not None else []
    findings = [sentence(finding) for finding in assessment.explained(cause)]
    save = list(dict.fromkeys(preserve_text(evidence) for evidence in cause.preserve))
    disturbs = any(action.scope != "none" for action in cause.actions)
    more = len(findings) - 3
    blocks: list[Block] = [Paragraph(text, TONES[cause.severity]) for text in findings[:3]]
    if more > 0:
        blocks.append(Fold(title=f"and {counted(more, 'more finding')}", blocks=tuple(map(Paragraph, findings[3:]))))
    blocks += [Paragraph(visible(note)) for note in notes]
    if save and disturbs:
        blocks += [Paragraph("Save first what this destroys:"), Paragraph("\n".join(map(visible, save)), code=True)]
    when = conditions(cause.actions, again(cause, found))
    steps = zip(cause.actions, when, strict=True)
    blocks.append(OrderedList(steps=tuple(_step(*each, found, at) for at, each in enumerate(steps))))
    title = f"{number}. {problem(assessment, cause)} ({cause.severity.value}, {due(cause)})"
    return ProblemBlock(title=visible(title), tone=TONES[cause.severity], blocks=tuple(blocks))


def _step(action: Action, condition: str, found: Mapping[str, Finding], number: int) -> ListItem:
    how = where(action) + instruction_text(action.instruction, found.get(action.remedy_of))
    commands = tuple(visible(shlex.join(command)) for command in action.commands)
    notes = [condition] if condition else []
    notes += [f"disturbs {disturbed(action)}"] if action.scope != "none" else []
    notes += [URGENCIES[action.urgency]] if number == 0 or action.step not in PREPARATORY else []
    return ListItem(name=STEPS[action.step], commands=commands, how=visible(how), note=visible("; ".join(notes)))


def as_html(report: HealthReport) -> str:
    """The whole report."""
    return html.render(page_of(report))


def as_markdown(report: HealthReport) -> str:
    """The whole report."""
    return markdown.render(page_of(report))


def as_svg(report: HealthReport) -> str:
    """One SVG document."""
    return svg.render([picture_of(report.assessment)])
