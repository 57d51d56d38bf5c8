"""Errors in the kernel log that follow from a fault elsewhere: within seconds of it, and joined to it.

A GPU that falls off the bus takes its NVLinks down: the GPUs and NVSwitches at their other ends log Xid 74 and SXids,
the bridges above it PCIe errors. A fatal SXid of an NVSwitch has Xid 74 of the GPUs at its ports follow. NVMe
controllers, of which the log does not say where they are, go with several devices that stop below a switch or host
bridge that leads to such disks.

Of a log alone, without the machine's topology, GPUs that log NVLink errors together count as joined. Where its lines
have no times their order tells which of two that can follow from each other came first. A port that is not on PCI, as
in a log alone or after it was lost as well, counts as above a GPU that is lost in the moment of its PCIe error.

Where all NVLinks of one GPU have errors, or are down, those at their other ends belong to it too, whoever reports them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import inf
from typing import NamedTuple

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import BAD, Finding, LogEvent, Status
from dgxcheck.checks.kernel_log.hca import HOT_MODULE
from dgxcheck.checks.nvlink.links import links_down
from dgxcheck.components.component import Component
from dgxcheck.components.locate import device_part, far_ends, has_nvswitches, link_positions
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import NVME
from dgxcheck.facts.missing import rows
from dgxcheck.facts.typical import gathered
from dgxcheck.xid.relations import DETAILS, WINDOW_S, Place, places, window_s
from dgxcheck.xid.table import before_ampere, meaning

_SAME: tuple[Place, ...] = ("same-gpu", "same-nvswitch")


def collateral(
    box: Box, bad: Mapping[str, Finding], blamed: Mapping[str, Sequence[Component]]
) -> Mapping[str, tuple[Component, ...]]:
    """By key of a finding of the kernel log: the components of the faults that all of its events follow."""
    leaders = _Leaders(box, bad)
    leading = {key: dict.fromkeys(found) for key in blamed if (found := leaders.of_all(bad[key]))}
    following = {key: keys for key, keys in leading.items() if not _is_among_equals(key, leading)} | _of_heat(bad)
    following |= _of_hot_adapters(box, bad)
    at_one = dict(_at_one_gpu(box, bad))
    by_key = {key: [each for leader in keys for each in (*blamed.get(leader, ()), *at_one.get(leader, ()))]
              for key, keys in following.items()}  # fmt: skip
    joined = {key: tuple(dict.fromkeys(each for each in components if _leads_there(box, each, bad[key])))
              for key, components in by_key.items()}  # fmt: skip
    return joined | {key: (*joined.get(key, ()), *gpu) for key, gpu in at_one.items()}


def _of_heat(bad: Mapping[str, Finding]) -> dict[str, dict[str, None]]:
    """Xids that NVIDIA's list puts down to heat too, of GPUs that are too hot, with the findings of that."""
    hot = gathered((each.subject.bdf, key) for key, each in bad.items()
                   if each.judgement.fault in _HEAT and each.status is Status.FAIL)  # fmt: skip
    numbers = {key: {event.number for event in each.judgement.events} - {None, *DETAILS} for key, each in bad.items()}
    by_heat = {number for number, entry in before_ampere().items() if "thermal" in entry.causes}
    return {key: dict.fromkeys(hot[each.subject.bdf]) for key, each in bad.items()
            if each.subject.bdf in hot and numbers[key] and numbers[key] <= by_heat}  # fmt: skip


_HEAT = frozenset({Fault.OVERHEATING, Fault.THERMAL_SLOWDOWN})


def _of_hot_adapters(box: Box, bad: Mapping[str, Finding]) -> dict[str, dict[str, None]]:
    """Errors of ports of HCAs that are too hot, with the findings of that; also errors of their modules and ports that
    are down, where heat is all that these modules report, and not before the HCA: a hot module heats its sensors."""
    hot = gathered((each.subject.bdf, key) for key, each in bad.items()
                   if each.judgement.fault is Fault.HCA_OVERHEATING and each.subject.bdf)  # fmt: skip
    events = [each for each in box.log.hcas if not each.past]
    heat = gathered((each.bdf, each.seconds) for each in events if each.trouble == "temperature")
    since = {bdf: min(times) for bdf, times in heat.items()}
    modules = gathered((each.bdf, each.text.endswith(HOT_MODULE) and each.seconds >= since.get(each.bdf, inf))
                       for each in events if each.trouble == "module")  # fmt: skip
    of_modules = {Fault.PORT_MODULE, Fault.PORT_DOWN}
    return {key: dict.fromkeys(hot[bdf]) for key, each in bad.items() if (bdf := each.subject.bdf) in hot and (
            each.judgement.fault is Fault.PORT_ERRORS
            or (each.judgement.fault in of_modules and all(modules.get(bdf, [False]))))}  # fmt: skip


def _at_one_gpu(box: Box, bad: Mapping[str, Finding]) -> Iterator[tuple[str, tuple[Component, ...]]]:
    """Findings at the other ends of the NVLinks of the only GPU of which all are affected, with the NVLink part of it.

    Both ends of a link count its errors. Ends that are down name no peer; then there are at most as many of them as
    that GPU has links.
    """
    of_links = {key: links for key, each in bad.items() if (links := _links_of(box, each))}
    affected = gathered((bad[key].subject.bdf or "", link) for key, links in of_links.items() for link in links)
    gpus = {gpu.bdf: gpu for gpu in box.topology.gpus if gpu.bdf in affected}
    whole = [gpu for bdf, gpu in gpus.items() if {*link_positions(box, gpu)} == {*affected[bdf]}]
    if len(whole) != 1 or not any(link.nvlinks and not link.switched for link in box.topology.links):
        return
    (one,) = whole
    ends = {bdf: far_ends(box, gpu) for bdf, gpu in gpus.items() if gpu != one}
    beside = {bdf: {*affected[bdf]} for bdf, far in ends.items()
              if all(far.get(link, one.bdf) == one.bdf for link in affected[bdf])}  # fmt: skip
    if len(beside) >= _FEWEST_PEERS and sum(map(len, beside.values())) <= len({*affected[one.bdf or ""]}):
        yield from ((key, (device_part(box, one, "NVLink"),)) for key in of_links if bad[key].subject.bdf in beside)


_FEWEST_PEERS = 2
"""Of one peer alone either end may be at fault, or the bridge between them."""


def _links_of(box: Box, finding: Finding) -> set[int]:
    """The NVLinks of a GPU that a finding about nothing else is about."""
    gpu = box.topology.device(finding.subject.bdf or "")
    if gpu is None or not any(each.kind == "nvlink" or each.part == "NVLink" for each in finding.blames[:1]):
        return set()
    if finding.judgement.fault == Fault.NVLINK_DOWN:
        return links_down(box, gpu)
    if finding.subject.part.isdecimal():
        return {int(finding.subject.part)}
    return {each.link for each in finding.judgement.events if each.link is not None}


def _leads_there(box: Box, component: Component, finding: Finding) -> bool:
    """Of an NVMe controller that was lost: is the component a switch, a link above one or a host bridge with such a one
    below it?"""
    if all(event.kind != "nvme" for event in finding.judgement.events):
        return True
    disks = [rows(each.path) for each in box.topology.functions.values() if each.class_code == NVME]
    at = component.bdf or component.name
    return component.kind in ("switch", "link", "host-bridge") and any(at in path[:-1] for path in disks)


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
        self._at = {key: finding.subject.bdf for key, finding in bad.items()}
        self._order = {key: number for number, key in enumerate(bad)}
        for key, finding in bad.items():
            leads = finding.status in self._leading or finding.judgement.fault is Fault.XID_LINK_OFF
            for event in finding.judgement.events if leads else ():
                at = finding.subject.bdf or ""
                if event.kind == "device":
                    self._stopped.setdefault(at, {}).setdefault(key, []).append(event.seconds)
                if event.number is not None:
                    there = self._numbered.setdefault(event.number, {}).setdefault(at, {})
                    there.setdefault(key, []).append(event.seconds)
        for by_finding in (*self._stopped.values(), *(each for at in self._numbered.values() for each in at.values())):
            for seconds in by_finding.values():
                seconds.sort()

    def of_all(self, finding: Finding) -> list[str]:
        """Keys of the findings of a fault, in their order, that the events of another finding follow from; none where
        one of its events follows from nothing.
        """
        here = finding.subject.bdf or ""
        # what asks for no action follows from anything
        worst = len(BAD) if finding.judgement.fault is Fault.XID_NOTICE else BAD.index(finding.status)
        kinds: dict[tuple[str, int | None], list[_Cause]] = {}
        found: set[str] = set()
        times = [event.seconds for event in finding.judgement.events]
        for event in finding.judgement.events:
            kind = event.kind, event.number
            if kind not in kinds:
                kinds[kind] = [cause for cause in self._causes(event, here, (min(times), max(times)))
                               if cause.key != finding.key and BAD.index(self._status[cause.key]) <= worst]  # fmt: skip
            near = {cause.key for cause in kinds[kind] if _precedes(cause, event.seconds)}
            if not near or (event.kind == "nvme" and len({self._at[key] for key in near}) == 1):
                return []
            found |= near
        return sorted(found, key=self._order.__getitem__)

    def _causes(self, event: LogEvent, here: str, when: tuple[float, float]) -> Iterator[_Cause]:
        """What such an event of this device, between the first and the last of them, can follow from, where it is
        joined to it."""
        if event.kind == "pcie":
            window = WINDOW_S if self._timed else inf
            below = [device.bdf or "" for device in self._box.topology.below(here)]
            if here not in self._box.topology.functions:
                below = [*self._stopped]
            yield from _merged(_Cause(key, window, -inf, seconds) for at in dict.fromkeys((here, *below))
                               for key, seconds in self._stopped.get(at, {}).items())  # fmt: skip
        elif event.kind == "nvme":
            stopped = chain.from_iterable(each.items() for each in self._stopped.values())
            yield from _merged(_Cause(key, WINDOW_S, -inf, seconds) for key, seconds in stopped)
        elif event.number is not None:
            yield from _merged(self._numbered_causes(event.number, here, when))

    def _numbered_causes(self, effect: int, here: str, when: tuple[float, float]) -> Iterator[_Cause]:
        """Within seconds of it, in a log without times anywhere.

        Of a log alone the earlier of two that can follow from each other leads; without times the earlier of any two,
        but for an NVLink's own error, which can be noticed after what no longer comes through it.
        """
        alone = not self._box.topology.gpus
        for number, by_place in self._numbered.items():
            for place in places(effect, number):
                earlier = (alone and place in places(number, effect)) or not (
                    self._timed or meaning(number, None).about == "NVLink")
                window = window_s(place) if self._timed else inf
                for at in (here,) if place in _SAME else by_place:
                    near = [(key, seconds) for key, seconds in by_place.get(at, {}).items()
                            if seconds[0] - window <= when[1] and when[0] <= seconds[-1] + window]  # fmt: skip
                    if near and _is_at(self._box, place, here, at):
                        for key, seconds in near:
                            yield _Cause(key, window, seconds[0] if earlier else -inf, seconds)


class _Cause(NamedTuple):
    """Events of one finding that others can follow from."""

    key: str
    window: float
    """Seconds between the two."""
    after: float
    """Only what comes after this moment."""
    seconds: Sequence[float]


def _merged(causes: Iterable[_Cause]) -> Iterator[_Cause]:
    """Those of one finding that count in the same way as one."""
    found = gathered((cause[:3], cause.seconds) for cause in causes)
    return (_Cause(*how, sorted(chain(*parts)) if len(parts) > 1 else parts[0]) for how, parts in found.items())


def _precedes(cause: _Cause, seconds: float) -> bool:
    """Does an event of the cause lie within its window around the time?"""
    at = bisect_left(cause.seconds, seconds - cause.window)
    return cause.after < seconds and at < len(cause.seconds) and cause.seconds[at] <= seconds + cause.window


def _is_at(box: Box, place: Place, here: str, there: str) -> bool:
    """Is the one device where the relation sees the effect of the other?"""
    if place in _SAME or place == "any-gpu":  # of the first no other device is asked for
        return True
    return _reaches(box, there, here) if place == "gpu-to-nvswitch" else here != there and _reaches(box, here, there)


def _reaches(box: Box, bdf: str, end: str) -> bool:
    """Does an NVLink of a GPU lead to the device, or to another GPU through NVSwitches?

    It may where NVML does not say where one of its links leads, and in a log alone.
    """
    gpu = box.topology.device(bdf)
    if not box.topology.gpus:
        return True
    if gpu is None:
        return False
    ends, links = far_ends(box, gpu), link_positions(box, gpu)
    if has_nvswitches(box) and box.topology.device(end) is not None:
        return True
    return not links or any(ends.get(link, end) == end for link in links)
