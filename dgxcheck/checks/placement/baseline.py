"""The box against a recording of it from a better day."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status, Subject
from dgxcheck.difference.model import Difference
from dgxcheck.facts.record import replace

ID = "baseline.drift"
_BETWEEN = re.compile(r" -> | - ")


def _drift(box: Box) -> Iterator[tuple[Subject, Judgement]]:
    """Nothing at all where no recording was given to compare with."""
    if box.drift is None:
        return
    found = box.drift.differences
    worse = [each for each in found if each.kind == "worse" and _asked(box, each)]
    for each in worse:
        status = Status.FAIL if each.lost else Status.WARN
        yield _subject(box, each), Judgement(status, each.message, each.new, each.old, each.unit)
    if not worse:
        others = f"; {len(found)} other differences, which dgxcheck diff lists" if found else ""
        notes = "".join(f"; {note}" for note in box.drift.notes)
        yield HOST, Judgement(Status.PASS, f"nothing is worse than in the recording{others}{notes}")


def _asked(box: Box, each: Difference) -> bool:
    """Is it about a GPU that was asked about, or about no GPU?"""
    others = {gpu.bdf for gpu in box.topology.gpus} - {gpu.bdf for gpu in box.gpus}
    return each.bdf not in others


def _subject(box: Box, each: Difference) -> Subject:
    """The device, or both of a pair, with the quantity as the part of it that is meant."""
    ends = [_named(box, each, name) for name in _BETWEEN.split(each.device, maxsplit=1)]
    first = replace(ends[0], part=each.what)
    return replace(first, peer=ends[1]) if len(ends) > 1 else first


def _named(box: Box, each: Difference, name: str) -> Subject:
    if name == HOST.name:
        return HOST
    device = None if each.lost else box.topology.device(name)  # its name may be another's by now
    if device is not None and device.kind == "gpu":
        return box.subject(device)
    if device is not None:
        return Subject(kind="hca", name=name, bdf=device.bdf)
    if each.what == "disk":
        return Subject(kind="disk", name=name, bdf=None)
    gone = each.lost and name.startswith("GPU")
    return Subject(kind="gpu" if gone else "pci", name=name, bdf=each.bdf)


CHECKS = (
    Check(
        id=ID,
        rule="With --baseline, nothing is worse than in that recording: hardware that is gone fails; links that are"
        " narrower or slower, NVLinks that are down, new retired pages and remapped rows, uncorrected errors, less"
        " memory and measurements that drifted beyond their spread warn. Without it there is nothing to compare.",
        source="the recording that --baseline names",
        remedy="dgxcheck diff BASELINE live lists every difference; look at what was done to the box since then",
        judge=_drift,
    ),
)
