"""What a check is, what it sees, and the form that most checks have: a rule over one GPU's facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dgxcheck.checks.finding import Judgement, Subject, skip
from dgxcheck.checks.gaps import unjudged
from dgxcheck.facts.gpu import Nvml
from dgxcheck.frozen import Record
from dgxcheck.reading import Gap, Missing
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Device, Topology
from dgxcheck.topology.slots import slot_of

HOST = Subject(kind="host", name="host", bdf=None, uuid=None, serial=None, slot=None)


class Box(Record):
    """The facts that checks judge."""

    snapshot: Snapshot
    topology: Topology
    gpus: tuple[Device, ...]
    """The GPUs asked about, as the matrix names them; those that NVML does not list have no index."""

    @property
    def nvml(self) -> Nvml | Missing:
        """NVML's list of GPUs; Missing where it cannot even count them."""
        nvml = self.snapshot.gpu
        if isinstance(nvml, Nvml) and isinstance(nvml.count, Missing) and not nvml.gpus:
            return nvml.count
        return nvml

    def subject(self, gpu: Device) -> Subject:
        """A GPU by all its names."""
        listed = () if isinstance(self.nvml, Missing) else self.nvml.gpus
        serial = next((each.serial for each in listed if each.bdf == gpu.bdf), None)
        return Subject(
            kind="gpu", name=gpu.name, bdf=gpu.bdf, uuid=gpu.uuid, serial=serial, slot=slot_of(gpu, self.snapshot.slots)
        )


Judge = Callable[[Box], Iterator[tuple[Subject, Judgement]]]


class Check(Record):
    """One check: ``judge`` looks, the rest is what ``--explain`` prints."""

    id: str
    rule: str
    """What is judged and by which numbers."""
    source: str
    """Where rule and numbers come from."""
    remedy: str
    """What to do about a warn or fail."""
    judge: Judge


def per_gpu(facts: str, rule: Callable[[Any], Judgement | Missing]) -> Judge:
    """A judge that holds ``rule`` to each GPU's record in the snapshot's field ``facts``, once per GPU.

    A rule may answer with the gap that keeps it from judging.
    """

    def judge(box: Box) -> Iterator[tuple[Subject, Judgement]]:
        rows = getattr(box.snapshot, facts)
        for gpu in box.gpus:
            yield box.subject(gpu), _unasked(box, gpu) or _judged(rows, gpu, rule)

    return judge


def _unasked(box: Box, gpu: Device) -> Judgement | None:
    """Why NVML told nothing of this GPU; None where it did."""
    nvml = box.nvml
    if isinstance(nvml, Missing):
        if nvml.gap is Gap.UNRECORDED:
            return unjudged(nvml)
        return skip("dependency-failed", f"NVML tells nothing: {nvml.where}: {nvml}")
    return skip("dependency-failed", "NVML does not list this GPU") if gpu.index is None else None


def _judged(rows: Any, gpu: Device, rule: Callable[[Any], Judgement | Missing]) -> Judgement:
    row = rows if isinstance(rows, Missing) else next((row for row in rows if row.bdf == gpu.bdf), None)
    if row is None:
        return skip("not-recorded", "nothing is known of this GPU")
    said = row if isinstance(row, Missing) else rule(row)
    return unjudged(said) if isinstance(said, Missing) else said
