"""What a GPU is mounted on, and whether its machine stands alone or is a tray of a rack."""

from __future__ import annotations

import pytest
from hand_made import box_of, gpu_part, planned, step

from dgxcheck.diagnosis.form_factor import form_factor, is_on_baseboard, is_power_of_a_module, is_station
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvml.gpu import Fabric
from dgxcheck.facts.record import replace
from dgxcheck.output.health.instructions import action_text


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
    acts = planned(box, gpu_part(box, 0), Fault.GPU_LOST)
    assert "remove AC power" in action_text(step(acts, "power-cycle"), {})
    assert acts[-1].step == "contact-vendor"
