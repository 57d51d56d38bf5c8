"""What devices share that is to blame where so many have a fault of theirs: air, power and fabric, a switch with disks,
what keeps several from starting, the kernel's modules, the IOMMU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import inf

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.checks.host.disks import located
from dgxcheck.checks.network.ports import same_cards
from dgxcheck.components.component import Component, host_part
from dgxcheck.components.containment import NVSWITCHES, above, board
from dgxcheck.facts.bdf import card_of
from dgxcheck.facts.faults import GPU_DEAD, Fault
from dgxcheck.facts.ids import NVME
from dgxcheck.facts.kernel_log import is_near
from dgxcheck.facts.missing import rows
from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.xid.relations import WINDOW_S

FEWEST = 3
"""GPUs with NVLink errors; of two, one or the link between them is the likelier cause. Adapters that lack air
or power, each in a slot of its own."""
_AT_LEAST = {"power supply": 0.0, "cooling": 0.5, "power of PCIe slots": 0.5}
"""Of the host, whose fans and supplies serve a part of it each: the share of the GPUs, wherever they are, from which it
is blamed: the power brake is a signal of the system, not of a board, and fans cool rows of cards that the PCI tree does
not show."""
OF_PORTS = ("fabric", "subnet-manager")
_FEWEST_PORTS = 3
"""So many ports, if also half of all on cards like theirs, point to the fabric rather than to a bad cable each."""
_IN_A_ROW = 0.25
"""The same of GPUs that follow each other, as those in the air of one fan do."""


def is_likelier(box: Box, whole: Component, bad: Sequence[Finding], judged: Sequence[Finding]) -> bool:
    """Are so many devices bad that the cooling, power supply, fabric or NVSwitches that they share are the likelier
    cause?
    """
    if whole == NVSWITCHES:
        gpus = {finding.subject.bdf for finding in bad}
        return len(gpus) >= FEWEST and 2 * len(gpus) >= len(box.topology.gpus)
    if whole.kind in OF_PORTS:
        cards = same_cards(box, {finding.subject.bdf for finding in bad})
        like = sum(finding.subject.bdf in cards for finding in judged) or len(judged)
        return len(bad) >= _FEWEST_PORTS and 2 * len(bad) >= like
    adapters = {card_of(each.subject.bdf) for each in bad if each.subject.kind in ("hca", "port")}
    if len(adapters) >= FEWEST:
        return True
    least = min(_AT_LEAST[whole.part], _IN_A_ROW if _is_row(bad, judged) else 1)
    return boards_of(box, bad) > 1 and len(bad) >= least * len(judged)


def _is_row(bad: Sequence[Finding], judged: Sequence[Finding]) -> bool:
    """Do the devices of these findings follow each other in the order of all?"""
    order = [*dict.fromkeys(each.subject.bdf for each in judged)]
    places = {order.index(each.subject.bdf) for each in bad}
    return max(places) - min(places) == len(places) - 1


def is_air_or_power(shared: Component | None) -> bool:
    return shared is not None and shared.kind == "host" and shared.part in _AT_LEAST


def boards_of(box: Box, judged: Sequence[Finding]) -> int:
    """How many boards these are on: the two GPUs of a K80 have one heat sink, as functions of an adapter do."""
    devices = [box.topology.device(finding.subject.bdf or "") for finding in judged]
    return len({card_of(device.bdf) if device.kind == "nic" else board(box, device)
                for device in devices if device is not None})  # fmt: skip


def with_places(component: Component, explained: Sequence[Finding]) -> Component:
    """An NVSwitch with the ports that its SXids name and the GPUs whose findings it explains: NVML does not say which
    port a GPU's NVLink leads to; an array with its disks that errors name. Every other component as it is.
    """
    if component.kind == "disk" and component.name.startswith("md"):
        disks = dict.fromkeys(each.subject.name for each in explained if each.subject.kind == "disk")
        return replace(component, position=", ".join(name for name in disks if not name.startswith(("md", "ata"))))
    if component.kind != "nvswitch" or component.peer_bdf is not None:
        return component
    events = [event for each in explained if each.subject.bdf == component.bdf for event in each.judgement.events]
    ports = {event.link for event in events if event.kind == "nvswitch" and event.link is not None}
    positions = {own.position for each in explained for own in each.blames if own.key == component.key}
    ports |= {int(position) for position in positions if position.isdecimal()}
    gpus = dict.fromkeys(finding.subject.name for finding in explained if finding.subject.kind == "gpu")
    return replace(component, position=", ".join(map(str, sorted(ports))), shared_by=tuple(gpus))


def times_of(finding: Finding, kind: str) -> list[float]:
    return [event.seconds for event in finding.judgement.events if event.kind == kind]


def refused(findings: Sequence[Finding]) -> Mapping[str, tuple[list[Finding], Component]]:
    """By key the findings of GPUs that could not start for a reason that lies elsewhere, those to which it is common
    with that: the firmware's room for BARs, the driver, the host's memory."""
    dead = {each.subject.bdf for each in findings if each.judgement.fault in GPU_DEAD}
    reasons = {each.subject.bdf: each.shared if each.judgement.fault is Fault.BAR1_SMALL else each.blames[0]
               for each in findings if each.status is Status.FAIL and each.subject.bdf in dead and each.blames
               and each.judgement.fault in (Fault.BAR1_SMALL, Fault.GPU_REFUSED, Fault.START_MEMORY)}  # fmt: skip
    elsewhere = {bdf: reason for bdf, reason in reasons.items() if reason is not None and reason.bdf is None}
    shared = {reason for reason in elsewhere.values() if [*elsewhere.values()].count(reason) > 1}
    return {each.key: ([each] if elsewhere[each.subject.bdf] in shared else [], elsewhere[each.subject.bdf])
            for each in findings if each.subject.bdf in elsewhere
            and each.judgement.fault in GPU_DEAD | {Fault.BAR1_SMALL}}  # fmt: skip


def without_modules(findings: Sequence[Finding]) -> Iterator[tuple[list[Finding], Component]]:
    """What lacks its module beside GPUs that lack theirs, with the modules of the kernel that runs: those of an update
    are built or installed with it."""
    absent = [each for each in findings if each.judgement.fault in _ABSENT]
    if {each.judgement.fault for each in absent} == _ABSENT:
        yield absent, host_part("kernel modules")


_ABSENT = {Fault.DRIVER_NOT_LOADED, Fault.MODULE_NOT_LOADED}


def with_disks(
    box: Box, dead: Sequence[Finding], findings: Sequence[Finding]
) -> Iterator[tuple[list[Finding], Component]]:
    """A dead device and, of the same moment, as many silent NVMe disks as are below the nearest switch that leads to
    both, with that switch, where nothing else below it responds."""
    gone = {each.subject.bdf for each in dead}
    disks = [(each, times) for each in findings if (times := times_of(each, "nvme"))]
    for each in dead if disks else ():
        moments = times_of(each, "device")
        near = [disk for disk, times in disks if any(is_near(at, moments, WINDOW_S) for at in times)]
        switches = (one for one in above(box, each.subject.bdf or "") if one.kind == "switch")
        whole, below = next(((one, number) for one in switches if (number := _disks_below(box, one))), (None, 0))
        others = {device.bdf for device in box.topology.devices if whole and device.name in whole.shared_by} - gone
        if whole is not None and len(near) == below and not others:
            yield [each, *near], whole


def _disks_below(box: Box, whole: Component) -> int:
    disks = (function for function in box.topology.functions.values() if function.class_code == NVME)
    return sum(whole.name in rows(disk.path) for disk in disks)


_REFUSED_S = 90.0
"""A command that mlx5_core gets no completion of times out after a minute (MLX5_CMD_TIMEOUT_MSEC)."""
_GSP_SILENT = frozenset({119, 120})
"""Xids of the GPU's own firmware, whose commands lie in host memory too."""


def without_memory(box: Box, findings: Sequence[Finding]) -> Iterator[tuple[list[Finding], Component]]:
    """Devices that do not start, whose firmware does not respond or whose disk times out after an IOMMU refused their
    access to memory, where their commands are, with its setting."""
    denied = gathered((each.bdf, each.seconds) for each in box.log.iommu if each.what == "memory")
    window = _REFUSED_S if box.log.timed else inf
    for each in findings if denied else ():
        late = [event.seconds for event in each.judgement.events if event.number in _GSP_SILENT or event.kind == "nvme"
                or each.judgement.fault in (Fault.HCA_NOT_STARTED, Fault.HCA_UNRESPONSIVE)]  # fmt: skip
        before = denied.get(each.subject.bdf or located(box.log, each.subject.name), ())
        if late and all(any(0 <= seconds - at <= window for at in before) for seconds in late):
            yield [each], host_part("IOMMU setting")
