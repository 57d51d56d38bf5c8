"""The score, expectation by expectation."""

from __future__ import annotations

from itertools import groupby

from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.missing import Missing
from dgxcheck.output.plain_text import columns, lines, percent, visible
from dgxcheck.profiles.model import SelectedProfile
from dgxcheck.score.box import CAPS
from dgxcheck.score.expectation import WEIGHTS, Expectation, Score


def render(score: Score | None, choice: SelectedProfile | None, level: str) -> str:
    """A line per area with its weight, below it one per expectation; equal ones of several GPUs stand together."""
    if score is None or choice is None:
        return lines(["Score: none (no reference machine matches; select one with --profile)."])
    told: list[tuple[str, ...]] = [("", "", "share", "measured", "expected", "of", "source")]
    for area, weight in WEIGHTS.items():
        parts = [each for each in score.expectations if each.area == area]
        if parts:
            mean = f"{score.areas[area]:g}" if area in score.areas else "-"
            told.append((area, f"weight {weight}", mean, "", "", "", ""))
        told += [_cells([*same]) for _, same in groupby(sorted(parts, key=lambda each: each.id), key=_alike)]
    total = "none" if score.total is None else f"{score.total:g}"
    head = f"{visible(choice.profile.title)}, level {level}: score {total}, coverage {percent(score.coverage)}"
    return lines([head, *_reasons(score), "", *columns(told)])


def _reasons(score: Score) -> list[str]:
    """Why the score is less than the mean of its areas, or none."""
    if score.gpus_uncertain:
        return ["No score: only the GPU model is known, and the number of GPUs is not the reference machine's."]
    if score.cap is None or score.uncapped is None or score.uncapped <= score.cap:
        return []
    worst = "a check failed" if score.cap == CAPS[Status.FAIL] else "a check is unknown"
    return [f"The areas give {score.uncapped:g}; the score is at most {score.cap} because {worst}."]


def _alike(each: Expectation) -> tuple[str, str, float]:
    return each.id, _number(each.measured), each.expected


def _cells(same: list[Expectation]) -> tuple[str, ...]:
    one = same[0]
    share = "-" if one.share is None else f"{one.share:.0%}"
    of = one.subject if len(same) == 1 else f"{one.subject} to {same[-1].subject} ({len(same)})"
    unit = f" {one.unit}" if one.unit else ""
    return "", one.id, share, _number(one.measured), f"{one.expected:g}{unit}", visible(of), visible(one.source)


def _number(value: int | float | Missing) -> str:
    return visible(value.reason) if isinstance(value, Missing) else f"{value:.6g}"
