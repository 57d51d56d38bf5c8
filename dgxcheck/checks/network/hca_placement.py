"""The PCI places of the HCAs against the reference machine."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.blame import component_of
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.placement.misplaced import misplaced
from dgxcheck.checks.placement.placement import (
    by_classes,
    classes,
    divided_otherwise,
    fabric_adapters,
    other,
    reference,
    without_place,
    wrong_gpus,
)
from dgxcheck.components.component import Component, host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]


def _placement(box: Box) -> Judged:
    profile = reference(box)
    if isinstance(profile, Judgement):
        yield HOST, profile
        return
    adapters = fabric_adapters(box)
    if not adapters or not any(wiring.to_hcas for wiring in profile.wiring):
        why = f"{profile.name} has no HCAs" if adapters else "no HCAs with an InfiniBand port"
        yield HOST, skip("not-supported", why)
        return
    wrong = wrong_gpus(box, profile)
    gpus = [gpu for gpu in box.topology.gpus if wrong is not None and gpu not in wrong.devices]
    if not gpus or divided_otherwise(box, profile, wrong):
        yield HOST, skip("dependency-failed", "the GPUs are not placed as in the reference machine")
        return
    wrong_hcas = misplaced(gpus, adapters, box.topology, profile.wiring, lambda wiring: wiring.to_hcas)
    reached = {nic: classes(box, nic, box.topology.gpus) for nic in adapters}
    evidence = {nic: Evidence(f"/sys/bus/pci/devices/{nic.bdf}", _path(nic)) for nic in adapters}
    if wrong_hcas is None:
        message = f"not as in {profile.title}: {by_classes(box, adapters, box.topology.gpus, 'GPUs')}"
        yield HOST, Judgement(Status.WARN, message, evidence=(*evidence.values(),), fault=Fault.MISPLACED)
        return
    for nic in adapters:
        place, classes_text = Subject(kind="hca", name=nic.name, bdf=nic.bdf), reached[nic]
        if nic in wrong_hcas.devices:
            message = f"to GPUs: {classes_text}; unlike {profile.title}{other(wrong_hcas)}"
            yield place, Judgement(
                Status.WARN, message, classes_text, evidence=(evidence[nic],), fault=Fault.MISPLACED
            )  # fmt: skip
        else:
            right = Judgement(Status.PASS, f"to GPUs: {classes_text}", classes_text, evidence=(evidence[nic],))
            yield place, _not_placed(nic) or right


def _path(nic: Device) -> str:
    return nic.path.reason if isinstance(nic.path, Missing) else "/".join(nic.path)


def _not_placed(nic: Device) -> Judgement | None:
    return skip("not-visible", "no PCI function behind it") if nic.bdf is None else without_place(nic)


def _slot(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    yield host_part("placement of HCAs") if at.kind == "host" else component_of(box, at, "slot")


CHECKS = (
    Check(
        id="network.hca-placement",
        rule="Warns on an HCA that more GPUs reach at some PCI class than in the reference machine: on the fewest HCAs"
        " that explain it, or on the host if that takes more than three. A missing HCA is not counted as misplaced."
        " Adapters with Ethernet ports only are not judged; misplaced GPUs are reported by topology.profile.",
        source="the profile's wiring; PCI classes from the paths under /sys/devices",
        remedy="move the adapter to the slot behind the PCIe switch of its GPUs",
        judge=_placement,
        blames=_slot,
    ),
)
