"""Xids of GPUs and SXids of NVSwitches in the kernel log."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from dgxcheck.checks.engine.blame import device_of
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Judgement, LogEvent, Status, Subject
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.kernel_log.device_log import DAY_S, gpu_itself, happened, lines, per_device, reach
from dgxcheck.checks.kernel_log.xid_catalogue import FATAL, REMEDIES, Meaning, meaning
from dgxcheck.checks.kernel_log.xid_parts import NVLINK_XIDS, part_of
from dgxcheck.checks.nvlink.blames import far_nvlinks, links_down
from dgxcheck.components.component import Component
from dgxcheck.components.locate import device_part
from dgxcheck.facts.kernel_log import KernelLog, SXid, Xid
from dgxcheck.topology.model import Device

_WORST = (Status.FAIL, Status.WARN, Status.PASS)
_OFF_BUS = 79
_LINK = re.compile(r"\blink (\d+)\b", re.IGNORECASE)
_CLEANED_UP = 45
"""Follows other errors, and the end of every process of a job that is killed: it counts for no process."""
_NO_ACTION, _DRAIN = "to 0x0 (None)", "(Drain P2P)"


def _xids(box: Box, log: KernelLog, bdf: str, _: Device | None) -> Judgement | None:
    switch = [each for each in log.sxids if each.bdf == bdf]
    if switch:
        return _sxids(log, switch)
    all_times = [each for each in log.xids if each.bdf == bdf and each.number != _OFF_BUS]
    now = [each for each in all_times if not each.past]
    earlier = len(all_times) - len(now)
    history = f"{counted(earlier, 'Xid')} before the last reset or driver load" if earlier else ""
    if not now:
        return Judgement(Status.PASS, f"{history}{reach(log)}", evidence=lines(log, all_times)) if all_times else None
    known = {each.number: meaning(each.number, _architecture(box, bdf)) for each in now}
    applications = [each for each in now if known[each.number].severity == "application" and each.number != _CLEANED_UP]
    processes = _processes(applications)
    many = processes >= box.settings.limit("kernel.xid-processes")
    judged = [(_status(each, known[each.number], now), each) for each in now]
    if many:
        judged += [(Status.WARN, each) for each in applications]
    worst = min((status for status, _ in judged), key=_WORST.index)
    reported = [each for status, each in judged if status is worst]
    first = {each.number for each in reported}
    numbers = sorted(dict.fromkeys(each.number for each in now), key=lambda number: number not in first)
    parts = [f"application Xids of {processes} processes within a day"] if many else []
    parts += [_words(numbers, now, known), *([history] if history else [])]
    message = f"{'; '.join(parts)}{reach(log)}"
    bad = worst is not Status.PASS
    return Judgement(
        worst, message, len(now), None, "Xids", lines(log, reported), fault=_fault(known, first) if bad else None,
        remedy=_remedy([known[number] for number in first]) if bad else "",
        events=tuple(_event(each) for status, each in judged if status is not Status.PASS),
    )  # fmt: skip


def _event(xid: Xid) -> LogEvent:
    """When an Xid was logged, and the NVLink that it names: ``NVLink: fatal error detected on link 2(0x10000, ..``."""
    if xid.number not in NVLINK_XIDS:
        return LogEvent(xid.seconds)
    named = _LINK.search(xid.text)
    return LogEvent(xid.seconds, "nvlink", None if named is None else int(named[1]))


def _fault(known: Mapping[int, Meaning], reported: Collection[int]) -> Fault:
    of_programs = all(known[number].severity == "application" for number in reported)
    return Fault.XID_APPLICATION if of_programs else Fault.XID


def _remedy(reported: Sequence[Meaning]) -> str:
    """Of several numbers the most drastic one's."""
    actions = {each.action for each in reported}
    return next(remedy for action, remedy in REMEDIES.items() if action in actions)


def _words(numbers: Sequence[int], events: Sequence[Xid], known: Mapping[int, Meaning]) -> str:
    """``Xid 48 (double-bit ECC error), Xid 45 (channel removed after another error) 3 times``"""
    times = Counter(each.number for each in events)
    return ", ".join(
        f"Xid {number} ({known[number].text}){f' {times[number]} times' if times[number] > 1 else ''}"
        for number in numbers
    )


def _status(xid: Xid, known: Meaning, all_now: Sequence[Xid]) -> Status:
    if known.severity in ("application", "information"):
        return Status.PASS
    if known.severity == "repeated":
        times = len({each.seconds for each in all_now if each.number == xid.number})
        return Status.FAIL if times > 1 else Status.WARN
    if known.severity == "wording":
        if _NO_ACTION in xid.text:
            return Status.PASS
        asks = xid.number == 154 and _DRAIN not in xid.text
        return Status.FAIL if asks or FATAL.search(xid.text) else Status.WARN
    return Status.FAIL if known.severity == "fail" else Status.WARN


def _processes(xids: Sequence[Xid]) -> int:
    """The most processes that had an Xid within one day; an Xid without a process counts for none."""
    of_process = [each for each in xids if each.pid]
    days = ({x.pid for x in of_process if 0 <= x.seconds - first.seconds < DAY_S} for first in of_process)
    return max(map(len, days), default=0)


def _architecture(box: Box, bdf: str) -> int | None:
    """``nvmlDeviceArchitecture_t``; None where it is not known."""
    board = box.gpu(bdf).board
    architecture = getattr(board, "architecture", None)
    return architecture if isinstance(architecture, int) else None


def _sxids(log: KernelLog, all_times: Sequence[SXid]) -> Judgement:
    now = [each for each in all_times if not each.past]
    if not now:
        history = f"{counted(len(all_times), 'SXid')} before the driver was last loaded"
        return Judgement(Status.PASS, f"{history}{reach(log)}")
    fatal = [each for each in now if each.fatal]
    numbers = ", ".join(map(str, sorted({each.number for each in fatal or now})))
    return Judgement(
        Status.FAIL if fatal else Status.WARN, f"NVSwitch: {'fatal ' if fatal else ''}SXid {numbers}{reach(log)}",
        len(now), None, "SXids", lines(log, fatal or now), fault=Fault.NVSWITCH,
        remedy=_FATAL_SXID if fatal else _SXID, events=happened(fatal or now, "nvswitch"),
    )  # fmt: skip


_SXID = (
    "look up the SXid in NVIDIA's Fabric Manager guide (DU-09883); a non-fatal one needs no action unless it repeats or"
    " NVLink errors grow"
)
_FATAL_SXID = (
    "look up the SXid in NVIDIA's Fabric Manager guide (DU-09883): the NVLinks at that port are down; drain the node,"
    " then reset all GPUs and NVSwitches together (stop Fabric Manager, nvidia-smi -r, start Fabric Manager) or reboot"
)


def _blames(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The part of the GPU that its Xids name, and the NVLinks that it shares with other GPUs; the NVSwitch."""
    gpu = device_of(box, at)
    if judgement.fault is Fault.NVSWITCH:
        yield Component(kind="nvswitch", name=at.bdf or at.name, bdf=at.bdf)
    elif gpu is None or gpu.kind != "gpu":
        yield from gpu_itself(box, at, judgement)
    else:
        part = part_of(box, gpu.bdf)
        yield device_part(box, gpu, part)
        if part == "NVLink":
            named = {event.link for event in judgement.events if event.kind == "nvlink"}
            known = {link for link in named if link is not None} | links_down(box, gpu)
            yield from far_nvlinks(box, gpu, None if None in named else known)


CHECKS = (
    Check(
        id="kernel.xid",
        rule="Fails or warns on hardware Xids since the GPU's last reset or driver load, by the classes of NVIDIA's"
        " catalogue; 63 and 64 mean page retirement before Ampere and row remapping since; 74 warns, and fails if it"
        " occurs twice. Application Xids (13, 31, 43, 45 and others) are informational, and warn from"
        " {kernel.xid-processes} on one GPU within a day. Xid 79 is judged by kernel.off-bus. For an NVSwitch, a fatal"
        " SXid fails and any other warns.",
        source="https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html",
        remedy="drain the GPU and do what NVIDIA's Xid catalogue says for the number; keep the file that"
        " nvidia-bug-report.sh writes",
        judge=per_device(
            _xids, lambda log: [*(each.bdf for each in log.xids), *(each.bdf for each in log.sxids)], "no Xids logged"
        ),
        blames=_blames,
        witness="log",
    ),
)
