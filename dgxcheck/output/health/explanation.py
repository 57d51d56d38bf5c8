"""``--explain``: the rules, what this box has of them, the score by its expectations, what privileges add."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from textwrap import fill

from dgxcheck.assessment.privileges import Needed
from dgxcheck.assessment.result import Assessment
from dgxcheck.assessment.selection import Topic
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import BAD, WORST_FIRST, Finding, counted, first_of
from dgxcheck.checks.registry import CHECKS
from dgxcheck.diagnosis.action import first_remedy
from dgxcheck.facts.missing import Missing
from dgxcheck.output.health.finding_lines import component_name, sentence
from dgxcheck.output.health.instructions import URGENCIES, confidence_text, step_text
from dgxcheck.output.origin import source_line
from dgxcheck.output.plain_text import at_most, columns, lines, percent, visible, wrapped
from dgxcheck.output.topo.tree import excerpt
from dgxcheck.score.expectation import WEIGHTS, Expectation, Score
from dgxcheck.settings import THRESHOLDS, Settings

_NUMBER = re.compile(r"\{([a-z0-9.-]+)\}")
"""The name of a threshold in the text of a rule."""
DEFAULTS = Settings()


def explained(check: Check, settings: Settings) -> str:
    """What ``--explain`` prints."""
    text_lines = [check.id, f"  Rule:   {rule(check, settings)}", f"  Source: {check.source}"]
    for name in dict.fromkeys(_NUMBER.findall(check.rule)):
        at_site = f"{settings.path}; default {_number(name, DEFAULTS)}" if name in settings.thresholds else ""
        text_lines.append(f"  {name}: {_number(name, settings)} ({at_site or THRESHOLDS[name].source})")
    return lines([*text_lines, f"  Remedy: {check.remedy}."])


def rule(check: Check, settings: Settings) -> str:
    """The rule of a check with its thresholds as numbers."""
    return _NUMBER.sub(lambda name: _number(name[1], settings), check.rule)


def _number(name: str, settings: Settings) -> str:
    return f"{settings.limit(name):g} {THRESHOLDS[name].unit}"


_MOST = 8
_MOST_EVIDENCE = 4


def on_box(
    about: Topic, assessment: Assessment, found: Sequence[Finding], settings: Settings, width: int | None
) -> str:  # fmt: skip
    """The rules, every finding in a line, and the worst of them in full."""
    ids = {finding.id for finding in found} if about.fault is not None else {check.id for check in about.checks}
    text_lines = [f"{about.fault.word} ({about.fault.category}): {about.fault.meaning}", ""] if about.fault else []
    for check in CHECKS:
        if check.id in ids:
            text_lines += [*explained(check, settings).splitlines(), ""]
    ranked = sorted(found, key=lambda finding: WORST_FIRST.index(finding.status))
    in_full = len(ranked) == 1 or bool(ranked and ranked[0].status in BAD)
    text_lines.append(f"On this box, {counted(len(ranked), 'finding')}:" if ranked else "On this box: no such finding")
    if len(ranked) > 1:
        text_lines += [f"  {line}" for line in at_most([*map(sentence, ranked)], _MOST)]
    text_lines += ["", *_in_full(ranked[0], assessment)] if in_full else []
    text_lines += ["", *source_line(assessment.origin)]
    return lines(wrapped(line, width, 20 if "─" in line else 11) for line in text_lines)


def _in_full(finding: Finding, assessment: Assessment) -> list[str]:
    """Everything about one finding, a member a line."""
    judgement = finding.judgement
    unit = f" {judgement.unit}" if judgement.unit else ""
    profile, fault = assessment.profile, judgement.fault
    about = {
        "Reading": judgement.message,
        "Measured": None if judgement.measured is None else f"{judgement.measured}{unit}",
        "Limit": None if judgement.expected is None else f"{judgement.expected}{unit}",
        "Compared": None if profile is None else f"{profile.name}, {profile.title}",
        "Fault": None if fault is None else f"{fault.word}: {fault.meaning}",
    }
    lines = [f"{finding.key}: {finding.status.value}"]
    lines += [f"  {f'{name}:':<10} {visible(text)}" for name, text in about.items() if text is not None]
    for number, each in enumerate(judgement.evidence[:_MOST_EVIDENCE]):
        lines.append(f"  {'Evidence:' if not number else '         '}  {visible(f'{each.where} = {each.value}')}")
    lines += _blame(finding, assessment)
    names, bdf = assessment.snapshot.pci_names, finding.subject.bdf
    if bdf and (place := excerpt(assessment.topology, names, bdf)):
        lines += ["  Place:", *(f"    {line}" for line in place)]
    return lines


def _blame(finding: Finding, assessment: Assessment) -> list[str]:
    """The cause that explains it and the first step; without one the finding's own remedy."""
    for cause in assessment.causes:
        if finding.key in cause.explains:
            first = first_remedy(cause.actions)
            others = len(cause.explains) - 1
            also = f"; explains {counted(others, 'other finding')}" if others else ""
            due = URGENCIES[first.urgency]
            return [
                f"  Blames:    {visible(component_name(cause.component))}{also}",
                f"  Sure:      {visible(confidence_text(cause.confidence))}",
                f"  First:     {visible(f'{step_text(first, assessment.found)} ({due})')}",
            ]
    if finding.status not in BAD:
        return []
    blamed = [visible(component_name(component)) for component in finding.blames[:_MOST_EVIDENCE]]
    could = [f"  Blames:    {' or '.join(blamed)}"] if blamed else []
    return [*could, f"  First:     {visible(finding.remedy)}"]


def score_text(assessment: Assessment) -> str:
    """A line per area with its weight, below it one per expectation; equal ones of several GPUs stand together."""
    score, choice = assessment.score, assessment.choice
    if score is None or choice is None:
        return lines(["Score: none (no reference machine matches; select one with --profile)."])
    table: list[tuple[str, ...]] = [("", "", "share", "measured", "expected", "of", "source")]
    for area, weight in WEIGHTS.items():
        parts = [expectation for expectation in score.expectations if expectation.area == area]
        if parts:
            mean = f"{score.areas[area]:g}" if area in score.areas else "-"
            table.append((area, f"weight {weight}", mean, "", "", "", ""))
        parts.sort(key=lambda each: each.id)
        alike = groupby(parts, lambda each: (each.id, _reading(each.measured), each.expected))
        table += [_cells([*same]) for _, same in alike]
    total = "none" if score.total is None else f"{score.total:g}"
    against = f"{visible(choice.profile.title)}, level {assessment.level}"
    head = f"{against}: score {total}, coverage {percent(score.coverage)}"
    return lines([head, *_reasons(score), "", *columns(table)])


def _reasons(score: Score) -> list[str]:
    """Why the score is less than the mean of its areas, or none."""
    if score.gpus_uncertain:
        return ["No score: only the GPU model is known, and the number of GPUs is not the reference machine's."]
    usable = f"{score.usable_gpus:.0%} of the GPUs can be used, and the score is no higher."
    numbers = ", ".join(map(str, score.uncounted))
    beside = f"Not counted: cause {numbers}; of its part nothing is expected of this reference machine."
    return [*([usable] if score.usable_gpus < 1 else []), *([beside] if numbers else [])]


def _cells(same: list[Expectation]) -> tuple[str, ...]:
    one = same[0]
    share = "-" if one.share is None else f"{one.share:.0%}"
    of = one.subject if len(same) == 1 else f"{one.subject} to {same[-1].subject} ({len(same)})"
    unit = f" {one.unit}" if one.unit else ""
    return "", one.id, share, _reading(one.measured), f"{one.expected:g}{unit}", visible(of), visible(one.source)


def _reading(value: int | float | Missing) -> str:
    return visible(value.reason) if isinstance(value, Missing) else f"{value:.6g}"


_SHOWN = 2


def privileges_text(privileges: Sequence[Needed]) -> str:
    """A paragraph for each privilege."""
    return "\n".join(map(_paragraph, privileges))


def _paragraph(needed: Needed) -> str:
    checks = fill(", ".join(needed.checks), 110, initial_indent="  Adds to: ", subsequent_indent="    ",
                  break_on_hyphens=False)  # fmt: skip
    return lines([
        f"{needed.privilege.name}: {'missing' if needed.missing else 'available'}",
        f"  Gives: {needed.privilege.gives}",
        *([f"  Not readable now: {_some(needed.missing)}"] if needed.missing else []),
        *([checks] if needed.checks else []),
    ])  # fmt: skip


def _some(keys: Sequence[str]) -> str:
    places = ["/dev/kmsg" if key.startswith("kmsg") else visible(key.partition(" ")[2]) for key in keys]
    return first_of(places, _SHOWN)
