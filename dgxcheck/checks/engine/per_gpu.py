"""The form that most checks have: a rule over one GPU's facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dgxcheck.checks.engine.box import Box, gpu_unavailable, row_of
from dgxcheck.checks.engine.check import Judge
from dgxcheck.checks.engine.finding import Judgement, Subject
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.facts.missing import Missing, NeededFact, need

Rule = Callable[[Box, Any], "Judgement | Missing"]
"""From one GPU's record to a judgement, or to the gap that keeps it from one."""


def ruled(rule: Callable[..., Judgement | Missing], *args: Any) -> Judgement:
    """The judgement of a rule; of the gap if it returned one or needed a missing fact."""
    try:
        judgement = rule(*args)
    except NeededFact as needed:
        judgement = needed.gap
    return unjudged(judgement) if isinstance(judgement, Missing) else judgement


def per_gpu(facts: str, rule: Rule) -> Judge:
    """A judge that applies ``rule`` to each GPU's record in the snapshot's field ``facts``, once per GPU."""

    def judge(box: Box) -> Iterator[tuple[Subject, Judgement]]:
        rows = getattr(box.snapshot, facts)
        for gpu in box.gpus:
            yield box.subject(gpu), gpu_unavailable(box, gpu) or ruled(_on_row, rule, box, rows, gpu.bdf)

    return judge


def _on_row(rule: Rule, box: Box, rows: Any, bdf: str | None) -> Judgement | Missing:
    return rule(box, need(row_of(rows, bdf)))
