"""Which GPUs DCGM's diagnostic is given: boards of one kind alone, or it refuses them all."""

from __future__ import annotations

import pytest
from hand_made import box_of, gpu_part, planned, with_facts

from dgxcheck.checks.engine.box import Box
from dgxcheck.components.containment import NVSWITCHES
from dgxcheck.diagnosis.steps import dcgm_diagnostic
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace

WHOLE = ("dcgmi", "diag", "-r", "3")
A100 = ((*WHOLE, "-i", "0,1,2,4"), ("GPU0", "GPU1", "GPU2", "GPU4"))


@pytest.mark.parametrize("number", [0, 4])
def test_a_gpu_for_the_display_is_left_out(number: int) -> None:
    box = box_of("dgx-station-a100")
    acts = planned(box, gpu_part(box, number, "memory"), Fault.REMAP_FAILED)
    (test,) = [action for action in acts if action.step == "field-diagnostic"]
    assert (test.commands, test.disturbs) == ((A100[0],), A100[1])


def test_numbers_are_those_after_the_lost_gpu_responds_again() -> None:
    """NVML that counts 4 of 5 gives the number of the display to the last A100."""
    whole = box_of("dgx-station-a100")
    a100, fewer = [0, 1, 2, 4], {0: None, 1: 0, 2: 1, 3: 2, 4: 3}
    gpus = tuple(replace(gpu, index=fewer[number]) for number, gpu in enumerate(whole.topology.gpus))
    renumbered = {gpu.name: gpu for gpu in gpus}
    devices = tuple(renumbered.get(device.name, device) for device in whole.topology.devices)
    box = replace(whole, topology=replace(whole.topology, devices=devices))
    assert [gpu.index for gpu in box.topology.gpus] == [*fewer.values()]
    for number in (0, 4):
        assert numbers(box, number) == [",".join(map(str, a100))]


def test_boards_of_one_kind_are_tested_at_once() -> None:
    for name in ("dgx-a100", "k80-x8", "l40s-x8"):
        box = box_of(name)
        assert dcgm_diagnostic(box, gpu_part(box, 0)) == (WHOLE, box.topology.gpus)


def test_what_is_no_gpu_is_tested_with_the_boards_that_most_are() -> None:
    box = box_of("dgx-station-a100")
    command, gpus = dcgm_diagnostic(box, NVSWITCHES)
    assert (command, tuple(gpu.name for gpu in gpus)) == A100


def test_boards_of_another_subsystem_are_another_kind() -> None:
    subsystem = "text /sys/bus/pci/devices/0000:3d:00.0/subsystem_device"
    assert numbers(with_facts("l40s-x8", {subsystem: "0x1234\n"}), 2) == ["2"]
    unread: Json = {"missing": "denied", "detail": "Permission denied"}
    assert numbers(with_facts("l40s-x8", {subsystem: unread}), 2) == []


def numbers(box: Box, of: int) -> list[str]:
    """The numbers that the diagnostic of this GPU names."""
    return [*dcgm_diagnostic(box, gpu_part(box, of))[0][len(WHOLE) + 1 :]]
