"""What a check is, what it sees, and the form that most checks have: a rule over one GPU's facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dgxcheck.checks.engine.finding import Judgement, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.difference.model import Compared
from dgxcheck.facts.gpu import Nvml
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record, replace
from dgxcheck.profiles.library import board_id
from dgxcheck.profiles.model import Board, Choice
from dgxcheck.settings import Settings
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Device, Topology
from dgxcheck.topology.slots import slot_of

DEFAULTS = Settings()
HOST = Subject(kind="host", name="host", bdf=None)
NO_GROWTH = skip("not-in-level", "counters were read once")


class Growth(Record):
    """Counters of the box at two times, in snapshots that hold nothing else."""

    old: Snapshot
    new: Snapshot
    seconds: float
    how: str
    """For people: ``since the run of 2026-11-20T10:00:00Z``, ``within 10 s``."""


class Box(Record):
    """The facts that checks judge, and what they are held to."""

    snapshot: Snapshot
    topology: Topology
    gpus: tuple[Device, ...]
    """The GPUs asked about, as the matrix names them; those that NVML does not list have no index."""
    settings: Settings = DEFAULTS
    choice: Choice | None = None
    """The reference machine, where there is one for this box."""
    boards: Mapping[str, Board] = {}
    """What is known of GPU models, by id."""
    drift: Compared | None = None
    """What differs from the recording of ``--baseline``; None without one."""
    growth: Growth | Judgement = NO_GROWTH
    """The counters at two times, or the skip that stands in place of every judgement of growth."""

    @property
    def nvml(self) -> Nvml | Missing:
        """NVML's list of GPUs; Missing where it cannot even count them."""
        nvml = self.snapshot.gpu
        if isinstance(nvml, Nvml) and isinstance(nvml.count, Missing) and not nvml.gpus:
            return nvml.count
        return nvml

    def board(self, gpu: Device) -> Board | None:
        """What is known of this GPU's model."""
        return self.boards.get(board_id(gpu))

    def pair(self, a: Device, b: Device) -> Subject:
        """What joins two GPUs."""
        return replace(self.subject(a), peer=self.subject(b))

    def subject(self, gpu: Device) -> Subject:
        """A GPU by all its names."""
        listed = () if isinstance(self.nvml, Missing) else self.nvml.gpus
        serial = next((each.serial for each in listed if each.bdf == gpu.bdf), None)
        return Subject(
            kind="gpu", name=gpu.name, bdf=gpu.bdf, uuid=gpu.uuid, serial=serial, slot=slot_of(gpu, self.snapshot.slots)
        )


Rule = Callable[[Box, Any], "Judgement | Missing"]
"""From one GPU's record to a judgement, or to the gap that keeps it from one."""
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


def per_gpu(facts: str, rule: Rule) -> Judge:
    """A judge that holds ``rule`` to each GPU's record in the snapshot's field ``facts``, once per GPU."""

    def judge(box: Box) -> Iterator[tuple[Subject, Judgement]]:
        rows = getattr(box.snapshot, facts)
        for gpu in box.gpus:
            yield box.subject(gpu), silent(box, gpu) or _judged(box, rows, gpu, rule)

    return judge


def silent(box: Box, gpu: Device) -> Judgement | None:
    """Why NVML told nothing of this GPU; None where it did."""
    nothing = untold(box)
    if nothing is not None:
        return nothing
    return skip("dependency-failed", "NVML does not list this GPU") if gpu.index is None else None


def guest(box: Box) -> str | None:
    """The hypervisor that this box is a guest of; None where there is none or nobody can tell."""
    host = box.snapshot.host
    return None if isinstance(host, Missing) or not isinstance(host.vm, str) else host.vm


def in_mig(box: Box, *bdfs: str | None) -> bool:
    """Is MIG on in one of these GPUs? It takes NVLink and P2P from it."""
    rows = box.snapshot.gpu_modes
    return not isinstance(rows, Missing) and any(row.mig is True for row in rows if row.bdf in bdfs)


def untold(box: Box) -> Judgement | None:
    """Why NVML told nothing at all; None where it lists GPUs."""
    nvml = box.nvml
    if not isinstance(nvml, Missing):
        return None
    if nvml.gap is Gap.UNRECORDED:
        return unjudged(nvml)
    return skip("dependency-failed", f"NVML tells nothing: {nvml.where}: {nvml}")


def row_of(rows: Any, bdf: str | None) -> Any:
    """One GPU's record among those of all; a gap or a skip where there is none."""
    if isinstance(rows, Missing):
        return rows
    return next((row for row in rows if row.bdf == bdf), skip("not-recorded", "nothing is known of this GPU"))


def _judged(box: Box, rows: Any, gpu: Device, rule: Rule) -> Judgement:
    row = row_of(rows, gpu.bdf)
    if isinstance(row, Judgement):
        return row
    said = row if isinstance(row, Missing) else rule(box, row)
    return unjudged(said) if isinstance(said, Missing) else said
