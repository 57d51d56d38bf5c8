"""The warnings of NCCL, and what each stands for: a part of the machine, or the program and its settings.

The GPUs of one host in NCCL's log: which rank, which number of CUDA and of NVML, which bus id.

NVML's number is the one that nvidia-smi shows; CUDA's depends on CUDA_VISIBLE_DEVICES, so it makes no list.

The words of NCCL's warnings, and what each stands for: a part of the machine, or the program and its settings.

Their texts: https://github.com/NVIDIA/nccl/tree/master/src (misc/ibvwrap.cc, misc/socket.cc, transport/*.cc, init.cc).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from dgxcheck.facts.bdf import as_bdf, number_of, unplaced
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.listing import INDEX, gpu_function
from dgxcheck.readers.model import HOST, Reports
from dgxcheck.readers.network.files import EFA_ENDINGS, completion
from dgxcheck.readers.values import gpu
from dgxcheck.readers.wording import Wording, any_of, fault_of, outcome_of, rows

_INIT = LazyPattern(
    r".{0,120}\brank \d{1,7} nranks \d{1,7} cudaDev (?P<cuda>\d{1,3})(?: nvmlDev (?P<nvml>\d{1,3}))?"
    r"(?: busId (?P<bus>[0-9a-f]{3,13}))?\b.{0,400}"
)
_SHORTEST_BUS_ID = 3
"""Digits: ``1e0`` is 00:1e.0; what is shorter is NVML's number."""


def bdf_of(bus_id: str) -> str | None:
    """``9b000`` is 0000:9b:00.0: the digits of a bdf without its separators and leading zeros."""
    digits = bus_id.lower().rjust(9, "0")
    return as_bdf(f"{digits[:-5]}:{digits[-5:-3]}:{digits[-3:-1]}.{digits[-1]}")


class Gpus:
    """What the lines of one host say of its GPUs."""

    def __init__(self) -> None:
        self._of_cuda: dict[int, set[str]] = {}
        self._of_nvml: dict[int, set[str]] = {}
        self._shown: dict[str, None] = {}

    def take(self, text: str) -> bool:
        """Is it a line about the start of a rank?"""
        init = _INIT.fullmatch(text)
        if init is None:
            return False
        nvml, cuda = gpu(init["nvml"] or ""), gpu(init["cuda"])
        bdf = bdf_of(init["bus"]) if init["bus"] else None
        if (place := bdf or (unplaced(nvml) if nvml is not None else None)) is not None:
            self._shown[place] = None
            for numbers, number in ((self._of_nvml, nvml), (self._of_cuda, cuda)):
                if number is not None:
                    numbers.setdefault(number, set()).add(place)
        return True

    def named(self, device: str) -> str | None:
        """The GPU in the brackets of a channel: a bus id (``3b000``, 2.5 to 2.17) or NVML's number (``6``)."""
        number = gpu(device) if len(device) < _SHORTEST_BUS_ID else None
        place = bdf_of(device) if number is None else _agreed(self._of_nvml).get(number, unplaced(number))
        if place is not None:
            self._shown[place] = None
        return place

    def of_cuda(self, number: int) -> str | None:
        """The GPU with this number of CUDA, where all ranks agree on it."""
        return _agreed(self._of_cuda).get(number)

    def words(self, place: str) -> str:
        """``GPU3`` for people, else the bus id."""
        numbers = [number for number, places in self._of_nvml.items() if places == {place}]
        return f"GPU{numbers[0]}" if numbers else place

    def facts(self) -> Iterator[tuple[str, Json]]:
        """NVML's list as far as the log tells it, and the functions of the GPUs."""
        numbers = _agreed(self._of_nvml)
        numbers |= {number: place for place in self._shown if (number := number_of(place)) is not None}
        if len(set(numbers.values())) == len(numbers):
            yield from ((f"{INDEX} {number}", place) for number, place in sorted(numbers.items()))
        for place in self._shown:
            if number_of(place) is None:
                yield from gpu_function(place).items()


def _agreed(numbers: Mapping[int, Collection[str]]) -> dict[int, str]:
    """Those that are of one GPU."""
    return {number: place for number, (place, *others) in numbers.items() if not others}


class Form(Wording, kw_only=False):
    """A warning's words, and what they stand for; its text may name groups of them."""

    of_host: bool = False
    """Not about the GPU of the rank that logs it."""
    follows: bool = False
    """Something else failed before it, here or on another host."""
    subject: str = HOST
    """Where it is not about a GPU: the host, or an HCA or port in names of groups."""
    unnamed: FaultKind | None = None
    """The fault of the host where the warning names no HCA or port."""
    far: str = ""
    """Address or name of the other end of a transfer, where the warning has it."""


def _forms(row: dict[str, str]) -> Iterator[Form]:
    """Of the row ``ofi`` those of EFA."""
    if row["topic"] != "ofi":
        yield Form(
            LazyPattern(row["words"]), outcome_of(row), fault_of(row), row["topic"], row["text"],
            of_host=bool(row["of_host"]), follows=bool(row["follows"]), subject=row["subject"] or HOST,
            unnamed=fault_of(row, "unnamed"),
        )  # fmt: skip
        return
    for words, ended in EFA_ENDINGS:
        form, text = LazyPattern(row["words"] % words), row["text"] % ended.words
        yield Form(form, ended.outcome, ended.fault, row["topic"], text, of_host=True, follows=ended.follows)


FORMS = tuple(form for row in rows("nccl/warnings") for form in _forms(row))
HARMLESS = LazyPattern(any_of("nccl/lines", "harmless"))
"""Also logged by healthy machines, such as virtual ones and those without HCAs."""


_LONGEST = 600
_SHOWN = 140
_OTHER = Form(LazyPattern(""), "warn", Fault.TOOL_ERROR, "warning", of_host=True, follows=True)
_PLACE = LazyPattern(r"[\w./-]{1,120}:\d{1,6} ")
_NUMBERS = LazyPattern(r"0x[0-9a-f]+|\d+")


def classified(warning: str) -> Form:
    """The form of a warning, which may have its file and line before it; its text is that for people."""
    for form in FORMS:
        if match := form.words.search(warning[:_LONGEST]):
            return _filled(form, match)
    return replace(_OTHER, text=_PLACE.sub("", warning, count=1)[:_SHOWN])


def _filled(form: Form, match: re.Match[str]) -> Form:
    groups = match.groupdict()
    if status := groups.get("status"):
        ended, sentence = completion(int(status))
        text = f"{sentence} at {groups['hca']}" if groups["hca"] else sentence
        far = groups["far"] or ""
        return replace(form, outcome=ended.outcome, fault=ended.fault, text=text, follows=ended.follows, far=far)
    named = bool(groups.get("hca"))
    subject, fault = (form.subject.format(**groups), form.fault) if named else (HOST, form.unnamed or form.fault)
    values = {name: value or "no reason given" for name, value in groups.items()}
    if "peer" in groups:
        values["peer"] = groups["peer"] or groups["other"] or "another rank"
        values["other"] = ""
    return replace(form, text=form.text.format(**values), subject=subject, fault=fault)


def forms_of(warnings: Iterable[tuple[int | None, str]]) -> list[tuple[int | None, Form]]:
    """Of those that are not harmless, each with CUDA's number of the GPU whose rank logs it."""
    return [(device, classified(text)) for device, text in warnings if not HARMLESS.search(text)]


def far_ends(forms: Iterable[tuple[int | None, Form]]) -> set[str]:
    """From which no answer came."""
    return {form.far for _, form in forms if form.far and form.fault is Fault.TRANSFER_UNANSWERED}


def report(
    forms: Sequence[tuple[int | None, Form]], gpus: Gpus, reports: Reports, names: Mapping[str, str] = {}
) -> None:
    """The warnings of one host; what follows from another one only if that is missing.

    Warnings of another kind that differ in numbers alone are counted as one, and so are transfers to other ends, which
    ``names`` has words for.
    """
    begun = any(not form.follows and form.fault for _, form in forms)
    others: dict[str, str] = {}
    ends = gathered((form.text, names.get(form.far, form.far)) for _, form in forms if form.far)
    for device, form in forms:
        if form.follows and begun:
            continue
        of_rank = None if form.of_host else device
        subject = form.subject if of_rank is None else gpus.of_cuda(of_rank) or f"GPU{of_rank}"
        text = others.setdefault(_NUMBERS.sub("#", form.text), form.text) if form.topic == _OTHER.topic else form.text
        if form.far:
            first, *more = dict.fromkeys(ends[form.text])
            text += f" to {first}" + (f" and to {len(more)} more" if more else "")
        reports.add(subject, form.topic, form.outcome, form.fault, text)
