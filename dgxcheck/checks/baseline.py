"""The machine against a known-good recording of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, component_of, host
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject, counted, judged
from dgxcheck.checks.pcie.isolation import between
from dgxcheck.checks.placement.missing import missing
from dgxcheck.components.component import Component, host_part
from dgxcheck.components.locate import device_part, links_at
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import rows
from dgxcheck.facts.record import replace

if TYPE_CHECKING:
    from dgxcheck.difference.model import Difference

ID = "baseline.drift"


def _drift(box: Box) -> Judged:
    """With --baseline, compares with that recording. Fails if hardware is missing; warns if links are narrower or
    slower, NVLinks are down, pages were retired, rows remapped, uncorrected errors counted, memory is smaller or
    measurements drifted beyond their spread. Unknown if the baseline is of a machine with GPUs of other models. Not
    judged without --baseline.

    Source: the recording that --baseline names

    Nothing without a recording to compare with.
    """
    if box.drift is None:
        return
    if box.drift.other_gpus:
        yield HOST, Judgement(Status.UNKNOWN, f"the baseline is of another machine: {box.drift.other_gpus}")
        return
    differences = box.drift.differences
    unasked = {gpu.bdf for gpu in box.topology.gpus} - {gpu.bdf for gpu in box.gpus}
    worse = [difference for difference in differences if difference.kind == "worse" and difference.bdf not in unasked]
    for difference in worse:
        facts = (difference.message, difference.new, difference.old, difference.unit)
        yield _subject(box, difference), judged(Fault.DRIFT, *facts, warns=True, fails=difference.lost)
    if not worse:
        number = counted(len(differences), "other difference")
        others = f"; {number} (list: dgxcheck diff BASELINE live)" if differences else ""
        notes = "".join(f"; {note}" for note in box.drift.notes)
        yield HOST, Judgement(Status.PASS, f"nothing is worse than in the baseline{others}{notes}")


def _subject(box: Box, difference: Difference) -> Subject:
    """The device, or both of a pair, with the quantity as its part; of a part of the host after its name."""
    ends = [_end(box, difference, name) for name in re.split(" -> | - ", difference.device, maxsplit=1)]
    first = replace(ends[0], part="/".join(filter(None, (ends[0].part, difference.what))))
    return replace(first, peer=ends[1]) if len(ends) > 1 else first


def _end(box: Box, difference: Difference, name: str) -> Subject:
    if name == HOST.name:
        return HOST
    device = None if difference.lost else box.topology.device(name)  # another device may have its name by now
    if device is not None and device.kind == "gpu":
        return box.subject(device)
    if device is not None:
        return Subject(kind="hca", name=name, bdf=device.bdf)
    if difference.what == "disk" or any(array.name == name for array in box.snapshot.arrays):
        return Subject(kind="disk", name=name, bdf=None)
    if any(each.name == name for each in rows(box.snapshot.network)):
        return Subject(kind="interface", name=name, bdf=difference.bdf)
    if difference.bdf is None and (not difference.lost or difference.what == "dimm"):  # a memory controller too
        return replace(HOST, part=name)
    is_device = difference.lost and difference.what == "device"
    device_kind: Literal["gpu", "hca"] = "gpu" if name.startswith("GPU") else "hca"
    return Subject(kind=device_kind if is_device else "pci", name=name, bdf=difference.bdf)


def _blame(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    device = box.topology.device(subject.bdf or subject.name)
    peer = None if subject.peer is None else box.topology.device(subject.peer.bdf or subject.peer.name)
    if device is not None and peer is not None and peer is not device:
        yield from between(box, device, peer)
    elif device is not None:
        if device.kind == "nic" and subject.name != device.name:
            yield Component(kind="port", name=subject.name, bdf=device.bdf)
        yield device_part(box, device)
    elif subject.kind in ("gpu", "hca"):
        yield missing(box, "GPU" if subject.kind == "gpu" else "HCA")
    elif subject.kind == "host" and "/" in subject.part:
        yield host_part("memory", subject.part.rpartition("/")[0])
    elif subject.kind == "host":
        yield from host("changes since the baseline")(box, subject, judgement)
    elif subject.kind == "pci" and (links := [*links_at(box, subject.bdf or "")]):
        yield from links
    else:
        yield component_of(box, subject)


CHECKS = (Check(ID, _drift, _blame),)
