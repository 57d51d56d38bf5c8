"""The kernel log: the fault of each line, and what is to blame."""

from __future__ import annotations

from pathlib import Path

import pytest
from kernel_lines import AER, GPU, JUDGED, OF_DISK, OF_RAID, PORT, with_log
from test_checks_kernel import MLX5, logged
from test_faults_of_hosts import bad_findings
from test_health_checks import box

from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.diagnosis.escalation import escalation
from dgxcheck.facts.faults import DEVICE_DEAD, Fault
from dgxcheck.facts.host import Unit
from dgxcheck.facts.record import replace


def test_of_two_raid_controllers_with_an_alarm_none_is_blamed_for_a_disk() -> None:
    for lines, due in (((OF_DISK, OF_RAID), True), ((OF_DISK, OF_RAID, OF_RAID.replace("04:", "05:")), False)):
        (bad, *_) = [each for each in bad_findings(with_log(box("dgx-1-v100"), lines), "kernel.disk")
                     if each.judgement.fault is not Fault.RAID_ALARM]  # fmt: skip
        assert any(each.part.startswith("RAID") for each in bad.blames) is due


def test_what_falls_off_the_bus_is_a_device_of_nvidia() -> None:
    for bdf, due in (("0000:c7:00.0", 1), ("0000:e1:00.0", 0)):  # an NVSwitch, an HCA
        machine = with_log(box("dgx-a100"), (f"NVRM: GPU {bdf}: GPU has fallen off the bus.",))
        assert len(bad_findings(machine, "kernel.off-bus")) == due


def test_corrected_errors_beside_worse_ones_have_no_rate() -> None:
    corrected = f"pcieport {PORT}: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)"
    (aer,) = [each for each in CHECKS if each.id == "kernel.aer"]
    for lines, due in (((corrected,), True), ((corrected, AER.format("Fatal")), False)):
        (found,) = [each for each in run(with_log(box("dgx-1-v100"), lines), [aer]) if each.subject.bdf == PORT]
        assert ("a day" in found.judgement.message) is due


def test_a_service_that_runs_again_is_not_started() -> None:
    machine = with_log(box("dgx-1-v100"), ("Out of memory: Killed process 4712 (nv-fabricmanage) total-vm:1kB",))
    for running, fault in ((True, Fault.OUT_OF_MEMORY), (False, Fault.SERVICE_KILLED)):
        units = (Unit(name="nvidia-fabricmanager", running=running, enabled=True),)
        (bad,) = bad_findings(replace(machine, snapshot=replace(machine.snapshot, units=units)), "kernel.out-of-memory")
        assert bad.judgement.fault is fault


def test_lines_of_a_driver_that_differ_are_counted() -> None:
    lines = [f"NVRM: GPU {GPU}: frobnicator {word} failed (0x24)" for word in ("a", "b", "b")]
    (bad,) = bad_findings(with_log(box("dgx-1-v100"), tuple(lines)), "kernel.driver-errors")
    assert ", and 1 other line" in bad.judgement.message


def test_each_line_of_the_kernel_log_is_judged() -> None:
    machine = box("dgx-1-v100")
    for lines, check, fault in JUDGED:
        found = bad_findings(with_log(machine, lines), check)
        assert {bad.judgement.fault for bad in found} == {fault}, lines
        assert {bad.witness for bad in found} == {"log" if check.startswith("kernel.") else "state"}
        assert all(bad.blames and escalation(bad.blames[0], [fault]) for bad in found), lines


@pytest.mark.parametrize("said", [
    "enabling device (0000 -> 0002)", "Setup irq:1861 name:efa-mgmnt@pci:0000:4f:00.0", "IB device registered",
    "Failed to process command CREATE_CQ (opcode 10) comp_status 1 err -12", "Failed to create qp [-22]",
    "Failed to allocate uar[-12]",
])  # fmt: skip
def test_an_adapter_of_aws_that_refuses_a_program_is_sound(said: str) -> None:
    """The last is what a program gets that asks for more than there is (amzn/amzn-drivers, issue 306)."""
    quiet, loud = (with_log(box("dgx-1-v100"), (f"efa 0000:4f:00.0 rdmap79s0: {each}",))
                   for each in (said, "Admin queue is closed"))  # fmt: skip
    assert not bad_findings(quiet, "kernel.driver-errors")
    (bad,) = bad_findings(loud, "kernel.driver-errors")
    assert (bad.subject.kind, bad.subject.bdf) == ("hca", "0000:4f:00.0")


@pytest.mark.parametrize(
    "text",
    [
        "nfs: server 10.1.2.3 OK",
        f"{MLX5}print_health_info:428:(pid 0): Health issue observed, firmware internal error, severity(5) NOTICE:",
        "EXT4-fs (sda2): mounted filesystem with ordered data mode. Opts: errors=remount-ro",
        "EXT4-fs error (device loop3): ext4_lookup:1785: inode #2: comm ls: bad",
        "XFS (sdb1): Ending clean mount", "XFS (sdb1): User initiated shutdown received.",
        "XFS (sdb1): xfs_log_force: error -5 returned.",
        f"{MLX5}wait_func_handle_exec_timeout:1079:(pid 81): cmd[0]: ACCESS_REG(0x805) recovered after timeout",
    ],
)
def test_what_is_no_fault_of_the_host(text: str, tmp_path: Path) -> None:
    machine = box(logged(tmp_path, (100.0, text)))
    assert not [bad for check in ("kernel.file-system", "kernel.hca") for bad in bad_findings(machine, check)]


def test_of_two_troubles_the_worse_is_the_fault(tmp_path: Path) -> None:
    hot = f"{MLX5}temp_warn:198:(pid 0): High temperature on sensors with bit set 0x0 0x1"
    spec = logged(tmp_path, (100.0, hot), (101.0, f"{MLX5}poll_health:174: device's health compromised - x"))
    (bad,) = bad_findings(box(spec), "kernel.hca")
    assert bad.judgement.fault is Fault.HCA_UNRESPONSIVE
    assert bad.judgement.message.startswith("firmware stopped responding; its temperature sensors reached")


def test_a_device_that_does_not_start_or_answer_is_dead() -> None:
    assert {Fault.GPU_UNPOWERED, Fault.HCA_UNRESPONSIVE, Fault.HCA_NOT_STARTED} < DEVICE_DEAD
    assert not {Fault.GPU_STARTED_LATE, Fault.HCA_OVERHEATING, Fault.HCA_POWER, Fault.HCA_FLASH_RECOVERY} & DEVICE_DEAD
