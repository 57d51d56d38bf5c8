"""Errors in the kernel log that follow from a fault elsewhere: within seconds of it, and joined to it.

A GPU that falls off the bus takes its NVLinks down: the GPUs and NVSwitches at their other ends log Xid 74 and SXids,
the bridges above it PCIe errors. A fatal SXid of an NVSwitch has Xid 74 of the GPUs at its ports follow.

Of a log alone, without the machine's topology, GPUs that log NVLink errors together count as joined, and a port that
logs a PCIe error in the moment in which a GPU is lost as above it. Where its lines have no times their order tells
which of two that can follow from each other came first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from math import inf

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import BAD, Finding, LogEvent, Status
from dgxcheck.components.component import Component
from dgxcheck.components.locate import far_ends, has_nvswitches, link_positions
from dgxcheck.xid.relations import WINDOW_S, Place, places, window_s
from dgxcheck.xid.table import meaning

_SAME: tuple[Place, ...] = ("same-gpu", "same-nvswitch")


def collateral(
    box: Box, bad: Mapping[str, Finding], blamed: Mapping[str, Sequence[Component]]
) -> Mapping[str, tuple[Component, ...]]:
    """By key of a finding of the kernel log: the components of the faults that all of its events follow."""
    leaders = _Leaders(box, bad)
    leading: dict[str, dict[str, None]] = {}
    for key in blamed:
        found = [leaders.of(event, bad[key]) for event in bad[key].judgement.events]
        if found and all(found):
            leading[key] = dict.fromkeys(leader for those in found for leader in those)
    following = {key: keys for key, keys in leading.items() if not _is_among_equals(key, leading)}
    by_key = {key: (each for leader in keys for each in blamed.get(leader, ())) for key, keys in following.items()}
    return {key: tuple(dict.fromkeys(components)) for key, components in by_key.items()}


def _is_among_equals(key: str, leading: Mapping[str, Collection[str]]) -> bool:
    """Do several errors follow from each other alone, as NVLink errors of all GPUs do? Then none of them leads."""
    others = leading[key]
    return len(others) > 1 and all({key, *others} - {other} <= {*leading.get(other, ())} for other in others)


class _Leaders:
    """The events that others can follow from, by what they are and where, each in the order of time.

    An error of PCIe follows where the device is that stopped or a bridge above it; an Xid or SXid, where NVIDIA says so
    (``xid.relations``).
    """

    def __init__(self, box: Box, bad: Mapping[str, Finding]) -> None:
        self._box = box
        self._timed = box.log.timed
        self._leading = (Status.FAIL,) if box.topology.gpus else (Status.FAIL, Status.WARN)
        self._status = {key: finding.status for key, finding in bad.items()}
        self._stopped: dict[str, dict[str, list[float]]] = {}
        self._numbered: dict[int, dict[str, dict[str, list[float]]]] = {}
        self._order = {key: number for number, key in enumerate(bad)}
        for key, finding in bad.items():
            for event in finding.judgement.events if finding.status in self._leading else ():
                at = finding.subject.bdf or ""
                if event.kind == "device":
                    self._stopped.setdefault(at, {}).setdefault(key, []).append(event.seconds)
                if event.number is not None:
                    there = self._numbered.setdefault(event.number, {}).setdefault(at, {})
                    there.setdefault(key, []).append(event.seconds)
        for by_finding in (*self._stopped.values(), *(each for at in self._numbered.values() for each in at.values())):
            for seconds in by_finding.values():
                seconds.sort()

    def of(self, event: LogEvent, finding: Finding) -> list[str]:
        """Keys of the findings of a fault that this event of another finding can follow from, in their order."""
        here = finding.subject.bdf or ""
        found: set[str] = set()
        if event.kind == "pcie":
            below = [device.bdf for device in self._box.topology.below(here) if device.bdf is not None]
            if not self._box.topology.functions:
                below = [*self._stopped]
            for at in dict.fromkeys((here, *below)):
                found |= _near(self._stopped.get(at, {}), event, WINDOW_S)
        elif event.number is not None:
            for number, by_place in self._numbered.items():
                for place in places(event.number, number):
                    for at in (here,) if place in _SAME else by_place:
                        near = self._leading_to(event, number, place, by_place.get(at, {}))
                        if near and _is_at(self._box, place, here, at):
                            found |= near
        found = {key for key in found if BAD.index(self._status[key]) <= BAD.index(finding.status)}
        return sorted(found - {finding.key}, key=self._order.__getitem__)

    def _leading_to(
        self, event: LogEvent, number: int, place: Place, by_finding: Mapping[str, Sequence[float]]
    ) -> set[str]:
        """Within seconds of it, in a log without times anywhere.

        Of a log alone the earlier of two that can follow from each other leads; without times the earlier of any two,
        but for an NVLink's own error, which can be noticed after what no longer comes through it.
        """
        near = _near(by_finding, event, window_s(place) if self._timed else inf)
        mutual = not self._box.topology.gpus and event.number is not None and place in places(number, event.number)
        if mutual or not (self._timed or meaning(number, None).about == "NVLink"):
            return {key for key in near if by_finding[key][0] < event.seconds}
        return near


def _near(by_finding: Mapping[str, Sequence[float]], event: LogEvent, window: float) -> set[str]:
    """Keys of the findings that have an event within so many seconds of this one."""
    found = set()
    for key, seconds in by_finding.items():
        first = bisect_left(seconds, event.seconds - window)
        if first < len(seconds) and seconds[first] <= event.seconds + window:
            found.add(key)
    return found


def _is_at(box: Box, place: Place, here: str, there: str) -> bool:
    """Is the one device where the relation sees the effect of the other?"""
    if place in _SAME or place == "any-gpu":
        return place == "any-gpu" or here == there
    return _reaches(box, there, here) if place == "gpu-to-nvswitch" else here != there and _reaches(box, here, there)


def _reaches(box: Box, bdf: str, end: str) -> bool:
    """Does an NVLink of a GPU lead to the device, or to another GPU through NVSwitches?

    It may where NVML does not say where one of its links leads, and in a log alone.
    """
    gpu = box.topology.device(bdf)
    if not box.topology.gpus:
        return True
    if gpu is None or gpu.kind != "gpu":
        return False
    ends, links = far_ends(box, gpu), link_positions(box, gpu)
    if has_nvswitches(box) and box.topology.device(end) is not None:
        return True
    return not links or any(ends.get(link, end) == end for link in links)
