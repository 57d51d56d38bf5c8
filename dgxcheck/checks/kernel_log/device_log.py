"""What the kernel log reports of one device, in this boot and earlier ones: the judge of every GPU, and what these
checks share."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeVar

from dgxcheck.checks.driver.loaded import bound
from dgxcheck.checks.engine.box import Box, unlisted_gpu
from dgxcheck.checks.engine.check import Judge, device_of, itself, saying
from dgxcheck.checks.engine.finding import (
    EventKind,
    Evidence,
    Judged,
    Judgement,
    LogEvent,
    Status,
    Subject,
    judged,
    skip,
)
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import DAY_S
from dgxcheck.components.component import Component
from dgxcheck.facts.bdf import gpu_at, is_unplaced
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.kernel_log import OF_GPU, EarlierXid, HostEvent, HostTrouble, KernelLog, LoggedEvent
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.typical import gathered
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.topology.model import Device

_AT_BOOT_S = 1.0
_SHOWN = 10
LEAST_FREE = 3
"""Fewer boots without the fault do not show that an intermittent one is gone."""
_BEFORE = LazyPattern(r"-[1-9]\d{0,3}", "-", flags=re.ASCII)

E = TypeVar("E")
EventRule = Callable[[Box, KernelLog, str, "Device | None"], "Judgement | None"]
"""From the log to the judgement of the device of that bdf; None where the log has nothing about it."""


def per_device(rule: EventRule, bdfs: Callable[[KernelLog], Iterable[str]], nothing: str) -> Judge:
    """A judge of every GPU, and of each other device that the log names; of GPUs alone where some are asked.

    ``nothing``: the message for a GPU of which the log has no such line.
    """

    def judge(box: Box) -> Judged:
        log = box.snapshot.kernel_log
        if isinstance(log, Missing):
            yield from ((box.subject(gpu), unjudged(log)) for gpu in box.gpus)
            return
        for gpu in box.gpus:
            yield box.subject(gpu), rule(box, log, gpu.bdf or "", gpu) or _not_logged(log, gpu, nothing)
        others = {*bdfs(log)} - {gpu.bdf for gpu in box.topology.gpus}
        for bdf in sorted(others) if len(box.gpus) == len(box.topology.gpus) else ():
            if (judgement := rule(box, log, bdf, None)) is not None:
                yield subject_at(box, bdf), judgement

    return saying(rule, judge)


def subject_at(box: Box, bdf: str) -> Subject:
    """Whatever is at that bdf; a GPU by what the log says, too."""
    if box.topology.device(bdf) is None and (is_unplaced(bdf) or bdf in _gpus_of(box.log)):
        return unlisted_gpu(bdf)
    return box.subject_at(bdf)


def _gpus_of(log: KernelLog) -> set[str | None]:
    """Those that the driver names, for a text that has nothing but a log."""
    named = {event.bdf for events in (log.xids, log.off_bus, log.not_started) for event in events}
    named.update(event.part for event in events_of(log, "silent") if event.group)
    return named.union(*((*error.other_gpus, *([error.bdf] if error.line.startswith(OF_GPU) else ()))
                         for error in log.pcie))  # fmt: skip


def _not_logged(log: KernelLog, gpu: Device, nothing: str) -> Judgement:
    driver = bound(gpu)
    if isinstance(driver, str) and driver != "nvidia":
        return skip("not-visible", f"bound to {driver}, which logs no such errors")
    return Judgement(Status.PASS, f"{nothing}{reach(log)}")


def nothing_logged(log: KernelLog, nothing: str) -> Judgement:
    """Of what an excerpt may leave out: a pass only where the log reaches back to boot."""
    message = f"{nothing}{reach(log)}"
    return skip("no-history", message) if isinstance(log.begins, Missing) else Judgement(Status.PASS, message)


def grouped(events: Iterable[tuple[str, E]]) -> dict[str, list[E]]:
    """By name, in order of the names."""
    return dict(sorted(gathered(events).items()))


def most_in_a_day(counts: Sequence[tuple[float, int]]) -> int:
    """The most errors within one day; ``counts`` are sorted by their seconds."""
    most = total = first = 0
    for seconds, count in counts:
        total += count
        while seconds - counts[first][0] >= DAY_S:
            total -= counts[first][1]
            first += 1
        most = max(most, total)
    return most


def reach(log: KernelLog) -> str:
    """The end of a message, where the log does not reach back to boot; empty where it does."""
    if isinstance(log.begins, Missing):
        return "; the log may not reach back to boot"
    return "" if reaches_boot(log) else f"; the log starts {log.begins:.0f} s after boot"


def reaches_boot(log: KernelLog) -> bool:
    """Does it hold the first lines of this boot?"""
    return not isinstance(log.begins, Missing) and log.begins < _AT_BOOT_S


def lines(log: KernelLog, events: Sequence[LoggedEvent]) -> tuple[Evidence, ...]:
    """The lines of the last events."""
    return tuple(Evidence(log.where, event.line) for event in events[-_SHOWN:])


def warning(
    fault: FaultKind, message: str, log: KernelLog, events: Sequence[LoggedEvent], remedy: str = ""
) -> Judgement:
    """About all of these events, whose number is measured."""
    return judged(fault, message, len(events), 0, "", lines(log, events), warns=True, remedy=remedy)


def of_earlier_boots(log: KernelLog, xids: Sequence[EarlierXid]) -> tuple[Evidence, ...]:
    """The last of them, with their boots."""
    return tuple(Evidence(log.where, f"boot {xid.boot}: Xid {xid.number}") for xid in xids[-_SHOWN:])


def happened(events: Sequence[LoggedEvent], kind: EventKind, number: int | None = None) -> tuple[LogEvent, ...]:
    """When each of these was logged, for what followed from it; ``number``: the Xid that all of them stand for."""
    return tuple(LogEvent(event.seconds, kind, number) for event in events)


def gpu_itself(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The GPU, also where none of the topology has its bus id any more."""
    if at.bdf is not None and at.kind in ("pci", "gpu") and device_of(box, at) is None:
        yield Component(kind="gpu", name=gpu_at(at.bdf), bdf=at.bdf)
    else:
        yield from itself(box, at, judgement)


def events_of(log: KernelLog, *troubles: HostTrouble) -> list[HostEvent]:
    """The events of the host of these kinds."""
    return [event for event in log.host if event.trouble in troubles]


def earlier_xids(log: KernelLog, bdf: str = "") -> list[EarlierXid]:
    """Xids of earlier boots in the log itself, of one device or of all. Those of a state file are left out: they may be
    of a board that was replaced."""
    return [xid for xid in log.earlier if not xid.uuid and not xid.date and xid.bdf == (bdf or xid.bdf)]


def boots_since(boots: Collection[str]) -> int:
    """Number of boots since the last of ``boots``, if it exceeds the span of boots with the fault; else 0.

    A fault that stayed away for longer than it lasted was probably repaired: board, power or driver were changed.
    """
    numbers = [-int(boot) for boot in boots if _BEFORE.fullmatch(boot)]
    if not numbers or len(numbers) < len(boots):
        return 0
    since, span = min(numbers), max(numbers) - min(numbers) + 1
    return since if since > max(span, LEAST_FREE) else 0
