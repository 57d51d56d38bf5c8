"""What a check is: a rule in words, a judge, and where its findings can come from; the forms of judges and of blame.

``Check.blames`` gives the likeliest component first, from subject, fault and evidence of one bad finding.
``Check.shared`` names what is to blame instead where every device that was judged has the fault: a setting, the air.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib import import_module
from itertools import islice
from typing import Any

from dgxcheck.checks.engine.box import HOST, Box, gpu_unavailable
from dgxcheck.checks.engine.finding import Evidence, Instead, Judged, Judgement, Subject, Traffic, Witness, as_evidence
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.components.component import DRIVER, Component, Kind, host_part
from dgxcheck.components.device_facts import row_of
from dgxcheck.components.locate import all_gpus, device_part, links_above, links_at
from dgxcheck.facts.faults import BY_WORD
from dgxcheck.facts.faults.kind import FIELD_DIAGNOSTIC, NVLINK_XIDS
from dgxcheck.facts.ids import PCI_BRIDGE
from dgxcheck.facts.missing import Missing, NeededFact, need
from dgxcheck.facts.nature import rows_of
from dgxcheck.facts.record import Record
from dgxcheck.facts.values import where
from dgxcheck.package_files import table
from dgxcheck.topology.model import Device

Blames = Callable[[Box, Subject, Judgement], Iterable[Component]]
Shared = Callable[[Box, Subject, Judgement], "Component | None"]


def device_of(box: Box, subject: Subject | None) -> Device | None:
    """The GPU or HCA of a subject, where the topology has it; None for ports, bridges, disks and the host."""
    if subject is None or subject.kind not in ("gpu", "hca"):
        return None
    return box.topology.device(subject.bdf or subject.name)


def component_of(box: Box, subject: Subject, part: str = "") -> Component:
    """The subject as a component, or a part of it."""
    if (device := device_of(box, subject)) is not None:
        return device_part(box, device, part)
    of_function: Kind = "bridge" if box.subclass(subject.bdf) == PCI_BRIDGE else "function"
    kind = of_function if subject.kind == "pci" else subject.kind
    return Component(kind=kind, name=subject.name, bdf=subject.bdf, part=part)


def itself(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The device, port, disk or interface that the finding is about."""
    yield component_of(box, subject)


def part(name: str) -> Blames:
    """A part or setting of the device that the finding is about; of the host for a finding about the host."""

    def blames(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
        yield component_of(box, subject, name)

    return blames


def host(name: str) -> Blames:
    """A part or setting of the host, whatever device shows it."""

    def blames(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
        yield host_part(name, subject.part if subject.kind == "host" else "")

    return blames


def driver(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The NVIDIA driver."""
    yield DRIVER


def own_link(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The PCIe link directly above a device, or the links that end at a bridge; itself where its path is not known."""
    device = device_of(box, subject)
    links = links_at(box, subject.bdf or "") if device is None else islice(links_above(box, device), 1)
    yield from tuple(links) or (component_of(box, subject),)


def nothing_shared(box: Box, subject: Subject, judgement: Judgement) -> None:
    """The same fault at every device says no more than at one."""


def host_if_all(name: str) -> Shared:
    """Where every device has it, this part or setting of the host has done it."""
    return lambda box, subject, judgement: host_part(name)


def setting_of_all(name: str) -> Shared:
    """Where every GPU has it, one command sets it in all of them."""
    return lambda box, subject, judgement: all_gpus(box, name)


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
    crossed: Blames | None = None
    """Of measurements: the components that the data of a figure crossed, the likeliest to be slow first."""
    traffic: Traffic = ""
    """Figures of one kind of traffic exonerate what they crossed for each other."""
    counters: bool = False
    """Do its findings rest on what counters say?"""
    last: bool = False
    """Is it run after the others, with their findings in ``Box.found``?"""

    @property
    def remedy(self) -> str:
        """What to do about a warn or fail."""
        return remedy_of(self.id)

    @property
    def rule(self) -> str:
        return _paragraphs(self.judge.__doc__)[0]

    @property
    def source(self) -> str:
        return _paragraphs(self.judge.__doc__)[1].removeprefix("Source: ")

    @property
    def witness(self) -> Witness:
        """What its findings rest on."""
        return "counters" if self.counters else _WITNESSES.get(self.id.partition(".")[0], "state")


@cache
def _paragraphs(doc: str | None) -> tuple[str, ...]:
    """Each in one line."""
    return tuple(" ".join(each.split()) for each in (*(doc or "not kept by python -OO").split("\n\n", 2), ""))


_WITNESSES: dict[str, Witness] = {"kernel": "log", "measure": "measurement"}
"""Of the checks of a subject."""


_REMEDIES = {(row["check"], row["case"]): row["remedy"] for row in table("checks/remedies.tsv")}
IDS = [check for check, case in _REMEDIES if check and not case]
"""Of all checks, in the order in which they are shown."""


@cache
def remedy_of(check: str, case: str = "") -> str:
    """What to do about a warn or fail of a check, or in a case of its own (``remedies.tsv``), with what stands for the
    phrases in braces; empty for a check without a row.

    Raises:
        KeyError: the check has no such case, or there is no such phrase.
    """
    text = _REMEDIES[check, case] if case else _REMEDIES.get((check, case), "")
    for name in [each.partition("}")[0] for each in text.split("{")[1:]]:
        text = text.replace(f"{{{name}}}", _phrase(name))
    return text


def own_remedy(check: str, case: str) -> str:
    """The same of a case that need not have its own; empty where the remedy of the check serves."""
    return remedy_of(check, case) if (check, case) in _REMEDIES else ""


def _phrase(name: str) -> str:
    if name in ("", "node") or name.isdecimal():  # the check fills it in
        return f"{{{name}}}"
    if name in _PHRASES:
        return _PHRASES[name]
    return BY_WORD[name].remedy if name in BY_WORD else remedy_of("", name)


_PHRASES = {"field-diagnostic": FIELD_DIAGNOSTIC, "nvlink-xids": NVLINK_XIDS}


def asked(record: Record, *names: str) -> tuple[Evidence, ...]:
    """Facts of a record, each with the file or query that its row names."""
    own = rows_of(type(record))
    return tuple(Evidence(where(record, (own[name],)), as_evidence(getattr(record, name))) for name in names)


def asked_twice(old: Record, new: Record, name: str) -> Evidence:
    """The same of one fact at two readings."""
    (before,), (after,) = asked(old, name), asked(new, name)
    return Evidence(after.where, [before.value, after.value])


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


def of_listed_gpus(box: Box, judge: Callable[[Device, Subject], Judged]) -> Judged:
    """What ``judge`` makes of each GPU that NVML lists, and why every other is not judged."""
    for gpu in box.gpus:
        subject, unavailable = box.subject(gpu), gpu_unavailable(box, gpu)
        yield from judge(gpu, subject) if unavailable is None else ((subject, unavailable),)


def per_gpu(facts: str, rule: GpuRule) -> Judge:
    """A judge that applies ``rule`` to each GPU's record in the snapshot's field ``facts``."""
    return saying(rule, per_listed_gpu(lambda box, gpu: rule(box, need(row_of(getattr(box.snapshot, facts), gpu.bdf)))))
