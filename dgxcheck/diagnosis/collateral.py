"""Errors in the kernel log that follow from a fault elsewhere: within seconds of it, and joined to it.

A GPU that falls off the bus takes its NVLinks down: the GPUs and NVSwitches at their other ends log Xid 74 and SXids,
the bridges above it PCIe errors. A fatal SXid of an NVSwitch has Xid 74 of the GPUs at its ports follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Finding, LogEvent, Status
from dgxcheck.components.component import Component
from dgxcheck.components.far_end import far_ends, link_positions
from dgxcheck.components.locate import has_nvswitches, is_below
from dgxcheck.xid.relations import WINDOW_S, Place, places


def collateral(
    box: Box, bad: Mapping[str, Finding], blamed: Mapping[str, Sequence[Component]]
) -> Mapping[str, tuple[Component, ...]]:
    """By key of a finding of the kernel log: the components of the faults that all of its events follow."""
    followed: dict[str, tuple[Component, ...]] = {}
    for key in blamed:
        events = bad[key].judgement.events
        leaders = [list(_leaders(box, event, bad[key], bad.values())) for event in events]
        if events and all(leaders):
            keys = dict.fromkeys(leader.key for those in leaders for leader in those)
            followed[key] = tuple(dict.fromkeys(each for leader in keys for each in blamed.get(leader, ())))
    return followed


def _leaders(box: Box, event: LogEvent, finding: Finding, bad: Iterable[Finding]) -> Iterator[Finding]:
    """Findings of a fault that this event of another finding can follow from."""
    for other in bad:
        if other.status is Status.FAIL and other.key != finding.key:
            near = [each for each in other.judgement.events if abs(each.seconds - event.seconds) <= WINDOW_S]
            if any(_follows(box, event, finding.subject.bdf or "", each, other.subject.bdf or "") for each in near):
                yield other


def _follows(box: Box, effect: LogEvent, here: str, cause: LogEvent, there: str) -> bool:
    """Can an event at the one device follow from that at the other? An error of PCIe, where the device is that stopped
    or a bridge above it; an Xid or SXid, where NVIDIA says so (``xid.relations``).
    """
    if effect.kind == "pcie":
        device = box.topology.device(there)
        return cause.kind == "device" and (there == here or (device is not None and is_below(device, here)))
    if effect.number is None or cause.number is None:
        return False
    return any(_is_at(box, place, here, there) for place in places(effect.number, cause.number))


def _is_at(box: Box, place: Place, here: str, there: str) -> bool:
    """Is the one device where the relation sees the effect of the other?"""
    if place in ("same-gpu", "same-nvswitch"):
        return here == there
    if place == "any-gpu":
        return True
    if place == "gpu-to-nvswitch":
        return _reaches(box, there, here)
    return here != there and _reaches(box, here, there)


def _reaches(box: Box, bdf: str, end: str) -> bool:
    """Does an NVLink of a GPU lead to the device, or to another GPU through NVSwitches?

    It may where NVML does not say where one of its links leads.
    """
    gpu = box.topology.device(bdf)
    if gpu is None or gpu.kind != "gpu":
        return False
    ends, links = far_ends(box, gpu), link_positions(box, gpu)
    if has_nvswitches(box) and box.topology.device(end) is not None:
        return True
    return not links or any(ends.get(link, end) == end for link in links)
