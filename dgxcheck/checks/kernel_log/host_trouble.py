"""Tasks stuck in the NVIDIA driver and slots that lost their device, by the kernel log."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.blame import driver, itself
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.wording import counted, first_of
from dgxcheck.checks.kernel_log.device_log import events_of, happened, lines, reach
from dgxcheck.checks.placement.missing import missing
from dgxcheck.components.component import Component
from dgxcheck.components.locate import is_below, links_at
from dgxcheck.facts.bdf import gpu_at
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Missing

WINDOW_S = 10.0
"""Within this time of each other a GPU falls off the bus and its slot reports that its link is down."""


def _stuck(box: Box) -> Judged:
    log = box.snapshot.kernel_log
    if isinstance(log, Missing):
        yield HOST, unjudged(log)
        return
    events = events_of(log, "stuck")
    if not events:
        yield HOST, Judgement(Status.PASS, f"no task hung in the NVIDIA driver{reach(log)}")
        return
    names = first_of([*dict.fromkeys(event.part for event in events if event.part)])
    message = f"tasks hung in the NVIDIA driver {counted(len(events), 'time')}: {names}{reach(log)}"
    yield HOST, Judgement(Status.WARN, message, len(events), 0, evidence=lines(log, events), fault=Fault.DRIVER_STUCK)


def _slots(box: Box) -> Judged:
    log = box.snapshot.kernel_log
    if isinstance(log, Missing):
        yield HOST, unjudged(log)
        return
    gone = {event.part: event for event in events_of(log, "unplugged") if not event.past}
    for port, event in sorted(gone.items()):
        message = f"slot {event.group} below this port lost its device while the system was running{reach(log)}"
        yield (
            Subject(kind="pci", name=port, bdf=port),
            Judgement(
                Status.WARN,
                message,
                evidence=lines(log, [event]),
                fault=Fault.UNPLUGGED,
                events=happened([event], "pcie"),
            ),
        )
    if not gone:
        yield HOST, Judgement(Status.PASS, f"no slot lost its device{reach(log)}")


def _blame_slot(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The link below the port; where nothing is below it any more, the GPU that fell off the bus at that time, or the
    place of a GPU or HCA that is missing."""
    yield from tuple(links_at(box, at.bdf or "")) or itself(box, at, judgement)
    if any(is_below(device, at.bdf or "") for device in box.topology.devices):
        return
    log = box.snapshot.kernel_log
    for gpu in () if isinstance(log, Missing) else log.off_bus:
        if any(abs(gpu.seconds - event.seconds) <= WINDOW_S for event in judgement.events):
            known = box.topology.device(gpu.bdf)
            yield Component(kind="gpu", name=gpu_at(gpu.bdf) if known is None else known.name, bdf=gpu.bdf)
    for place in (missing(box, "GPU"), missing(box, "HCA")):
        if place.bdf is not None:
            yield place


CHECKS = (
    Check(
        id="kernel.driver-stuck",
        rule="Warns if a task was blocked for minutes, or a CPU locked up, in a function of the NVIDIA driver. Tasks"
        " that hang elsewhere are not judged.",
        source="Linux kernel/hung_task.c and kernel/watchdog.c; the stack names the driver's module",
        remedy="run nvidia-bug-report.sh --safe-mode --extra-system-data; look for an Xid at that time; if nvidia-smi"
        " hangs, drain the node and reboot",
        judge=_stuck,
        blames=driver,
        witness="log",
    ),
    Check(
        id="kernel.hot-plug",
        rule="Warns if a PCIe slot lost its device while the system was running, and it did not come back. A slot that"
        " somebody switched off by its button is not judged.",
        source="Linux drivers/pci/hotplug/pciehp_ctrl.c",
        remedy="find out whether somebody pulled the device; if not, look for PCIe errors before it and check power,"
        " cables and riser",
        judge=_slots,
        blames=_blame_slot,
        witness="log",
    ),
)
