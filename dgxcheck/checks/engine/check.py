"""What a check is: a rule in words, a judge, and where its findings can come from; the forms of judges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dgxcheck.checks.engine.blame import Blames, Shared, itself, nothing_shared
from dgxcheck.checks.engine.box import Box, gpu_unavailable, row_of
from dgxcheck.checks.engine.finding import Judgement, Subject, Traffic, Witness
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.facts.missing import Missing, NeededFact, need
from dgxcheck.facts.record import Record

Judge = Callable[[Box], Iterator[tuple[Subject, Judgement]]]


class Check(Record):
    """One check: ``judge`` looks, ``blames`` and ``shared`` say where a bad finding can come from; the texts are what
    ``--explain`` prints.
    """

    id: str
    rule: str
    """What is judged and by which numbers."""
    source: str
    """Where rule and numbers come from."""
    remedy: str
    """What to do about a warn or fail."""
    judge: Judge
    blames: Blames = itself
    """The components that a bad finding can come from, the likeliest first."""
    shared: Shared = nothing_shared
    """The component to blame where every device that was judged has the fault; None for none."""
    crossed: Blames | None = None
    """Of measurements: the components that the data of a figure crossed, the likeliest to be slow first."""
    traffic: Traffic = ""
    """Figures of one kind of traffic exonerate what they crossed for each other."""
    witness: Witness = "state"
    last: bool = False
    """Is it run after the others, with their findings in ``Box.found``?"""


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
