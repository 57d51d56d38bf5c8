"""The NVSwitches of a machine: are all of them on PCI, and do they have their driver?"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, ruled
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject, counted, judged, of_gaps, skip
from dgxcheck.checks.engine.host_limits import gpus_hidden, is_assigned
from dgxcheck.components.component import Component
from dgxcheck.components.locate import lost_nvswitches, missing_nvswitch, missing_nvswitches, off_the_bus
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import need, rows
from dgxcheck.facts.sysfs import PCI_DEVICES
from dgxcheck.facts.tool_outputs import LISTED_NVSWITCHES
from dgxcheck.topology.nvlinks import nvswitches


def _number(box: Box) -> Judgement:
    listed = sum(row.count for row in rows(box.snapshot.tool_reports) if row.topic == LISTED_NVSWITCHES)
    if not listed:
        need(box.snapshot.pci)
    if is_assigned(box):
        return skip("not-visible", "a guest or container sees only the NVSwitches assigned to it")
    if hidden := gpus_hidden(box):
        return skip("not-visible", hidden)
    on_pci = [function.bdf for function in nvswitches(box.topology)]
    present = len(on_pci) or listed
    expected = _expected(box, present)
    lost = missing_nvswitches(box)
    if expected is None and not lost:
        why = "no reference number of NVSwitches" if present else "no NVSwitch is present"
        return skip("no-reference" if present else "not-supported", why)
    wanted = max(int(expected or 0), present + len(lost))
    seen = Evidence("dcgmi discovery -l", listed) if listed else Evidence(PCI_DEVICES, ", ".join(on_pci) or "none")
    short = present < wanted
    message = counted(present, "NVSwitch", "NVSwitches")
    if short:
        message = f"{present} of {counted(wanted, 'NVSwitch', 'NVSwitches')} found{' on PCI' if not listed else ''}"
    if lost:
        message += f"; NVLinks lead to {', '.join(lost)}, which {'is' if len(lost) == 1 else 'are'} not there"
    return judged(Fault.NVSWITCH_MISSING, message, present, wanted, "NVSwitches", (seen,), fails=short)


def _judge(box: Box) -> Judged:
    """Fails if there are fewer NVSwitches on PCI than in the profile, if NVLinks lead to an NVSwitch that is not on PCI
    while others are, or if the config space of one reads all ones. Of a machine that is known by its GPUs alone the
    profile counts only where it has as many GPUs. Not judged in containers and virtual machines.

    Source: /sys/bus/pci/devices (class 0680 of NVIDIA), of a text dcgmi discovery -l, against the profile's
    nvlink.switches and nvmlDeviceGetNvLinkRemotePciInfo
    """
    yield HOST, ruled(_number, box)
    if is_assigned(box):
        return
    for lost in lost_nvswitches(box):
        message, evidence = "fell off the bus: its config space reads all ones", of_gaps([off_the_bus(box)[lost.name]])
        judgement = Judgement(Status.FAIL, message, evidence=evidence, fault=Fault.NVSWITCH_MISSING)
        yield Subject(kind="pci", name=lost.name, bdf=lost.bdf), judgement


def _blame(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    yield Component(kind="nvswitch", name=at.bdf, bdf=at.bdf) if at.bdf is not None else missing_nvswitch(box)


def _expected(box: Box, present: int) -> int | float | None:
    """The profile's number; of a machine that is known by its GPUs alone only where it has NVSwitches at all."""
    number, gpus = box.number("nvlink.switches"), box.number("gpu.count")
    # boards of fewer GPUs have fewer of both
    same = gpus is not None and len(box.reference_gpus) == gpus.value and present > 0
    return None if number is None or (box.guessed and not same) else number.value


def lacking(box: Box) -> bool:
    """Does nvlink.nvswitches report that some are missing?"""
    return ruled(_number, box).status is Status.FAIL


CHECKS = (Check("nvlink.nvswitches", _judge, _blame),)
