"""Devices that are lost together: in the same moment by the kernel log, with the switch, board or power they share; and
all GPUs and NVSwitches of a baseboard, while the rest of the host responds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import BAD, FAULTY, Finding, Status
from dgxcheck.components.component import Component, Key, host_part
from dgxcheck.components.containment import BOARDS, COMPUTE_BOARDS, GPU_BASEBOARD, NVSWITCHES, above
from dgxcheck.components.locate import far_ends
from dgxcheck.diagnosis.confidence import Confidence, by_agreement
from dgxcheck.diagnosis.form_factor import is_on_baseboard, is_on_compute_boards
from dgxcheck.diagnosis.shared_by_many import FEWEST, times_of
from dgxcheck.facts.faults import DEVICE_DEAD, UNRESPONSIVE, Fault
from dgxcheck.facts.kernel_log import is_near
from dgxcheck.facts.record import replace
from dgxcheck.topology.model import Device
from dgxcheck.topology.nvlinks import nvswitches
from dgxcheck.topology.paths import NEAR
from dgxcheck.xid.relations import WINDOW_S

Shared = tuple[list[Finding], Component]
POWER = host_part("power supply")


def same_moment(box: Box, findings: Sequence[Finding]) -> Iterator[Shared]:
    """Findings of devices that failed within seconds of each other, with what can have done it.

    Of NVSwitches the fabric that they make up, or the NVLinks between two, and of NVLinks that end at them, where half
    of the GPUs log errors of theirs. Of GPUs and adapters the nearest PCIe switch above all of them, unless all the
    adapters below it respond, or the host bridge or socket if nothing else below it does; else their boards, NVSwitches
    on them that failed in that moment too, or the power supply, which is all that they share. Adapters alone have each
    a cause of its own, for what has power beside them, their GPUs too, still responds.
    """
    failed = [finding for finding in findings if finding.status is Status.FAIL]
    for together in _moments([finding for finding in failed if times_of(finding, "nvswitch")], "nvswitch"):
        yield together, trunk(box, together) or NVSWITCHES
    yield from _through_switches(box, findings)
    dead = [finding for finding in failed if finding.judgement.fault in DEVICE_DEAD]
    gone, unpowered = gone_of(findings), unpowered_of(findings)
    for together in _moments([finding for finding in dead if times_of(finding, "device")], "device"):
        lost = sorted({finding.subject.bdf or "" for finding in together})
        around = _shared(box, lost, gone) or _adapter_above(box, lost) or board_of(box, lost)
        whole = around if {*lost} - unpowered else POWER
        if whole is not None or any(finding.subject.kind != "hca" for finding in together):
            those = [finding for finding in dead if finding.subject.bdf in lost]
            of_board = whole is not None and whole.part in BOARDS
            yield [*those, *(_nvswitches_with(failed, those) if of_board else ())], whole or POWER


def _nvswitches_with(failed: Sequence[Finding], lost: Sequence[Finding]) -> list[Finding]:
    """NVSwitches whose errors began within seconds of the loss of these GPUs: their board feeds them as well."""
    began = [min(times_of(finding, "device")) for finding in lost if times_of(finding, "device")]
    return [each for each in failed if (times := times_of(each, "nvswitch")) and is_near(min(times), began, WINDOW_S)]


def _through_switches(box: Box, findings: Sequence[Finding]) -> Iterator[Shared]:
    """NVLink errors of at least three GPUs, and half of them, whose links end at NVSwitches or at unknown devices."""
    bad = [each for each in findings if each.status in FAULTY and times_of(each, "nvlink")]
    if len(bad) < FEWEST or not all(_ends_elsewhere(box, finding) for finding in bad):
        return
    for together in _moments(bad, "nvlink"):
        several = len(together) >= FEWEST and 2 * len(together) >= len(box.topology.gpus)
        if several and not set.intersection(*map(_nvswitches, together)):
            yield together, NVSWITCHES


def _nvswitches(finding: Finding) -> set[Key]:
    """NVSwitches among the possible causes of the finding; one that all findings share is to blame."""
    return {component.key for component in finding.blames if component.kind == "nvswitch"}


def _ends_elsewhere(box: Box, finding: Finding) -> bool:
    gpu = box.topology.device(finding.subject.bdf or "")
    ends = set() if gpu is None else {*far_ends(box, gpu).values()}
    return gpu is not None and ends.isdisjoint(each.bdf for each in box.topology.gpus)


def _moments(findings: Sequence[Finding], kind: str) -> Iterator[list[Finding]]:
    """Findings of several devices whose first events lie within seconds of the first of them."""
    ordered = sorted(findings, key=lambda finding: min(times_of(finding, kind)))
    while ordered:
        begins = min(times_of(ordered[0], kind))
        together = [finding for finding in ordered if min(times_of(finding, kind)) - begins <= WINDOW_S]
        if len({finding.subject.bdf for finding in together}) > 1:
            yield together
        ordered = ordered[len(together) :]


def unpowered_of(findings: Sequence[Finding]) -> set[str | None]:
    """Bus ids of the GPUs of which the driver says that they have no auxiliary power, which no slot or switch gives."""
    return {each.subject.bdf for each in findings if each.judgement.fault is Fault.GPU_UNPOWERED}


def _shared(box: Box, lost: Sequence[str], gone: set[str | None]) -> Component | None:
    wholes = [[component for component in above(box, bdf) if component.kind != "link"] for bdf in lost]
    for whole in wholes[0]:
        of_all = all(any(component.key == whole.key for component in others) for others in wholes[1:])
        if of_all and not responds(box, whole, gone, lost):
            return whole
    return None


def _adapter_above(box: Box, lost: Sequence[str]) -> Component | None:
    """The one adapter among the lost devices that is the PCIe switch of all the others: a ConnectX-8 with DMA functions
    beside GPUs is in several PCI domains."""
    devices = [device for bdf in lost if (device := box.topology.device(bdf)) is not None]
    for nic in devices if len(devices) == len(lost) > 1 else ():
        others = [each for each in devices if each is not nic]
        if nic.dma is not None and all(box.topology.link(each, nic).pci in NEAR for each in others):
            return Component(kind="hca", name=nic.name, bdf=nic.bdf, shared_by=tuple(each.name for each in others))
    return None


def gone_of(findings: Sequence[Finding]) -> set[str | None]:
    """Bus ids of dead devices, and of switches and links that something else is found of."""
    bad = [finding for finding in findings if finding.status in BAD]
    at = {blame.bdf for finding in bad for blame in finding.blames[:1] if blame.kind in ("link", "switch")}
    return at | {finding.subject.bdf for finding in bad if finding.judgement.fault in DEVICE_DEAD}


def responds(box: Box, whole: Component, gone: set[str | None], lost: Collection[str | None] = ()) -> bool:
    """Does anything respond below a host bridge or at a socket, or every adapter below a switch? What stops no more
    than the GPUs below a switch is rather what feeds GPUs alone; of adapters alone that are lost, does anything?"""
    below = [device for device in box.topology.devices if device.name in whole.shared_by]
    if whole.kind != "switch" or {device.kind for device in below if device.bdf in lost} == {"nic"}:
        return any(device.bdf not in gone for device in below)
    adapters = [device.bdf for device in below if device.kind == "nic"]
    return bool(adapters) and gone.isdisjoint({*adapters, whole.bdf})


def lost_boards(box: Box, findings: Sequence[Finding]) -> Iterator[Shared]:
    """Findings of GPUs and NVSwitches that are lost together, with their baseboard; of all NVSwitches, without GPUs,
    with the NVSwitches.

    A board is what NVLinks join, and a DGX-2 has two. Sockets and power supplies are not at fault where adapters of
    the host respond.
    """
    failed = [each for each in findings if each.status is Status.FAIL]
    lost = [each for each in failed if each.judgement.fault in UNRESPONSIVE and each.subject.bdf is not None]
    gone = {each.subject.bdf for each in lost}
    gpus = [gpu for gpu in box.topology.gpus if gpu.bdf in gone]
    working = [gpu for gpu in box.topology.gpus if gpu.bdf not in gone]
    adapters = [each for each in box.topology.nics if each.bdf not in gone]
    every = _switches(box, gone)
    switches = _joined_to_none(box, every, working) if working and not every <= gone else every & gone
    if len(switches) > 1 and switches <= gone:
        of_one_board = len(gpus) > 1 and adapters and not (working and switches == every)
        of_it = switches | {gpu.bdf for gpu in gpus} if of_one_board else switches
        board = replace(GPU_BASEBOARD, shared_by=tuple(gpu.name for gpu in gpus))
        of_switches = all(each.judgement.fault is Fault.NVSWITCH_MISSING for each in lost if each.subject.bdf in of_it)
        if of_one_board or of_switches:
            those = [each for each in lost if each.subject.bdf in of_it]
            those += [each for each in failed if each.subject.bdf in switches and each not in lost]
            yield those, board if of_one_board else NVSWITCHES
    absent = [each for each in failed if each.judgement.fault in _ABSENT and each.judgement.measured == 0]
    if adapters and {each.judgement.fault for each in absent} == {*_ABSENT}:
        yield absent, GPU_BASEBOARD


def board_of(box: Box, lost: Collection[str | None]) -> Component | None:
    """The baseboard that feeds all GPUs, where several stop together while adapters respond; beside a Grace, which
    responds in any case, its board, of GPUs with their adapters too.
    """
    gpus = [gpu for gpu in box.topology.gpus if gpu.bdf in lost]
    if gpus and len(lost) > 1 and is_on_compute_boards(box):
        return replace(COMPUTE_BOARDS, shared_by=tuple(gpu.name for gpu in gpus))
    beside = any(each.bdf not in lost for each in box.topology.nics)
    board = replace(GPU_BASEBOARD, shared_by=tuple(gpu.name for gpu in gpus))
    return board if len(gpus) == len(lost) > 1 and beside and is_on_baseboard(box, board) else None


def trunk(box: Box, findings: Sequence[Finding]) -> Component | None:
    """The NVLinks between two NVSwitches of different boards, of which each names a port: no GPU is joined to both."""
    ends = sorted({each.subject.bdf or "" for each in findings})
    joined = [{*far_ends(box, gpu).values()} & {*ends} for gpu in box.topology.gpus]
    at_ports = all(event.link is not None for each in findings for event in each.judgement.events)
    if not at_ports or len(ends) != 2 or any(len(each) > 1 for each in joined) or set().union(*joined) != {*ends}:
        return None
    return Component(kind="nvswitch", name=" and ".join(ends), bdf=ends[0], peer_bdf=ends[1])


_ABSENT = (Fault.GPU_MISSING, Fault.NVSWITCH_MISSING)


def _switches(box: Box, gone: Collection[str | None]) -> set[str | None]:
    """NVSwitches on PCI, or the adapters that lead to those that are not; a lost one does not say what it leads to, but
    the reference machine has their number."""
    found: set[str | None] = {function.bdf for function in nvswitches(box.topology)}
    found |= {each.bdf for each in box.topology.devices if each.kind == "nvswitch-bridge"}
    lost = {each.bdf for each in box.topology.nics if each.bdf in gone}
    number = box.number("nvlink.bridges")
    return found or (lost if number is not None and len(lost) == number.value else set())


def _joined_to_none(box: Box, switches: set[str | None], working: Collection[Device]) -> set[str | None]:
    """Those that no working GPU is joined to; none where one of these does not say what it is joined to."""
    ends = [{*far_ends(box, gpu).values()} & switches for gpu in working]
    return switches.difference(*ends) if all(ends) else set()


def rest_responds(box: Box, component: Component, findings: Sequence[Finding]) -> Confidence | None:
    """Of the boards of GPUs: adapters at the sockets of those that are lost respond."""
    if component.part not in BOARDS:
        return None
    gone = {each.subject.bdf for each in findings}
    lost = [gpu for gpu in box.topology.gpus if gpu.bdf in gone]
    nodes = {each.numa_node for each in lost or box.topology.devices}
    beside = [each.name for each in box.topology.nics if each.bdf not in gone and each.numa_node in nodes]
    agreed = by_agreement(component, findings)
    return replace(agreed, level="inferred", reason="rest-responds", beside=tuple(beside))
