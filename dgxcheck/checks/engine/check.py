"""What a check is: a rule in words, a judge, and where its findings can come from; the forms of judges."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from dgxcheck.checks.engine.blame import Blames, Shared, itself, nothing_shared
from dgxcheck.checks.engine.box import HOST, Box, gpu_unavailable
from dgxcheck.checks.engine.finding import Instead, Judged, Judgement, Traffic, Witness
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.components.gpu_view import row_of
from dgxcheck.facts.missing import Missing, NeededFact, need
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Device

Judge = Callable[[Box], Judged]


class Check(Record, kw_only=False):
    """One check: ``judge`` looks, ``blames`` and ``shared`` say where a bad finding can come from.

    What ``--explain`` prints of it begins the judge's docstring: the rule, that is what is judged and by which numbers,
    and where it and its numbers come from::

        Fails from 1 uncorrected (double-bit) memory error since the driver was loaded.

        Source: DCGM diag, Azure and Meta node checks fail on the first
    """

    id: str
    judge: Judge
    blames: Blames = itself
    """The components that a bad finding can come from, the likeliest first."""
    shared: Shared = nothing_shared
    """The component to blame where every device that was judged has the fault; None for none."""
    remedy: str = ""
    """What to do about a warn or fail."""
    crossed: Blames | None = None
    """Of measurements: the components that the data of a figure crossed, the likeliest to be slow first."""
    traffic: Traffic = ""
    """Figures of one kind of traffic exonerate what they crossed for each other."""
    counters: bool = False
    """Do its findings rest on what counters say?"""
    last: bool = False
    """Is it run after the others, with their findings in ``Box.found``?"""

    @property
    def rule(self) -> str:
        return self._paragraph(0)

    @property
    def source(self) -> str:
        return self._paragraph(1).removeprefix("Source: ")

    def _paragraph(self, number: int) -> str:
        paragraphs = [*(self.judge.__doc__ or "not kept by python -OO").split("\n\n", 2), ""]
        return " ".join(paragraphs[number].split())

    @property
    def witness(self) -> Witness:
        """What its findings rest on."""
        return "counters" if self.counters else _WITNESSES.get(self.id.partition(".")[0], "state")


_WITNESSES: dict[str, Witness] = {"kernel": "log", "measure": "measurement"}
"""Of the checks of a subject."""


GpuRule = Callable[[Box, Any], "Judgement | Missing"]
"""From one GPU's record to a judgement, or to the gap that keeps it from one."""


def ruled(rule: Callable[..., Judgement | Missing], *args: Any) -> Judgement:
    """The judgement of a rule; of the gap if it returned one or needed a missing fact."""
    try:
        judgement = rule(*args)
    except NeededFact as needed:
        judgement = needed.gap
    except Instead as instead:
        judgement = instead.judgement
    return unjudged(judgement) if isinstance(judgement, Missing) else judgement


def judgements(check: Check, box: Box) -> Judged:
    """What a check makes of a machine; of the host where a fact or list that all of it needs is missing."""
    try:
        yield from check.judge(box)
    except NeededFact as needed:
        yield HOST, unjudged(needed.gap)
    except Instead as instead:
        yield HOST, instead.judgement


def called(name: str) -> Callable[..., Any]:
    """The function ``PACKAGE.MODULE.NAME`` of the checks, whose module is imported when it is first called."""
    module, _, function = name.rpartition(".")
    return lambda *args: getattr(import_module(f"dgxcheck.checks.{module}"), function)(*args)


def saying(rule: Callable[..., Any], judge: Judge) -> Judge:
    """The judge, with the docstring of the rule that it applies."""
    judge.__doc__ = rule.__doc__
    return judge


def per_host(rule: Callable[[Box], Judgement | Missing]) -> Judge:
    """A judge that applies ``rule`` once, to the host."""

    def judge(box: Box) -> Judged:
        yield HOST, ruled(rule, box)

    return saying(rule, judge)


def per_listed_gpu(rule: Callable[[Box, Device], Judgement | Missing]) -> Judge:
    """A judge that applies ``rule`` to each GPU that NVML lists."""

    def judge(box: Box) -> Judged:
        for gpu in box.gpus:
            yield box.subject(gpu), gpu_unavailable(box, gpu) or ruled(rule, box, gpu)

    return saying(rule, judge)


def per_gpu(facts: str, rule: GpuRule) -> Judge:
    """A judge that applies ``rule`` to each GPU's record in the snapshot's field ``facts``."""
    return saying(rule, per_listed_gpu(lambda box, gpu: rule(box, need(row_of(getattr(box.snapshot, facts), gpu.bdf)))))
