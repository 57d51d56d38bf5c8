"""Devices that failed in the same moment, by the kernel log, and what they share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.components.component import Component, Key, host_part
from dgxcheck.components.containment import NVSWITCHES, above
from dgxcheck.components.locate import far_ends
from dgxcheck.facts.faults import DEVICE_DEAD
from dgxcheck.xid.relations import WINDOW_S

_POWER = host_part("power supply")
_FEWEST = 3
"""GPUs with NVLink errors; of two, one or the link between them is the likelier cause."""


def same_moment(box: Box, findings: Sequence[Finding]) -> Iterator[tuple[list[Finding], Component]]:
    """Findings of devices that failed within seconds of each other, with what can have done it.

    Of NVSwitches the fabric that they make up, and of NVLinks that end at them, where half of the GPUs log errors of
    theirs. Of GPUs and adapters the nearest PCIe switch above all of them, or the
    host bridge or socket if nothing else below it works; else the power supply, which is all that they share.
    """
    failed = [finding for finding in findings if finding.status is Status.FAIL]
    for together in _moments([each for each in failed if _times(each, "nvswitch")], "nvswitch"):
        yield together, NVSWITCHES
    yield from _through_switches(box, findings)
    dead = [each for each in failed if each.judgement.fault in DEVICE_DEAD]
    gone = {each.subject.bdf for each in dead}
    for together in _moments([each for each in dead if _times(each, "device")], "device"):
        lost = sorted({each.subject.bdf or "" for each in together})
        yield [each for each in dead if each.subject.bdf in lost], _shared(box, lost, gone)


def _through_switches(box: Box, findings: Sequence[Finding]) -> Iterator[tuple[list[Finding], Component]]:
    """NVLink errors of at least three GPUs, and half of them, whose links end at NVSwitches or at unknown devices."""
    bad = [each for each in findings if each.status in (Status.FAIL, Status.WARN) and _times(each, "nvlink")]
    if len(bad) < _FEWEST or not all(_ends_elsewhere(box, each) for each in bad):
        return
    for together in _moments(bad, "nvlink"):
        several = len(together) >= _FEWEST and 2 * len(together) >= len(box.topology.gpus)
        if several and not set.intersection(*map(_nvswitches, together)):
            yield together, NVSWITCHES


def _nvswitches(finding: Finding) -> set[Key]:
    """NVSwitches among the possible causes of the finding; one that all findings share is to blame."""
    return {each.key for each in finding.blames if each.kind == "nvswitch"}


def _ends_elsewhere(box: Box, finding: Finding) -> bool:
    gpu = box.topology.device(finding.subject.bdf or "")
    ends = set() if gpu is None else {*far_ends(box, gpu).values()}
    return gpu is not None and ends.isdisjoint(each.bdf for each in box.topology.gpus)


def _moments(findings: Sequence[Finding], kind: str) -> Iterator[list[Finding]]:
    """Findings of several devices whose first events lie within seconds of the first of them."""
    ordered = sorted(findings, key=lambda finding: min(_times(finding, kind)))
    while ordered:
        begins = min(_times(ordered[0], kind))
        together = [each for each in ordered if min(_times(each, kind)) - begins <= WINDOW_S]
        if len({each.subject.bdf for each in together}) > 1:
            yield together
        ordered = ordered[len(together) :]


def _times(finding: Finding, kind: str) -> list[float]:
    return [event.seconds for event in finding.judgement.events if event.kind == kind]


def _shared(box: Box, lost: Sequence[str], gone: Collection[str | None]) -> Component:
    wholes = [[each for each in above(box, bdf) if each.kind != "link"] for bdf in lost]
    for whole in wholes[0]:
        if all(any(each.key == whole.key for each in others) for others in wholes[1:]):
            below = [device for device in box.topology.devices if device.name in whole.shared_by]
            if whole.kind in ("board", "switch") or all(device.bdf in gone for device in below):
                return whole
    return _POWER
