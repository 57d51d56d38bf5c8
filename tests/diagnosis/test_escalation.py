"""Which steps follow from a component and its faults: nothing else decides."""

from __future__ import annotations

from itertools import combinations
from typing import get_args

import pytest
from sample import swept
from together import for_each

from dgxcheck.components.component import Component, Kind
from dgxcheck.diagnosis.escalation import (
    OF_COMPONENT,
    escalation,
    for_a_warning,
    without_reset,
)
from dgxcheck.facts.faults import DEVICE_ABSENT, DEVICE_DEAD, EVERY_FAULT, Fault
from dgxcheck.facts.faults.kind import FaultKind, Step

GPU = ["reset-gpu", "reboot", "power-cycle", "reseat", "field-diagnostic", "replace"]
HARDWARE = {"reseat", "replace", "contact-vendor"}
NOT_OF_GPUS = {
    Fault.DISK_ERRORS, Fault.HCA_IDENTITY, Fault.TRANSPORT_ERRORS, Fault.TRANSPORT_FLOOD,
    Fault.PORT_DISABLED, Fault.HCA_NOT_STARTED, Fault.HCA_UNRESPONSIVE, Fault.HCA_LOST, Fault.HCA_FATAL,
    Fault.HCA_FLASH_RECOVERY, Fault.ARRAY_FAILED, Fault.CABLE_MISSING, Fault.UPLINKS_UNEVEN, Fault.SUBNET_SPLIT,
}  # fmt: skip
PARTS: list[tuple[Kind, str]] = [
    *OF_COMPONENT, ("host", "memlock limit"), ("gpu", "compute mode"), ("hca", "firmware"), ("gpus", "power limit"),
]  # fmt: skip


def of(kind: Kind, part: str, *faults: FaultKind) -> list[Step]:
    return [*escalation(Component(kind=kind, name="x", bdf="0000:0a:00.0", part=part), faults)]


@pytest.mark.parametrize("kind", ["nvswitch", "slot"])
def test_an_nvswitch_off_the_bus_is_brought_back_whatever_else_is_found_of_it(kind: Kind) -> None:
    for fault in EVERY_FAULT:
        assert of(kind, "", Fault.NVSWITCH_MISSING, fault) == [*Fault.NVSWITCH_MISSING.steps], fault


@for_each(
    ("kind", "part", "faults", "steps"),
    [
        ("gpu", "", {Fault.XID}, GPU),
        ("gpu", "", {Fault.RESET_REQUIRED}, GPU),
        ("gpu", "", {Fault.REBOOT_REQUIRED}, ["reboot", "power-cycle", "field-diagnostic", "replace"]),
        ("gpu", "", {Fault.DRAIN_REQUIRED}, ["inspect", "reset-gpu", "reboot"]),
        ("gpu", "", {Fault.GPU_LOST}, ["reboot", "power-cycle", "reseat", "field-diagnostic", "replace"]),
        ("gpu", "", {Fault.GPU_NOT_STARTED, Fault.XID},
         ["reboot", "power-cycle", "reseat", "field-diagnostic", "replace"]),
        ("gpu", "", {Fault.XID_APPLICATION}, ["check-program"]),
        ("gpu", "", {Fault.XID_APPLICATION, Fault.XID}, GPU),
        ("gpu", "memory", {Fault.ECC_UNCORRECTED}, ["reset-gpu", "reboot", "field-diagnostic", "replace"]),
        ("gpu", "memory", {Fault.RETIREMENT_PENDING}, ["reset-gpu", "reboot"]),
        ("gpu", "memory", {Fault.REMAP_PENDING, Fault.DRIFT}, ["reset-gpu", "reboot"]),
        ("gpu", "memory", {Fault.DRIFT}, ["inspect", "reset-gpu", "reboot", "field-diagnostic", "replace"]),
        ("gpu", "memory", {Fault.REMAP_PENDING, Fault.REMAP_FAILED}, ["field-diagnostic", "replace"]),
        ("gpu", "memory", {Fault.PAGES_EXHAUSTED, Fault.ECC_UNCORRECTED}, ["field-diagnostic", "replace"]),
        ("gpu", "memory", {Fault.ECC_CORRECTED}, ["watch", "field-diagnostic", "replace"]),
        ("gpu", "memory", {Fault.SLOW}, ["inspect", "reset-gpu", "reboot", "field-diagnostic", "replace"]),
        ("gpu", "cooling", {Fault.OVERHEATING}, ["inspect", "field-diagnostic", "replace"]),
        ("gpu", "ECC mode", {Fault.ECC_OFF}, ["change-setting", "reset-gpu"]),
        ("gpu", "BAR1", {Fault.BAR1_SMALL}, ["change-setting", "reboot"]),
        ("gpu", "BAR1", {Fault.BAR1_FULL}, ["stop-jobs"]),
        ("gpu", "compute mode", {Fault.COMPUTE_PROHIBITED}, ["change-setting"]),
        ("driver", "", {Fault.DRIVER_UNRESPONSIVE}, ["reboot", "power-cycle"]),
        ("driver", "", {Fault.DRIVER_MISMATCH}, ["inspect", "load-module", "reboot"]),
        ("driver", "", {Fault.LIBRARY_MISSING}, ["change-setting"]),
        ("driver", "", {Fault.NOUVEAU}, ["change-setting", "reboot"]),
        ("driver", "", {Fault.FABRIC_MANAGER_DOWN}, ["inspect", "restart-service", "reboot"]),
        ("link", "", {Fault.LINK_NARROW}, ["power-cycle", "reseat", "field-diagnostic", "replace"]),
        ("link", "", {Fault.LINK_SLOW}, ["change-setting", "power-cycle", "reseat", "field-diagnostic", "replace"]),
        ("port", "", {Fault.PORT_DOWN}, ["inspect", "reseat", "replace"]),
        ("port", "", {Fault.PORT_DISABLED}, ["change-setting", "reseat", "replace"]),
        ("port", "", {Fault.PORT_DISABLED, Fault.PORT_MODULE}, ["inspect", "change-setting", "reseat", "replace"]),
        ("hca", "", {Fault.HCA_NOT_STARTED}, ["load-module", "power-cycle", "reseat", "replace"]),
        ("subnet-manager", "", {Fault.NO_SUBNET_MANAGER}, ["inspect", "restart-service"]),
        ("bridge", "", {Fault.AER_LOGGED}, ["inspect", "power-cycle", "reseat", "field-diagnostic", "replace"]),
        ("function", "", {Fault.AER_LOGGED}, ["inspect", "power-cycle", "contact-vendor"]),
        ("host", "PCIe links", {Fault.LINK_NARROW},
         ["inspect", "power-cycle", "reseat", "field-diagnostic", "replace"]),
        ("host", "memlock limit", {Fault.MEMLOCK}, ["change-setting"]),
        ("host", "programs with another driver library", {Fault.CLIENT_MISMATCH}, ["stop-jobs"]),
    ],
)  # fmt: skip
def test_steps_follow_from_component_and_fault(
    kind: Kind, part: str, faults: set[FaultKind], steps: list[Step]
) -> None:
    assert of(kind, part, *faults) == steps


@for_each("key", PARTS)
def test_no_fault_leads_to_a_replacement_without_a_diagnostic(key: tuple[Kind, str]) -> None:
    """Of what has GPUs; cables, disks and DIMMs have no such diagnostic."""
    kind, part = key
    for fault in EVERY_FAULT:
        taken = of(kind, part, fault)
        assert taken
        assert len({*taken}) == len(taken)
        assert set(taken) <= {*get_args(Step)}
        assert taken[0] not in ("replace", "contact-vendor")
        of_gpus = kind in ("gpu", "gpus", "board", "nvlink", "link", "switch") and fault not in NOT_OF_GPUS
        of_gpus &= part != "power supply"  # the supply is replaced, not the GPU
        if "replace" in taken and of_gpus:
            assert taken.index("field-diagnostic") < taken.index("replace")


@for_each("key", PARTS)
def test_what_is_dead_or_absent_is_not_reset(key: tuple[Kind, str]) -> None:
    for dead, other in combinations([*DEVICE_DEAD, *DEVICE_ABSENT, Fault.XID, Fault.ECC_UNCORRECTED], 2):
        if {dead, other} & (DEVICE_DEAD | DEVICE_ABSENT):
            assert "reset-gpu" not in of(key[0], key[1], dead, other)


@pytest.mark.in_ci
@pytest.mark.parametrize("part", swept(range(5), 5))
def test_the_order_of_faults_does_not_matter(part: int) -> None:
    for one, other in [*combinations(EVERY_FAULT, 2)][part::5]:
        assert of("gpu", "memory", one, other) == of("gpu", "memory", other, one)


def test_what_programs_do_never_leads_to_hardware() -> None:
    for kind, part in PARTS:
        assert not HARDWARE & {*of(kind, part, Fault.XID_APPLICATION)}


def test_a_reboot_then_a_cold_power_cycle_take_the_place_of_a_reset() -> None:
    assert without_reset(("change-setting", "reset-gpu")) == ("change-setting", "reboot", "power-cycle")
    assert without_reset(("reset-gpu", "reboot", "replace")) == ("reboot", "power-cycle", "replace")
    assert without_reset(("reboot", "replace")) == ("reboot", "replace")


def test_a_warning_replaces_nothing_but_a_disk_and_is_watched_where_it_can_wait() -> None:
    gpu, disk = Component(kind="gpu", name="x"), Component(kind="disk", name="md0")
    assert for_a_warning(gpu, ("power-cycle", "replace"), watched=False) == ("power-cycle",)
    assert for_a_warning(gpu, ("power-cycle", "replace"), watched=True) == ("watch", "power-cycle")
    assert for_a_warning(disk, ("reseat", "replace"), watched=False) == ("reseat", "replace")
