"""The warnings of NCCL of one host, by what they say of the machine."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.facts.faults import Fault
from dgxcheck.facts.record import replace
from dgxcheck.readers.completions import completion
from dgxcheck.readers.nccl.error_forms import FORMS, HARMLESS, Form
from dgxcheck.readers.nccl.gpus import Gpus
from dgxcheck.readers.reports import HOST, Reports

_LONGEST = 600
_SHOWN = 140
_OTHER = Form(re.compile(""), "warning", "warn", Fault.TOOL_ERROR, "", True, True)
_PLACE = re.compile(r"[\w./-]{1,120}:\d{1,6} ")
_NUMBERS = re.compile(r"0x[0-9a-f]+|\d+")


def classified(warning: str) -> Form:
    """The form of a warning, which may have its file and line before it; its text is that for people."""
    for form in FORMS:
        if match := form.words.search(warning[:_LONGEST]):
            return _told(form, match)
    return replace(_OTHER, text=_PLACE.sub("", warning, count=1)[:_SHOWN])


def _told(form: Form, match: re.Match[str]) -> Form:
    groups = match.groupdict()
    if status := groups.get("status"):
        ended, sentence = completion(int(status))
        text = f"{sentence} at {groups['hca']}" if groups["hca"] else sentence
        return replace(form, outcome=ended.outcome, fault=ended.fault, text=text, follows=ended.follows)
    subject = form.subject.format(**groups) if groups.get("hca") else HOST
    values = {name: value or "no reason given" for name, value in groups.items()}
    if "peer" in groups:
        values["peer"] = groups["peer"] or groups["other"] or "another rank"
        values["other"] = ""
    return replace(form, text=form.text.format(**values), subject=subject)


def report(warnings: Sequence[tuple[int | None, str]], gpus: Gpus, reports: Reports) -> None:
    """The warnings of one host by CUDA's number of the GPU; what follows from another one only if that is missing.

    Warnings of another kind that differ in numbers alone are counted as one.
    """
    forms = [(device, classified(text)) for device, text in warnings if not HARMLESS.search(text)]
    begun = any(not form.follows for _, form in forms)
    others: dict[str, str] = {}
    for device, form in forms:
        if form.follows and begun:
            continue
        about_gpu = device is not None and not form.of_host
        subject = gpus.of_cuda(device) or f"GPU{device}" if about_gpu else form.subject
        text = others.setdefault(_NUMBERS.sub("#", form.text), form.text) if form.topic == _OTHER.topic else form.text
        reports.add(subject, form.topic, form.outcome, form.fault, text)
