"""GPUs that fell off the bus, by the kernel log."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status
from dgxcheck.checks.kernel_log.device_log import gpu_itself, happened, lines, per_device, reach
from dgxcheck.checks.kernel_log.earlier_boots import boots_since, earlier_xids
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.kernel_log import EarlierXid, KernelLog
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Device
from dgxcheck.xid.entry import REMEDIES
from dgxcheck.xid.line import OFF_BUS

RECURS = 2
"""Boots in which a GPU fell off the bus, though it has not in this one."""


def earlier_falls(log: KernelLog, bdf: str = "") -> list[EarlierXid]:
    """Falls in earlier boots that the log itself holds."""
    return [each for each in earlier_xids(log, bdf) if each.number == OFF_BUS]


def _off_bus(_: Box, log: KernelLog, bdf: str, __: Device | None) -> Judgement | None:
    all_times = [each for each in log.off_bus if each.bdf == bdf]
    now = [each for each in all_times if not each.past]
    falls = {each.boot for each in earlier_falls(log, bdf)}
    boots = len(falls)
    since = boots_since(falls)
    if not now and boots >= RECURS:
        later = f", not in the {since} boots since" if since else ""
        message = f"fell off the bus in {boots} earlier boots of this log{later}{reach(log)}"
        fault = Fault.GPU_LOST_BEFORE if since else Fault.GPU_LOST
        return Judgement(Status.WARN, message, boots, 0, "boots", fault=fault)
    if not all_times and not boots:
        return None
    if not all_times:
        return Judgement(Status.PASS, f"fell off the bus in an earlier boot of this log{reach(log)}")
    if not now:
        return Judgement(Status.PASS, f"fell off the bus before the driver was last loaded{reach(log)}")
    how = "Xid 79" if any(each.xid for each in now) else "no Xid"
    when = "" if isinstance(log.begins, Missing) else f" {now[0].seconds:.0f} s after boot"
    message = f"fell off the bus{when} ({how}){reach(log)}"
    events = happened(now, "device", OFF_BUS)
    return Judgement(Status.FAIL, message, evidence=lines(log, now), fault=Fault.GPU_LOST, events=events)


def _named(log: KernelLog) -> list[str]:
    return [*(each.bdf for each in log.off_bus), *(each.bdf for each in earlier_falls(log))]


CHECKS = (
    Check(
        id="kernel.off-bus",
        rule="Fails if the driver logged, since it was last loaded, that a GPU has fallen off the bus, as Xid 79 or"
        " without an Xid; warns if it did so in two or more earlier boots that the log holds.",
        source="Xid 79; https://github.com/NVIDIA/NVSentinel/issues/155 for those without an Xid",
        remedy=REMEDIES["off-bus"],
        judge=per_device(_off_bus, _named, "did not fall off the bus"),
        blames=gpu_itself,
        witness="log",
    ),
)
