"""What is saved before anything is done: real commands, and none that hangs with the driver."""

from __future__ import annotations

import pytest
from hand_made import box_of, gpu_part
from sample import BOXES

from dgxcheck.components.component import DRIVER, Component, host_part
from dgxcheck.components.locate import all_nvlinks
from dgxcheck.diagnosis.by_hand import inspection
from dgxcheck.diagnosis.preserve import Preserve, preserve_evidence, together
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.output.health.instructions import preserve_text

PLAIN, SAFE = ("nvidia-bug-report.sh",), ("nvidia-bug-report.sh", "--safe-mode", "--extra-system-data")


def programs(name: str, component: Component, *faults: FaultKind) -> list[str]:
    return [each.command[0] for each in preserve_evidence(box_of(name), component, faults)]


@pytest.mark.parametrize(
    ("fault", "command"),
    [
        (Fault.GPU_LOST, SAFE), (Fault.DRIVER_UNRESPONSIVE, SAFE), (Fault.DRIVER_STUCK, SAFE),
        (Fault.XID, PLAIN), (Fault.ECC_UNCORRECTED, PLAIN),
    ],
)  # fmt: skip
def test_the_bug_report_does_not_ask_a_driver_that_hangs(fault: FaultKind, command: tuple[str, ...]) -> None:
    box = box_of("dgx-1-v100")
    for component in (gpu_part(box, 2), DRIVER):
        saved = preserve_evidence(box, component, [fault])
        assert [each.command for each in saved if each.command[0] == PLAIN[0]] == [command]


@pytest.mark.parametrize(
    ("box", "command"),
    [
        ("dgx-1-v100-xid-62", SAFE), ("dgx-a100-xid-119-reboot", SAFE), ("dgx-1-v100-xid-79", SAFE),
        ("dgx-1-v100-xid-48", PLAIN), ("dgx-1-v100-xid-74", PLAIN),
    ],
)  # fmt: skip
def test_the_bug_report_asks_every_gpu_and_hangs_with_any(box: str, command: tuple[str, ...]) -> None:
    """Also where something else is to be mended."""
    for component in (gpu_part(box_of(box), 0), DRIVER):
        saved = preserve_evidence(box_of(box), component, [Fault.ECC_UNCORRECTED])
        assert [each.command for each in saved if each.command[0] == PLAIN[0]] == [command]


@pytest.mark.parametrize("name", BOXES)
def test_the_kernel_log_and_a_recording_come_first(name: str) -> None:
    assert programs(name, host_part("cooling"))[:2] == ["dgxcheck", "dmesg"]
    assert ("nvsm" in programs(name, gpu_part(box_of(name), 0))) is name.startswith("dgx")


def test_no_driver_refuses_what_is_asked_of_it() -> None:
    """``nvidia-smi -q -d ROW_REMAPPER`` is an error of the driver 430 of a K80."""
    box = box_of("k80-x8")
    assert Preserve(("nvidia-smi", "-q"), "nvidia-smi.txt") in preserve_evidence(
        box, gpu_part(box, 0, "memory"), [Fault.RETIREMENT_PENDING]
    )


def test_evidence_follows_from_the_component() -> None:
    box = box_of("dgx-1-v100")
    for part in ("memory", "CPUs", "missing socket"):
        assert "ipmitool" in programs("dgx-1-v100", host_part(part))
    assert "ipmitool" in programs("dgx-1-v100", Component(kind="socket", name="1"))
    assert "mlxlink" in programs("dgx-1-v100", Component(kind="port", name="mlx5_1/1", bdf="0000:0c:00.0"))
    assert "ethtool" in programs("dgx-1-v100", Component(kind="interface", name="eno1"))
    assert "nvidia-smi" in programs("dgx-1-v100", gpu_part(box, 0, "memory"))
    assert "nvidia-bug-report.sh" not in programs("dgx-1-v100", Component(kind="disk", name="md0"))
    assert "cp" in programs("dgx-a100", all_nvlinks(box_of("dgx-a100")))


def test_output_goes_to_a_file() -> None:
    assert preserve_text(Preserve(("dmesg",), "dmesg.txt")) == "dmesg > dmesg.txt"
    assert preserve_text(Preserve(("ethtool", "a b"), "x y.txt")) == "ethtool 'a b' > 'x y.txt'"
    assert preserve_text(Preserve(PLAIN)) == "nvidia-bug-report.sh"


def test_of_one_program_the_command_that_asks_for_more_is_run() -> None:
    plain, safe, log = Preserve(PLAIN), Preserve(SAFE), Preserve(("dmesg",), "dmesg.txt")
    assert together([log, plain, safe, log]) == [log, safe]


@pytest.mark.parametrize(("name", "bmc"), [
    ("vm-h100-x8", False), ("geforce-x4", False), ("dgx-station-v100", False), ("dgx-1-v100", True), ("pcie-x8", True),
    ("l40s-x8", True), ("dgx-b200", True),
])  # fmt: skip
def test_a_bmc_is_asked_where_there_can_be_one(name: str, bmc: bool) -> None:
    """Of no guest and no workstation."""
    supplies = host_part("power supply")
    assert ("ipmitool" in programs(name, supplies)) is bmc
    commands, instruction = inspection(box_of(name), supplies)
    assert ("ipmitool" in [each[0] for each in commands]) is bmc
    assert instruction is not None
