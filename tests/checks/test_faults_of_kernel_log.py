"""The kernel log: the fault of each line, the part that an Xid blames, and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_checks_kernel import BOARD, MLX5, X, logged
from test_faults_of_hosts import BY_ID, GPU, SWITCH, bad_findings
from test_health_checks import box

from dgxcheck.checks.kernel_log.xid_fault import OF_RESPONSE
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.faults import DEVICE_DEAD, Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.xid.entry import REMEDIES


def test_the_xids_of_a_gpu_name_its_part(tmp_path: Path) -> None:
    for number, part in ((48, "memory"), (171, "memory"), (136, "NVLink"), (155, "NVLink"), (149, "NVLink"), (62, "")):
        (bad,) = bad_findings(box(logged(tmp_path, (100.0, f"{X}{number}, Fatal"))), "kernel.xid")
        assert bad.blames[0].key == ("gpu", GPU, part)
        assert [each.kind for each in bad.blames[1:]] == (["nvlink"] * 4 if part == "NVLink" else [])


def test_only_checks_of_the_kernel_log_have_it_as_witness() -> None:
    assert {check.id for check in CHECKS if check.witness == "log"} == {
        id_ for id_ in BY_ID if id_.startswith("kernel.")
    }


LOGGED = {
    f"{BOARD}RmInitAdapter failed! (0x26:0xffff:1290)": ("kernel.gpu-start", Fault.GPU_STARTED_LATE),
    "NVRM: GPU 0000:77:00.0: RmInitAdapter failed! (0x1:0x2:3)": ("kernel.gpu-start", Fault.GPU_NOT_STARTED),
    "NVRM: GPU 0000:77:00.0: GPU does not have the necessary power cables connected.":
        ("kernel.gpu-start", Fault.GPU_UNPOWERED),
    "NVRM: RmInitAdapter failed! (0x26:0xffff:1290)": ("kernel.gpu-start", Fault.GPU_NOT_STARTED),
    f"{BOARD}GPU has fallen off the bus.": ("kernel.off-bus", Fault.GPU_LOST),
    f"{X}62, x": ("kernel.xid", Fault.XID),
    f"nvidia {GPU}: PCIe Bus Error: severity=Uncorrected (Fatal), type=x": ("kernel.aer", Fault.AER_LOGGED),
    f"{MLX5}mlx5_load_one failed with error code -22": ("kernel.hca", Fault.HCA_NOT_STARTED),
    f"{MLX5}poll_health:174: device's health compromised - reached miss count.": ("kernel.hca", Fault.HCA_UNRESPONSIVE),
    f"{MLX5}wait_func:1084:(pid 81): ACCESS_REG(0x805) timeout. Will cause a leak of a command resource":
        ("kernel.hca", Fault.HCA_UNRESPONSIVE),
    f"{MLX5}temp_warn:198:(pid 0): High temperature on sensors with bit set 0x0 0x1":
        ("kernel.hca", Fault.HCA_OVERHEATING),
    f"{MLX5}mlx5_pcie_event:299:(pid 1): Detected insufficient power on the PCIe slot (27W).":
        ("kernel.hca", Fault.HCA_POWER),
    f"{MLX5}Port module event[error]: module 0, Cable error, High Temperature":
        ("kernel.port-module", Fault.PORT_MODULE),
    "EDAC MC1: 262 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x1":
        ("kernel.memory", Fault.DIMM_ERRORS),
    "mce: [Hardware Error]: CPU 20: Machine Check Exception: 5 Bank 7: be00000000800400":
        ("kernel.machine-check", Fault.MACHINE_CHECK),
    "CPU12: Package temperature above threshold, cpu clock throttled (total events = 812)":
        ("kernel.cpu-throttled", Fault.CPU_THROTTLED),
    "blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0": ("kernel.disk", Fault.DISK_ERRORS),
    "EXT4-fs error (device sda2): ext4_lookup:1785: inode #2: comm ls: bad": ("kernel.file-system", Fault.FILE_SYSTEM),
    "EXT4-fs (sda2): Remounting filesystem read-only": ("kernel.file-system", Fault.FILE_SYSTEM),
    "Aborting journal on device sda2-8.": ("kernel.file-system", Fault.FILE_SYSTEM),
    "XFS (dm-0): Metadata corruption detected at xfs_dir3_block_read_verify+0x5e/0x110 [xfs], xfs_dir3_block":
        ("kernel.file-system", Fault.FILE_SYSTEM),
    "BTRFS error (device sda1 state EA): parent transid verify failed": ("kernel.file-system", Fault.FILE_SYSTEM),
    "pcieport 0000:00:02.0: DPC: containment event, status:0x1f01 source:0x0000": ("kernel.aer", Fault.AER_LOGGED),
    "pcieport 0000:00:02.0: pciehp: Slot(5): Link Down": ("kernel.hot-plug", Fault.UNPLUGGED),
}  # fmt: skip


@pytest.mark.parametrize("text", LOGGED)
def test_faults_of_the_kernel_log(text: str, tmp_path: Path) -> None:
    check, fault = LOGGED[text]
    (bad,) = bad_findings(box(logged(tmp_path, (100.0, text))), check)
    assert bad.judgement.fault is fault
    assert bad.witness == "log"


@pytest.mark.parametrize(
    "text",
    [
        "EXT4-fs (sda2): mounted filesystem with ordered data mode. Opts: errors=remount-ro",
        "EXT4-fs error (device loop3): ext4_lookup:1785: inode #2: comm ls: bad",
        "XFS (sdb1): Ending clean mount",
        f"{MLX5}wait_func_handle_exec_timeout:1079:(pid 81): cmd[0]: ACCESS_REG(0x805) recovered after timeout",
    ],
)
def test_what_is_no_fault_of_the_host(text: str, tmp_path: Path) -> None:
    machine = box(logged(tmp_path, (100.0, text)))
    assert not [bad for check in ("kernel.file-system", "kernel.hca") for bad in bad_findings(machine, check)]


def application_xids(gpu: str, *names: str) -> list[tuple[float, str]]:
    return [
        (100.0 + n, f"NVRM: Xid (PCI:{gpu[:-2]}): 13, pid={4000 + n}, name={name}, x") for n, name in enumerate(names)
    ]


@pytest.mark.parametrize(
    ("here", "there", "fault"),
    [
        (("a", "b", "c"), (), Fault.XID_PROGRAMS),
        (("a", "a", "a"), (), Fault.XID_APPLICATION),
        (("a", "b", "c"), ("a",), Fault.XID_APPLICATION),
    ],
    ids=["of several programs", "of one program", "of programs that fail elsewhere too"],
)
def test_programs_that_fail_on_one_gpu_alone(
    here: tuple[str, ...], there: tuple[str, ...], fault: FaultKind, tmp_path: Path
) -> None:
    lines = [*application_xids(GPU, *here), *application_xids("0000:0b:00.0", *there)]
    (bad,) = bad_findings(box(logged(tmp_path, *lines)), "kernel.xid")
    assert bad.judgement.fault is fault


@pytest.mark.parametrize(
    ("numbers", "fault"),
    [((48, 94), Fault.XID_CONTAINED), ((171, 94), Fault.XID_CONTAINED), ((48,), Fault.XID), ((48, 94, 95), Fault.XID)],
)
def test_a_memory_error_that_is_contained_waits_for_a_drain(
    numbers: tuple[int, ...], fault: FaultKind, tmp_path: Path
) -> None:
    lines = [(100.0 + n, f"NVRM: Xid (PCI:0000:47:00): {number}, x") for n, number in enumerate(numbers)]
    (bad,) = bad_findings(box(logged(tmp_path, *lines, base="dgx-a100")), "kernel.xid")
    assert bad.judgement.fault is fault


@pytest.mark.parametrize(
    ("text", "fault", "words"),
    [
        ("20034, Fatal, Link 28 LTSSM Fault Up", Fault.NVSWITCH, "reset all GPUs"),
        ("12028, Non-fatal, x", Fault.NVSWITCH_WATCHED, "comes back"),
        ("19084, Non-fatal, x", Fault.NVSWITCH_WATCHED, "comes back"),
        ("22003, Fatal, x", Fault.NVSWITCH_FATAL, "reboot it"),
        ("10004, Non-fatal, x", Fault.NVSWITCH_NOTICE, "cooling"),
        ("20012, Non-fatal, x", Fault.NVSWITCH_NOTICE, "seated"),
        ("99999, Non-fatal, x", Fault.NVSWITCH_WATCHED, "comes back"),
        ("99999, Fatal, x", Fault.NVSWITCH, "reset all GPUs"),
    ],
)
def test_an_sxid_is_the_nvswitch_s(text: str, fault: FaultKind, words: str, tmp_path: Path) -> None:
    spec = logged(tmp_path, (100.0, f"nvidia-nvswitch0: SXid (PCI:{SWITCH}): {text}"), base="dgx-a100")
    (bad,) = bad_findings(box(spec), "kernel.xid")
    assert (bad.judgement.fault, [each.key for each in bad.blames]) == (fault, [("nvswitch", SWITCH, "")])
    assert words in bad.remedy


def test_of_several_sxids_the_worst_is_reported(tmp_path: Path) -> None:
    said = ("11012, Non-fatal, x", "20012, Non-fatal, x", "22003, Fatal, x", "20034, Fatal, x")
    lines = [(100.0 + n, f"nvidia-nvswitch0: SXid (PCI:{SWITCH}): {each}") for n, each in enumerate(said)]
    (bad,) = bad_findings(box(logged(tmp_path, *lines, base="dgx-a100")), "kernel.xid")
    assert bad.judgement.fault is Fault.NVSWITCH_FATAL
    assert "SXid 20034 (LTSSM fault up), 22003 (Minion halt)" in bad.judgement.message


def test_of_two_troubles_the_worse_is_the_fault(tmp_path: Path) -> None:
    hot = f"{MLX5}temp_warn:198:(pid 0): High temperature on sensors with bit set 0x0 0x1"
    spec = logged(tmp_path, (100.0, hot), (101.0, f"{MLX5}poll_health:174: device's health compromised - x"))
    (bad,) = bad_findings(box(spec), "kernel.hca")
    assert bad.judgement.fault is Fault.HCA_UNRESPONSIVE
    assert bad.judgement.message.startswith("its firmware stopped responding; its temperature sensors reached")


@pytest.mark.parametrize(
    ("number", "words"),
    [(48, "dcgmi diag"), (62, "before Ampere together"), (63, "no action now"), (54, "power cables"), (74, "nvlink"),
     (94, "restart the program"), (154, "GPU Recovery Action"), (999, "call the vendor")],
)  # fmt: skip
def test_the_remedy_is_that_of_the_xid(number: int, words: str, tmp_path: Path) -> None:
    (bad,) = bad_findings(box(logged(tmp_path, (100.0, f"{X}{number}, x"))), "kernel.xid")
    assert words in bad.remedy


def test_of_several_xids_the_most_drastic_remedy_is_given(tmp_path: Path) -> None:
    (bad,) = bad_findings(box(logged(tmp_path, (100.0, f"{X}62, x"), (101.0, f"{X}48, x"))), "kernel.xid")
    assert bad.remedy == REMEDIES["memory"]


GPU_ITSELF, MEMORY = ("gpu", GPU, ""), ("gpu", GPU, "memory")
TO = "154, GPU recovery action changed from 0x0 (None) to"
RESPONSES = {
    "62, x": (Fault.XID, GPU_ITSELF),
    "48, x": (Fault.XID, MEMORY),
    "54, x": (Fault.XID, ("gpu", GPU, "power supply")),
    "57, x": (Fault.XID, MEMORY),
    "32, x": (Fault.XID_PCIE, ("link", GPU, "")),
    "64, x": (Fault.RETIREMENT_FAILED, MEMORY),
    "63, x": (Fault.XID_NOTICE, MEMORY),
    "94, x": (Fault.XID_CONTAINED, MEMORY),
    "78, x": (Fault.XID_SOFTWARE, GPU_ITSELF),
    "151, x": (Fault.XID_SOFTWARE, GPU_ITSELF),
    "999, x": (Fault.XID_NOTICE, GPU_ITSELF),
    f"{TO} 0x1 (GPU Reset Required)": (Fault.RESET_REQUIRED, GPU_ITSELF),
    f"{TO} 0x2 (Node Reboot Required)": (Fault.REBOOT_REQUIRED, GPU_ITSELF),
    f"{TO} 0x3 (Drain P2P)": (Fault.DRAIN_REQUIRED, GPU_ITSELF),
    f"{TO} 0x4 (Drain and Reset)": (Fault.RESET_REQUIRED, GPU_ITSELF),
    f"{TO} 0x9 (something new)": (Fault.RECOVERY_REQUIRED, GPU_ITSELF),
}


@pytest.mark.parametrize("text", RESPONSES)
def test_the_fault_and_the_part_follow_from_what_nvidia_asks_for(text: str, tmp_path: Path) -> None:
    fault, key = RESPONSES[text]
    (bad,) = bad_findings(box(logged(tmp_path, (100.0, f"{X}{text}"))), "kernel.xid")
    assert (bad.judgement.fault, bad.blames[0].key) == (fault, key)


def test_every_response_that_asks_for_no_reset_has_a_fault_of_its_own() -> None:
    assert {*REMEDIES} - {*OF_RESPONSE} == {"power", "memory", "nvlink", "reset", "none"}


def test_a_device_that_does_not_start_or_answer_is_dead() -> None:
    assert {Fault.GPU_UNPOWERED, Fault.HCA_UNRESPONSIVE, Fault.HCA_NOT_STARTED} < DEVICE_DEAD
    assert not {Fault.GPU_STARTED_LATE, Fault.HCA_OVERHEATING, Fault.HCA_POWER, Fault.HCA_FLASH_RECOVERY} & DEVICE_DEAD
