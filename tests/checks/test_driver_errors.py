"""What the drivers log as an error in words that no check reads: when it counts, and of what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import judged

from dgxcheck.facts.missing import need
from dgxcheck.kernel_messages.driver_errors import driver_error
from probes.kernel_log import facts

HCA = "mlx5_core 0000:4b:00.0: "
UNKNOWN = "NVRM: GPU 0000:8f:00.0: frobnicator failed (0x24)"


def of_driver(*lines: str, folder: Path) -> list[Any]:
    """Findings of the check in a log of these lines, a second apart."""
    path = folder / "dmesg.txt"
    path.write_text("".join(f"[{at:5}.000000] {line}\n" for at, line in enumerate(lines, 100)), encoding="utf-8")
    return [each for each in judged(str(path))[1]["findings"] if each["id"] == "kernel.driver-errors"]


@pytest.mark.parametrize(("message", "due"), [
    (UNKNOWN, ("nvidia", "0000:8f:00.0")),
    ("NVRM: GPU6 kfrob_GH100: timed out", ("nvidia", "ffff0006:00:00.0")),
    ("nvidia-uvm: unable to frob the page tables", ("nvidia", "")),
    (f"{HCA}mlx5_frob:12:(pid 7): frob failed with error -5", ("mlx5_core", "0000:4b:00.0")),
    ("NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051) returned from x",
     ("nvidia", "")),
    ("nvidia: module verification failed: signature and/or required key missing - tainting kernel", None),
    ("NVRM nvAssertFailedNoLog: Assertion failed: 0 @ osapi.c:1688", None),  # open-gpu-kernel-modules issue 402
    (f"{HCA}mlx5_cmd_out_err:838:(pid 1): ACCESS_REG(0x805) op_mod(0x1) failed, status bad parameter(0x3)", None),
    ("nvidia 0000:06:00.0:   device [10de:2330] error status/mask=00001000/0000a000", None),
    ("NVRM: GPU1 kbifCacheVFInfo_GB100: Unable to read NV_PF0_INITIAL_AND_TOTAL_VFS", None),  # NVIDIA/nccl issue 2241
    ("nvidia-fs:warning: error retrieving numa node for device 0000:09:00.0", None),
    (f"{HCA}mlx5_query_mcia:312:(pid 4242): query_mcia_reg failed: status: 0x3", None),
    ("nvidia 0000:06:00.0: VF BAR 0 [mem size 0x1000 64bit pref]: failed to assign", None),
    (f"{HCA}wait_fw_init:211:(pid 8): Waiting for FW initialization, timeout abort in 100s (0x8)", None),
    ("nvidia 0000:06:00.0: Direct firmware load for nvidia/570.86.15/gsp_ga10x.bin failed with error -2", None),
    ("NVRM: rpcRmApiControl_GSP: GspRmControl failed: hClient=0x1; status=0x00000056", None),
    ("NVRM: failed to evaluate the ACPI method WMMX", None),
    ("NVRM: Xid (PCI:[4711]: segfault at 0 ip 0 sp 0 error 4 in libc.so[4000+1000]", None),  # a program's name
    ("NVRM: Xid (PCI:0000:06:00): 79, pid=1, GPU has failed", None),  # kernel.xid
    ("mlx5_core 0000:3b:3f.0 ib0: NETDEV WATCHDOG: CPU: 3: transmit queue 5 timed out 6 ms", None),  # no function
    ("nvme nvme0: I/O error", None),
    ("NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.86.15", None),
])  # fmt: skip
def test_which_lines_count(message: str, due: tuple[str, str] | None) -> None:
    assert driver_error(message) == due


def test_a_line_of_a_gpu_is_a_warning_about_it(tmp_path: Path) -> None:
    (found,) = of_driver(UNKNOWN, UNKNOWN, folder=tmp_path)
    assert (found["status"], found["subject"]["bdf"], found["measured"]) == ("warn", "0000:8f:00.0", 2)


@pytest.mark.parametrize("after", [
    "NVRM: Xid (PCI:0000:8f:00): 62, pid=1, name=x, 0000(0000)",
    "nvidia 0000:8f:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)",
    "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.86.15",
])  # fmt: skip
def test_what_another_check_reads_explains_it_and_a_load_ends_it(after: str, tmp_path: Path) -> None:
    found = of_driver(UNKNOWN, after, folder=tmp_path)
    assert "warn" not in {each["status"] for each in found}


@pytest.mark.parametrize(("apart_s", "due"), [(60, False), (61, True)])
def test_the_xid_of_another_gpu_explains_what_is_beside_it(apart_s: int, due: bool, tmp_path: Path) -> None:
    xid = "NVRM: Xid (PCI:0000:07:00): 62, pid=1, name=x, 0000(0000)"
    found = of_driver(UNKNOWN, *["usb 1-1: new device"] * (apart_s - 1), xid, folder=tmp_path)
    assert ("warn" in {each["status"] for each in found}) == due


def test_an_error_before_an_hca_was_taken_over_again_is_past() -> None:
    error, taken = f"{HCA}mlx5_frob: frob failed", f"{HCA}firmware version: 28.39.1002"
    log = need(facts([f"1.0;{error}", f"2.0;{taken}", f"3.0;{error}"], "/dev/kmsg"))
    assert [each.past for each in log.driver_errors] == [True, False]


FATAL = "NVRM: nvGpuOpsReportFatalError: uvm encountered global fatal error 0x60, requiring os reboot to recover."
OF_PROGRAM = "NVRM: Xid (PCI:0000:07:00): 31, pid=1, name=python3, MMU Fault: ENGINE GRAPHICS"


def test_a_gpu_that_fell_off_the_bus_explains_what_follows(tmp_path: Path) -> None:
    """Which of two it was that could not be started, and why the driver asks for a reboot."""
    lost = [f"NVRM: Xid (PCI:0000:{bus}:00): 79, pid=1, GPU has fallen off the bus." for bus in ("0f", "47")]
    path = tmp_path / "dmesg.txt"
    start = "NVRM: RmInitAdapter failed! (0x26:0xffff:1474)"
    for lines, due in (([*lost, FATAL, start], set()), ([start, FATAL, *lost], {"driver-reboot", "gpu-not-started"})):
        path.write_text("".join(f"[{at:5}.000000] {line}\n" for at, line in enumerate(lines, 100)), encoding="utf-8")
        causes = judged(str(path))[1]["causes"]
        assert {fault for cause in causes for fault in cause["faults"]} == {"gpu-lost", *due}


def test_a_program_s_xid_explains_nothing_and_a_reboot_is_asked_for(tmp_path: Path) -> None:
    found = of_driver(OF_PROGRAM, UNKNOWN, FATAL, folder=tmp_path)
    assert {each["status"]: each["fault"] for each in found} == {"warn": "driver-error", "fail": "driver-reboot"}


def test_a_fatal_error_of_confidential_computing_ends_the_work(tmp_path: Path) -> None:
    """NVIDIA/nvtrust issue 54; a program's Xid beside it is no reason to pass."""
    error = "NVRM: confComputeSetErrorState_KERNEL: ConfCompute: Fatal error hit!"
    (found,) = of_driver("NVRM: Xid (PCI:0000:8f:00): 62, pid=1, name=x, 0", error, folder=tmp_path)
    assert (found["status"], found["fault"]) == ("fail", "confidential-computing")


def test_a_pcie_error_of_another_device_explains_nothing(tmp_path: Path) -> None:
    error = "nvme 0000:41:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)"
    assert [each["status"] for each in of_driver(error, UNKNOWN, folder=tmp_path)] == ["warn"]


def test_an_xid_of_another_gpu_hours_ago_explains_nothing(tmp_path: Path) -> None:
    path = tmp_path / "dmesg.txt"
    path.write_text(f"[  100.000000] NVRM: Xid (PCI:0000:07:00): 62, pid=1, name=x, 0\n[ 9000.000000] {UNKNOWN}\n")
    (found,) = [each for each in judged(str(path))[1]["findings"] if each["id"] == "kernel.driver-errors"]
    assert found["status"] == "warn"


@given(st.text(st.characters(codec="utf-8"), max_size=400))
def test_any_text_names_a_driver_or_none(text: str) -> None:
    found = driver_error(f"NVRM: {text}")
    assert found is None or found[0] == "nvidia"
