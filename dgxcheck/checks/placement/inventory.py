"""Does the host still have the devices that it had in earlier runs?"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine import visibility
from dgxcheck.checks.engine.box import HOST, Box, guest
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.placement.missing_device import missing
from dgxcheck.components.component import Component, host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.record import Record, replace

CHECK = "host.inventory"
Judged = Iterator[tuple[Subject, Judgement]]
NO_EARLIER_RUN = skip("no-history", "no earlier run on this host")
NOT_LIVE = skip("not-recorded", "only the live machine is compared with earlier runs")


class _Kind(Record, kw_only=False):
    name: str
    unit: str
    key: str
    """What a profile says of it, which another check judges."""
    status: Status
    fault: FaultKind


KINDS = (
    _Kind("GPU", "GPUs", "gpu.count", Status.FAIL, Fault.GPU_MISSING),
    _Kind("HCA", "HCAs", "network.hcas", Status.FAIL, Fault.HCA_MISSING),
    _Kind("memory", "GiB", "host.memory", Status.WARN, Fault.MEMORY_MISSING),
    _Kind("disk", "disks", "host.data", Status.WARN, Fault.DISK),
)


def _inventory(box: Box) -> Judged:
    if not box.inventory:
        yield HOST, NO_EARLIER_RUN if box.present else NOT_LIVE
        return
    for kind in KINDS:
        if kind.name in box.inventory:
            yield replace(HOST, part=kind.name), _of_kind(box, kind)


def _of_kind(box: Box, kind: _Kind) -> Judgement:
    was, now = box.inventory[kind.name], box.present.get(kind.name)
    if now is None:
        return skip("not-recorded", f"{kind.unit} were not counted in this run")
    if visibility.in_container(box) or guest(box) is not None:
        return skip("not-visible", "a container or virtual machine sees what is assigned to it")
    evidence = (Evidence(f"state file, {was.date}", was.number), Evidence("this run", now))
    if now >= was.number - _tolerance(box, kind, was.number):
        return Judgement(Status.PASS, f"{_many(kind, now)} as on {was.date}", now, was.number, kind.unit, evidence)
    known = box.choice if box.choice is not None and box.choice.how != "gpus" else None
    reference = known.number(kind.key) if known is not None else None
    if reference is not None and kind.name in ("GPU", "HCA") and now < reference.value:
        return skip("dependency-failed", f"fewer {kind.unit} than the reference machine: see {kind.key}", *evidence)
    message = f"{_many(kind, now)}, was {was.number} on {was.date}"
    return Judgement(kind.status, message, now, was.number, kind.unit, evidence, fault=kind.fault)


def _tolerance(box: Box, kind: _Kind, number: int) -> float:
    """Of memory the kernel and the firmware reserve now more, now less."""
    return number * box.settings.limit("host.memory-missing") / 100 if kind.name == "memory" else 0


def _many(kind: _Kind, number: int) -> str:
    return f"{number} GiB of memory" if kind.name == "memory" else counted(number, kind.name)


def _blame(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    if subject.part == "GPU":
        yield missing(box, "GPU")
    elif subject.part == "HCA":
        yield missing(box, "HCA")
    else:
        yield host_part("memory" if subject.part == "memory" else "disks")


CHECKS = (
    Check(
        id=CHECK,
        rule="Fails if the host has fewer GPUs or HCAs than in an earlier run, and warns if it has less memory (by more"
        " than {host.memory-missing}) or fewer disks. Compared on the live machine with the highest numbers that the"
        " state file holds of this host. Not judged in containers and virtual machines. A removal on purpose is"
        " accepted with an acknowledgement of this check: the next run expects what there is then.",
        source="the state file of earlier runs",
        remedy="check the kernel log for the missing device; cold power cycle; if it stays missing, reseat it (SXM: the"
        " vendor does); if it was removed on purpose, acknowledge host.inventory in the configuration",
        judge=_inventory,
        blames=_blame,
    ),
)
