"""What a check is: a rule in words, a judge, and the components that its findings can come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dgxcheck.checks.engine.blame import Blames, Shared, itself, nothing_shared
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, Subject, Traffic, Witness
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
