"""What an Xid or SXid means and what to do about it, by the tables alone: no machine is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from dgxcheck.checks.kernel_log.xid_meaning import fault_of
from dgxcheck.components.component import Component
from dgxcheck.diagnosis.escalation import escalation
from dgxcheck.facts.faults.kind import FaultKind, Step
from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record, replace
from dgxcheck.xid.relations import Relation, relations, sxid_fault
from dgxcheck.xid.table import (
    AMPERE,
    FIRST_SXID,
    REMEDIES,
    UNUSED,
    XidEntry,
    before_ampere,
    from_ampere,
    is_listed,
    meaning,
    retail_architecture_of,
    sxids,
)

AppliesTo = Literal["all GPUs", "GPUs before Ampere", "GPUs from Ampere on", "NVSwitches"]


class Explanation(Record):
    """One meaning of a number."""

    applies_to: AppliesTo
    entry: XidEntry
    fault: FaultKind | None
    """None where it asks for no action."""
    steps: tuple[Step, ...]
    """From the least disruptive up; empty where it asks for no action."""

    @property
    def kind(self) -> Literal["Xid", "SXid"]:
        return "SXid" if self.entry.fatality else "Xid"

    @property
    def about(self) -> str:
        """A part of the GPU, ``GPU`` or ``NVSwitch``."""
        return "NVSwitch" if self.entry.fatality else self.entry.about or "GPU"

    @property
    def remedy(self) -> str:
        """The first step in words."""
        return REMEDIES[self.entry.response]


def explain(number: int, gpu: str | None) -> tuple[Explanation, ...]:
    """The meanings of a number: two where GPUs before Ampere and later ones differ and ``gpu`` does not say which.

    ``gpu``: a board or architecture. Raises BadInput for a number that NVIDIA does not list, or an unknown GPU.
    """
    architecture = None if gpu is None else retail_architecture_of(gpu)[1]
    if number >= FIRST_SXID:
        if gpu is not None:
            raise BadInput(f"SXid {number}: SXids are of NVSwitches; --gpu does not apply")
        if number not in sxids():
            raise BadInput(f"SXid {number} is not in NVIDIA's Fabric Manager guide; dgxcheck xid --list prints all")
        return (_of_sxid(sxids()[number]),)
    if not is_listed(number):
        raise BadInput(f"Xid {number} is not in NVIDIA's lists; dgxcheck xid --list prints all")
    return tuple(_of_xid(number, architecture))


def explain_all(gpu: str | None) -> tuple[Explanation, ...]:
    """Every number: of one GPU its Xids; else all Xids, then all SXids. Raises BadInput for an unknown GPU."""
    architecture = None if gpu is None else retail_architecture_of(gpu)[1]
    numbers = sorted(from_ampere().keys() | before_ampere().keys())
    xids = [explanation for number in numbers for explanation in _of_xid(number, architecture)]
    return (*xids, *map(_of_sxid, sxids().values() if gpu is None else ()))


def relations_of(number: int) -> tuple[Relation, ...]:
    """Those in which the number is the effect or one of the causes."""
    return tuple(relation for relation in relations() if number == relation.effect or number in relation.causes)


def _of_xid(number: int, architecture: int | None) -> Iterator[Explanation]:
    if architecture is not None:
        later = architecture >= AMPERE
        yield _explained(meaning(number, architecture), "GPUs from Ampere on" if later else "GPUs before Ampere")
        return
    before, after = before_ampere().get(number), from_ampere().get(number)
    if before is None or after is None:
        entry = meaning(number, None)
        yield _explained(entry, "all GPUs" if entry.text == UNUSED else "GPUs from Ampere on")
    elif after.text == UNUSED:
        yield _explained(before, "GPUs before Ampere")
    elif _alike(before) == _alike(after):
        yield _explained(replace(after, causes=before.causes), "all GPUs")
    else:
        yield _explained(before, "GPUs before Ampere")
        yield _explained(after, "GPUs from Ampere on")


def _alike(entry: XidEntry) -> tuple[str, ...]:
    return entry.text, entry.severity, entry.response, entry.about


def _explained(entry: XidEntry, applies_to: AppliesTo) -> Explanation:
    on_link = entry.about == "PCIe link"
    component = Component(kind="link" if on_link else "gpu", name="GPU", part="" if on_link else entry.about)
    fault = None if entry.response == "none" else fault_of([(entry, "")])
    return _with_steps(entry, applies_to, component, fault)


def _of_sxid(entry: XidEntry) -> Explanation:
    fault = None if entry.response == "none" else sxid_fault(entry.response)
    return _with_steps(entry, "NVSwitches", Component(kind="nvswitch", name="NVSwitch"), fault)


def _with_steps(entry: XidEntry, applies_to: AppliesTo, component: Component, fault: FaultKind | None) -> Explanation:
    steps = () if fault is None else escalation(component, {fault})
    return Explanation(applies_to=applies_to, entry=entry, fault=fault, steps=steps)
