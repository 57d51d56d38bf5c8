"""Findings and the components that they blame, as lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from dgxcheck.checks.engine.finding import BAD, FAULTY, Finding, SkipReason, Status, Subject
from dgxcheck.components.component import EVERY_GPU, Component
from dgxcheck.facts.bdf import shown
from dgxcheck.facts.typical import gathered
from dgxcheck.output.plain_text import at_most, columns, visible, wording, wrapped

_NOUNS = wording("component")
_OWN_NAMES = wording("part of the host")
"""Parts of the host that are named without it."""


def component_name(component: Component) -> str:
    """With its bus id, unless the name holds it or it joins two GPUs."""
    plain = not (bdf := shown(component.bdf)) or bdf in component.name or component.kind in ("nvlink", "path")
    name = component.name if plain else f"{component.name} {component.bdf}"
    part = f"{component.part} at {component.position}" if component.position else component.part
    if component.kind == "host" and component.slot:
        return f"{component.part} of the {component.slot}"
    if component.kind == "slot":
        return f"{part} {name}".strip()
    if component.kind == "host" and component.part in _OWN_NAMES:
        return f"{_OWN_NAMES[component.part]}{f' ({component.position})' if component.position else ''}"
    if component.kind == "nvswitch" and component.peer_bdf:
        return f"NVLinks between NVSwitches {component.name}"
    noun = f"{_NOUNS.get(component.kind, '')} {name}".strip()
    if component.kind == "gpus" and name != EVERY_GPU:
        noun = name
    if component.position and component.kind == "disk":
        return f"disk {component.position} of {name}"
    if component.position and not component.part:
        return f"{noun} port {component.position}"
    return f"{part} of {noun}" if part else noun


SKIPPED: Mapping[SkipReason, str] = wording("skip")

_MOST_NOTED = 8
_NOTED: tuple[SkipReason, ...] = ("no-history", "not-configured")
"""Seen, and neither good nor bad: counts without a time, a port that nobody says is in use."""


def sentence(finding: Finding) -> str:
    """``FAIL gpu.lost GPU2 0000:0a:00.0: NVML enumerates the GPU but cannot open it``"""
    place = subject_name(finding.subject)
    about = f" {place}" if finding.subject.kind != "host" else ""
    return visible(f"{finding.status.value.upper()} {finding.id}{about}: {finding.judgement.message}")


def subject_name(subject: Subject) -> str:
    """``GPU2 0000:0a:00.0 - GPU3 0000:0b:00.0``"""
    bdf = shown(subject.bdf)
    name = f"{subject.name} {bdf}" if bdf and bdf not in subject.name else subject.name
    return f"{name} - {subject_name(subject.peer)}" if subject.peer else name


def unexplained(finding: Finding, width: int | None) -> list[str]:
    """A finding that no cause explains, with its own remedy; of one that could not be judged what would tell more."""
    lines = [wrapped(sentence(finding), width, 6)]
    if finding.status in FAULTY or finding.judgement.remedy:
        lines.append(wrapped(f"  do: {visible(finding.remedy)}", width, 6))
    return lines


def noted(findings: Iterable[Finding], width: int | None) -> list[str]:
    """What a log or a tool's output reports that is no fault by itself: whoever pasted it wants to know."""
    of_interest = [
        finding for finding in findings
        if (finding.status is Status.PASS and finding.witness == "log" and finding.judgement.evidence)
        or (finding.status is Status.SKIP and finding.judgement.reason in _NOTED and finding.judgement.evidence)
    ]  # fmt: skip
    lines = [wrapped(sentence(each).replace(each.status.value.upper(), "note:", 1), width, 6) for each in of_interest]
    return at_most(lines, _MOST_NOTED)


def acknowledged(finding: Finding, width: int | None) -> list[str]:
    """A finding that the site accepts; of one whose acknowledgement lapsed, which stands with the others, only why."""
    acknowledgement = finding.acknowledgement
    if acknowledgement is None:
        return []
    until = f"acknowledged until {acknowledgement.expiry}: {visible(acknowledgement.reason)}"
    if finding.acknowledged:
        return [wrapped(sentence(finding), width, 6), wrapped(f"  {until}", width, 6)]
    place = visible(subject_name(finding.subject))
    return [wrapped(f"{finding.id} {place}: {until}; lapsed: {acknowledgement.lapsed}", width, 6)]


def by_subject(findings: Iterable[Finding]) -> list[str]:
    """Every finding that was judged, below the device that it is about; the host first."""
    groups = gathered(
        ("Host" if each.subject.kind == "host" else subject_name(each.subject), each)
        for each in findings if each.status is not Status.SKIP
    )  # fmt: skip
    lines: list[str] = []
    for name in sorted(groups, key=lambda name: name != "Host"):
        rows = columns([(each.status.value.upper(), each.id, visible(each.judgement.message)) for each in groups[name]])
        lines += [f"{visible(name)}:", *(f"  {row}" for row in rows), ""]
    return lines


def skipped(findings: Sequence[Finding]) -> list[str]:
    """Every check that did not run, by reason."""
    lines: list[str] = []
    for reason, text in SKIPPED.items():
        if group := [each for each in findings if each.status is Status.SKIP and each.judgement.reason == reason]:
            rows = columns([
                (each.id, visible(subject_name(each.subject)), visible(each.judgement.message)) for each in group
            ])
            lines += [f"Did not run, {text}:", *(f"  {row}" for row in rows), ""]
    return lines


def skip_counts(findings: Iterable[Finding]) -> str:
    """``29 not supported by this hardware or driver, 1 not configured``"""
    counted = Counter(finding.judgement.reason for finding in findings if finding.status is Status.SKIP)
    return ", ".join(f"{count} {SKIPPED.get(reason, reason)}" for reason, count in counted.most_common())


def worst_first(findings: Iterable[Finding]) -> list[Finding]:
    """Bad findings that count."""
    return sorted((finding for finding in findings if finding.counts), key=lambda finding: BAD.index(finding.status))
