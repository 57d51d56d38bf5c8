"""What the kernel log says of the GPUs and of PCIe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from dgxcheck.checks.driver.loaded import bound
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.kernel_log.xid_catalogue import FATAL, Meaning, meaning
from dgxcheck.facts.kernel_log import HcaEvent, KernelLog, NotStarted, OffBus, PcieError, SXid, Xid
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Device

DAY_S = 86400.0
_AT_BOOT_S = 1.0
_SHOWN = 10
_WORST = (Status.FAIL, Status.WARN, Status.PASS)
_FALLEN = 79
_CLEANED_UP = 45
"""Follows other errors, and the end of every process of a job that is killed: it counts for no process."""
_NO_ACTION, _DRAIN = "to 0x0 (None)", "(Drain P2P)"

Judged = Iterator[tuple[Subject, Judgement]]
Event = Xid | SXid | OffBus | PcieError | NotStarted | HcaEvent
Rule = Callable[[Box, KernelLog, str, "Device | None"], "Judgement | None"]
"""From the log to the judgement of the device of that bdf; None where nothing is said of it."""


def per_device(rule: Rule, bdfs: Callable[[KernelLog], Iterable[str]]) -> Callable[[Box], Judged]:
    """A judge of every GPU, and of each other device that the log speaks of; of GPUs alone where some are asked."""

    def judge(box: Box) -> Judged:
        log = box.snapshot.kernel_log
        for gpu in box.gpus:
            if isinstance(log, Missing):
                yield box.subject(gpu), unjudged(log)
            else:
                yield box.subject(gpu), rule(box, log, gpu.bdf or "", gpu) or _unheard(log, gpu)
        if isinstance(log, Missing) or len(box.gpus) < len(box.topology.gpus):
            return
        for bdf in sorted({*bdfs(log)} - {gpu.bdf for gpu in box.topology.gpus}):
            said = rule(box, log, bdf, None)
            if said is not None:
                yield _other(box, bdf), said

    return judge


def _other(box: Box, bdf: str) -> Subject:
    nic = next((each.name for each in box.topology.devices if each.bdf == bdf), None)
    return Subject(kind="hca" if nic else "pci", name=nic or bdf, bdf=bdf)


def _unheard(log: KernelLog, gpu: Device) -> Judgement:
    """No line about this GPU."""
    driver = bound(gpu)
    if isinstance(driver, str) and driver != "nvidia":
        return skip("not-visible", f"bound to {driver}, which logs none")
    return Judgement(Status.PASS, f"nothing of it in the log{reach(log)}")


def reach(log: KernelLog) -> str:
    """What a log that does not begin at boot cannot tell."""
    if isinstance(log.begins, Missing):
        return "; whether it reaches back to boot is not known"
    return f"; it begins {log.begins:.0f} s after boot only" if log.begins >= _AT_BOOT_S else ""


def shown(log: KernelLog, events: Sequence[Event]) -> tuple[Evidence, ...]:
    return tuple(Evidence(log.where, each.line) for each in events[-_SHOWN:])


def _xid(box: Box, log: KernelLog, bdf: str, _: Device | None) -> Judgement | None:
    if any(each.bdf == bdf for each in log.sxids):
        return _sxid(log, bdf)
    seen = [each for each in log.xids if each.bdf == bdf and each.number != _FALLEN]
    now = [each for each in seen if not each.past]
    history = f"Xids from before the last reset or driver load: {len(seen) - len(now)}" if len(seen) > len(now) else ""
    if not now:
        return Judgement(Status.PASS, f"{history}{reach(log)}", evidence=shown(log, seen)) if seen else None
    known = {each.number: meaning(each.number, _architecture(box, bdf)) for each in now}
    applications = [each for each in now if known[each.number].severity == "application" and each.number != _CLEANED_UP]
    under = _processes(applications)
    most = box.settings.limit("kernel.xid-processes")
    judged = [(_status(each, known[each.number], now), each) for each in now]
    if under >= most:
        judged += [(Status.WARN, each) for each in applications]
    worst = min((status for status, _ in judged), key=_WORST.index)
    told = [each for status, each in judged if status is worst]
    words = _words(sorted({each.number: None for each in now}, key=lambda n: n not in {x.number for x in told}), now,
                   known)  # fmt: skip
    many = f"application Xids of {under} processes within a day; " if under >= most else ""
    message = f"{many}{words}{'; ' if history else ''}{history}{reach(log)}"
    return Judgement(worst, message, len(now), None, "Xids", shown(log, told))


def _words(numbers: Sequence[int], events: Sequence[Xid], known: dict[int, Meaning]) -> str:
    """``Xid 48 (double-bit memory error), Xid 45 (channel removed after another error) 3 times``."""
    times = Counter(each.number for each in events)
    return ", ".join(
        f"Xid {number} ({known[number].text}){f' {times[number]} times' if times[number] > 1 else ''}"
        for number in numbers
    )


def _status(xid: Xid, of_number: Meaning, all_now: Sequence[Xid]) -> Status:
    if of_number.severity in ("application", "information"):
        return Status.PASS
    if of_number.severity == "repeated":
        times = len({each.seconds for each in all_now if each.number == xid.number})
        return Status.FAIL if times > 1 else Status.WARN
    if of_number.severity == "wording":
        if _NO_ACTION in xid.text:
            return Status.PASS
        asks = xid.number == 154 and _DRAIN not in xid.text
        return Status.FAIL if asks or FATAL.search(xid.text) else Status.WARN
    return Status.FAIL if of_number.severity == "fail" else Status.WARN


def _processes(xids: Sequence[Xid]) -> int:
    """The most processes that had an Xid within one day; an Xid without a process counts for none."""
    of_process = [each for each in xids if each.pid]
    days = ({x.pid for x in of_process if 0 <= x.seconds - first.seconds < DAY_S} for first in of_process)
    return max(map(len, days), default=0)


def _architecture(box: Box, bdf: str) -> int | None:
    boards = box.snapshot.gpu_board
    if isinstance(boards, Missing):
        return None
    known = next((board.architecture for board in boards if board.bdf == bdf), None)
    return known if isinstance(known, int) else None


def _sxid(log: KernelLog, bdf: str) -> Judgement:
    """An NVSwitch."""
    now = [each for each in log.sxids if each.bdf == bdf and not each.past]
    fatal = [each for each in now if each.fatal]
    if not now:
        return Judgement(Status.PASS, f"SXids from before the driver was last loaded{reach(log)}")
    numbers = ", ".join(map(str, sorted({each.number for each in fatal or now})))
    message = f"{'fatal ' if fatal else ''}SXid {numbers} of an NVSwitch{reach(log)}"
    status = Status.FAIL if fatal else Status.WARN
    return Judgement(status, message, len(now), None, "SXids", shown(log, fatal or now))


def _off_bus(_: Box, log: KernelLog, bdf: str, __: Device | None) -> Judgement | None:
    seen = [each for each in log.off_bus if each.bdf == bdf]
    now = [each for each in seen if not each.past]
    if not seen:
        return None
    if not now:
        return Judgement(Status.PASS, f"fell off before the driver was last loaded{reach(log)}")
    how = "Xid 79" if any(each.xid for each in now) else "no Xid"
    when = "" if isinstance(log.begins, Missing) else f" {now[0].seconds:.0f} s after boot"
    return Judgement(Status.FAIL, f"fell off the bus{when}, with {how}{reach(log)}", evidence=shown(log, now))


def _aer(box: Box, log: KernelLog, bdf: str, _: Device | None) -> Judgement | None:
    seen = [each for each in log.pcie if each.bdf == bdf]
    if not seen:
        return None
    fatal, nonfatal, corrected = (
        [each for each in seen if each.severity == severity] for severity in ("fatal", "nonfatal", "corrected")
    )
    limit = box.settings.limit("kernel.corrected-pcie")
    daily = _in_a_day([each.seconds for each in corrected])
    status = Status.FAIL if fatal else Status.WARN if nonfatal or daily > limit else Status.PASS
    worst = fatal or nonfatal
    names = Counter(name for each in worst or corrected for name in each.names)
    bits = f" ({', '.join(f'{name} {times}' for name, times in names.most_common(3))})" if names else ""
    left = "; the kernel could not recover it" if any(each.unrecovered for each in worst) else ""
    message = (
        f"PCIe errors in the log: {len(fatal)} fatal, {len(nonfatal)} not fatal, {len(corrected)} corrected,"
        f" of these at most {daily} in a day{bits}{left}{reach(log)}"
    )
    measured, due, unit = (len(worst), 0, "errors") if worst else (daily, limit, "corrected errors")
    return Judgement(status, message, measured, due, unit, shown(log, worst or corrected))


def _in_a_day(seconds: Sequence[float]) -> int:
    """The most events within one day; ``seconds`` are sorted."""
    most = first = 0
    for number, second in enumerate(seconds):
        while second - seconds[first] >= DAY_S:
            first += 1
        most = max(most, number - first + 1)
    return most


CHECKS = (
    Check(
        id="kernel.xid",
        rule="Fails or warns on Xids of hardware since the GPU's last reset or driver load, as NVIDIA's catalogue"
        " classes them; 63 and 64 are page retirement before Ampere and row remapping from then on; 74 warns, and"
        " fails if seen twice. Xids of applications (13, 31, 43, 45 ..) are information, and warn from"
        " {kernel.xid-processes} of one GPU within a day. Xid 79 is kernel.off-bus's. Of an NVSwitch a fatal SXid"
        " fails, another warns.",
        source="https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html",
        remedy="drain the GPU and do what the Xid catalogue says of this number; keep nvidia-bug-report.sh's file",
        judge=per_device(_xid, lambda log: [*(each.bdf for each in log.xids), *(each.bdf for each in log.sxids)]),
    ),
    Check(
        id="kernel.off-bus",
        rule="Fails where the driver logged that a GPU has fallen off the bus, as Xid 79 or without an Xid, since it"
        " was last loaded.",
        source="Xid 79; https://github.com/NVIDIA/NVSentinel/issues/155 for those without an Xid",
        remedy="power the machine off and on; if it comes back, check the GPU's power, seating and temperature",
        judge=per_device(_off_bus, lambda log: [each.bdf for each in log.off_bus]),
    ),
    Check(
        id="kernel.aer",
        rule="Fails on a fatal PCIe error in the kernel log, warns on one that is not fatal, and on more than"
        " {kernel.corrected-pcie} of one device within a day.",
        source="Linux Documentation/PCI/pcieaer-howto.rst",
        remedy="reseat the named device and the board above it; look at its power and the link's AER counters",
        judge=per_device(_aer, lambda log: [each.bdf for each in log.pcie]),
    ),
)
