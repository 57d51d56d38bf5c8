"""GPU baseboards that are lost as a whole: all of their GPUs and NVSwitches, while the rest of the host responds."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.components.component import Component
from dgxcheck.components.containment import BOARDS, COMPUTE_BOARDS, GPU_BASEBOARD, NVSWITCHES
from dgxcheck.components.locate import far_ends
from dgxcheck.diagnosis.confidence import Confidence, by_agreement
from dgxcheck.diagnosis.form_factor import is_on_baseboard, is_on_compute_boards
from dgxcheck.facts.faults import UNRESPONSIVE, Fault
from dgxcheck.facts.record import replace
from dgxcheck.topology.model import Device
from dgxcheck.topology.nvlinks import is_nvswitch

Shared = tuple[list[Finding], Component]


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
    found: set[str | None] = {bdf for bdf, function in box.topology.functions.items() if is_nvswitch(function)}
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
