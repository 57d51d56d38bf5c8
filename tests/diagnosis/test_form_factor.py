"""What a GPU is mounted on, and whether its machine stands alone or is a tray of a rack."""

from __future__ import annotations

import pytest
from hand_made import box_of, gpu_part, planned, step

from dgxcheck.components.component import Component, host_part
from dgxcheck.diagnosis.by_hand import inspection
from dgxcheck.diagnosis.form_factor import (
    form_factor,
    has_fabric_elsewhere,
    is_on_baseboard,
    is_power_of_a_module,
    is_station,
)
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvml.gpu import Fabric
from dgxcheck.facts.record import replace
from dgxcheck.output.health.instructions import action_text

COOLING, POWER = host_part("cooling"), host_part("power supply")


@pytest.mark.parametrize(("base", "form", "on_baseboard", "fed_alike"), [
    ("dgx-1-v100", "sxm", True, True), ("dgx-h100", "sxm", True, True), ("gb200-nvl72", "sxm", False, False),
    ("l40s-x8", "card", False, False), ("k80-x8", "dual-gpu-card", False, False), ("gh200", "sxm", False, False),
    ("dgx-station-v100", "water-cooled", False, False), ("dgx-station-a100", "water-cooled", False, False),
])  # fmt: skip
def test_what_a_gpu_is_mounted_on(base: str, form: str, on_baseboard: bool, fed_alike: bool) -> None:
    box = box_of(base)
    gpu = gpu_part(box, 0)
    assert (form_factor(box, gpu), is_on_baseboard(box, gpu)) == (form, on_baseboard)
    assert is_power_of_a_module(box, gpu_part(box, 0, "power supply")) is fed_alike
    assert not is_power_of_a_module(box, gpu)
    unnamed = replace(box, snapshot=replace(box.snapshot, host=Missing(Gap.DENIED, "x")))
    assert is_station(box) is (form == "water-cooled")
    assert is_station(unnamed) is (base == "dgx-station-v100")  # by the name of its GPUs


@pytest.mark.parametrize(("base", "component", "faults", "code"), [
    ("dgx-1-v100", COOLING, {Fault.OVERHEATING}, "inspect-airflow"),
    ("dgx-station-v100", COOLING, {Fault.OVERHEATING}, "inspect-water-cooling"),
    ("gb200-nvl72", COOLING, {Fault.OVERHEATING}, "inspect-coolant"),
    ("gb200-nvl72", COOLING, {Fault.OVERHEATING, Fault.FAN}, "inspect-airflow"),
    ("gb200-nvl72", COOLING, {Fault.CPU_THROTTLED}, "inspect-coolant"),
    ("gb200-nvl72", COOLING, {Fault.OVERHEATING, Fault.LEAK}, None),
    ("dgx-1-v100", COOLING, {Fault.CPU_THROTTLED}, None),
    ("dgx-1-v100", COOLING, {Fault.CPU_THROTTLED, Fault.OVERHEATING}, "inspect-airflow"),
    ("dgx-1-v100", POWER, {Fault.POWER_BRAKE}, "inspect-power"),
    ("gb200-nvl72", POWER, {Fault.POWER_BRAKE}, "inspect-power-shelves"),
    ("dgx-1-v100", POWER, {Fault.POWER_BRAKE, Fault.GPU_UNPOWERED}, None),
    ("l40s-x8", "power supply", {Fault.POWER_BRAKE}, "inspect-card-power"),
    ("l40s-x8", "power supply", {Fault.GPU_UNPOWERED}, None),
    ("dgx-1-v100", "power supply", {Fault.POWER_BRAKE}, "inspect-baseboard"),
])  # fmt: skip
def test_what_is_looked_at(base: str, component: Component | str, faults: set[FaultKind], code: str | None) -> None:
    """None: what the finding's own remedy says."""
    box = box_of(base)
    _, instruction = inspection(box, gpu_part(box, 0, component) if isinstance(component, str) else component, faults)
    assert (None if instruction is None else instruction.code) == code


def test_what_stands_alone_is_no_tray_of_a_rack() -> None:
    """GB300 of a DGX Station, or boards of a fabric that is none: no power shelf feeds others too."""
    tray = box_of("gb300-nvl72")
    cycle = step(planned(tray, gpu_part(tray, 0), Fault.GPU_LOST), "power-cycle")
    assert "AuxPowerCycleForce" in action_text(cycle, {})
    rows = tray.snapshot.gpu_modes
    assert not isinstance(rows, Missing)
    fabric = rows[0].fabric
    assert isinstance(fabric, Fabric)
    alone = tuple(replace(row, fabric=replace(fabric, state=0)) for row in rows)
    box = replace(tray, snapshot=replace(tray.snapshot, gpu_modes=alone))
    assert has_fabric_elsewhere(tray)
    assert not has_fabric_elsewhere(box)
    acts = planned(box, gpu_part(box, 0), Fault.GPU_LOST)
    assert "remove AC power" in action_text(step(acts, "power-cycle"), {})
    assert acts[-1].step == "contact-vendor"
