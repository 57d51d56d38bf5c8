"""Errors in the kernel log that follow from a fault elsewhere: within seconds of it, and joined to it.

A GPU that falls off the bus takes its NVLinks down: the GPUs and NVSwitches at their other ends log Xid 74 and SXids,
the bridges above it PCIe errors. A fatal SXid of an NVSwitch has Xid 74 of the GPUs at its ports follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import EventKind, Finding, LogEvent, Status
from dgxcheck.components.component import Component
from dgxcheck.components.far_end import far_ends, link_positions
from dgxcheck.components.locate import has_nvswitches, is_below

WINDOW_S = 10.0
"""NVLink and PCIe time out, and the driver logs, within seconds; before or after, for what is noticed first varies."""
_FOLLOWS: Mapping[EventKind, tuple[EventKind, ...]] = {
    "nvswitch": ("device",), "nvlink": ("device", "nvswitch"), "pcie": ("device",),
}  # fmt: skip
"""By kind of event the kinds that it can follow from."""


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
    kinds = _FOLLOWS.get(event.kind, ())
    for other in bad:
        if other.status is not Status.FAIL or other.key == finding.key:
            continue
        earlier = [each for each in other.judgement.events if each.kind in kinds]
        near = any(abs(each.seconds - event.seconds) <= WINDOW_S for each in earlier)
        if near and _joined(box, other, finding, event.kind):
            yield other


def _joined(box: Box, leader: Finding, finding: Finding, kind: EventKind) -> bool:
    """Is one the other's device or a bridge above it, or can an NVLink join them?"""
    there, here = leader.subject.bdf or "", finding.subject.bdf or ""
    device = box.topology.device(there)
    if there == here or (device is not None and is_below(device, here)):
        return True
    if kind == "pcie":
        return False
    one, other = (here, there) if box.topology.device(here) is not None else (there, here)
    return _reaches(box, one, other)


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
