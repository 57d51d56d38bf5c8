"""The kernel log: the fault of each line, the part that an Xid blames, and the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import of_text
from kernel_lines import GPU, JUDGED, NOWHERE, PORT, UNJUDGED, Lines
from test_checks_kernel import MLX5, X, logged
from test_faults_of_hosts import SWITCH, bad_findings
from test_health_checks import box

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.diagnosis.escalation import escalation
from dgxcheck.facts.faults import DEVICE_DEAD, MODULES_REFUSED, Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.host import Unit
from dgxcheck.facts.kernel_log import _EVENTS
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import replace
from dgxcheck.source.kernel_log.kmsg import relevant_lines
from dgxcheck.source.kernel_log.saved import times
from dgxcheck.xid import table
from probes.kernel_log import facts


def test_the_xids_of_a_gpu_name_its_part(tmp_path: Path) -> None:
    for number, part in ((48, "memory"), (171, "memory"), (136, "NVLink"), (155, "NVLink"), (149, "NVLink"), (62, "")):
        (bad,) = bad_findings(box(logged(tmp_path, (100.0, f"{X}{number}, Fatal"))), "kernel.xid")
        assert bad.blames[0].key == ("gpu", GPU, part)
        assert [each.kind for each in bad.blames[1:]] == (["nvlink"] * 4 if part == "NVLink" else [])


def with_log(machine: Box, lines: Lines) -> Box:
    """The box with this kernel log, read from what dmesg prints."""
    log = times("".join(f"[{100 + number / 20:12.6f}] {text}\n" for number, text in enumerate(lines)))
    assert log is not None
    return replace(machine, snapshot=replace(machine.snapshot, kernel_log=facts(relevant_lines(log), "/dev/kmsg")))


HUNG = "INFO: task rsync:471 blocked for more than 120 seconds."
SERR = "NMI: PCI system error (SERR) for reason a1 on CPU 0."
OF_DISK = "blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0"
KILLED = "Out of memory: Killed process 4711 (python3) total-vm:1kB"
UNCORRECTED = "mce: [Hardware Error]: CPU 0: Machine Check Exception: 5 Bank 6: be00000000000e0b"
AER = f"pcieport {PORT}: PCIe Bus Error: severity=Uncorrectable ({{}}), type=x"
OF_MEMORY = "mce: Uncorrected hardware memory error in user-access at 3f00"
OF_RAID = "megaraid_sas 0000:04:00.0: Found FW in FAULT state, will reset adapter scsi0."


@pytest.mark.parametrize(("check", "line", "other", "within_s", "part"), [
    ("kernel.hung-task", HUNG, OF_DISK, 300, "sda"), ("kernel.hung-task", HUNG, KILLED, 300, "free memory"),
    ("kernel.hung-task", HUNG, UNCORRECTED, 300, "PCIe links"), ("kernel.machine-check", SERR, OF_MEMORY, 10, "memory"),
    ("kernel.disk", OF_DISK, OF_RAID, 60, "RAID controller 0000:04:00.0"),
    ("kernel.machine-check", SERR, AER.format("Fatal"), 10, f"{PORT} - {GPU}"),
    ("kernel.machine-check", SERR, AER.format("Non-Fatal"), None, f"{PORT} - {GPU}"),
    ("kernel.file-system", "nfs: server 10.1.2.3 not responding, still trying", "VFS: file-max limit 65536 reached",
     None, "open files"),
    ("kernel.hung-task", HUNG, "Memory cgroup " + KILLED[0].lower() + KILLED[1:], None, "free memory"),
])  # fmt: skip
def test_what_was_logged_at_another_time_is_not_to_blame(
    check: str, line: str, other: str, within_s: int | None, part: str
) -> None:
    for after_s in (within_s or 0, (within_s or 0) + 1):
        log = times(f"[  100.000000] {line}\n[{100 + after_s:5d}.000000] {other}\n")
        assert log is not None
        machine = box("dgx-1-v100")
        machine = replace(machine, snapshot=replace(machine.snapshot, kernel_log=facts(relevant_lines(log), "x")))
        (bad,) = [each for each in bad_findings(machine, check) if each.judgement.fault is not Fault.RAID_ALARM]
        assert (part in {each.part or each.name for each in bad.blames}) is (after_s == within_s), after_s


def test_of_two_raid_controllers_with_an_alarm_none_is_blamed_for_a_disk() -> None:
    for lines, due in (((OF_DISK, OF_RAID), True), ((OF_DISK, OF_RAID, OF_RAID.replace("04:", "05:")), False)):
        (bad, *_) = [each for each in bad_findings(with_log(box("dgx-1-v100"), lines), "kernel.disk")
                     if each.judgement.fault is not Fault.RAID_ALARM]  # fmt: skip
        assert any(each.part.startswith("RAID") for each in bad.blames) is due


def test_what_falls_off_the_bus_is_a_device_of_nvidia() -> None:
    for bdf, due in (("0000:c7:00.0", 1), ("0000:e1:00.0", 0)):  # an NVSwitch, an HCA
        machine = with_log(box("dgx-a100"), (f"NVRM: GPU {bdf}: GPU has fallen off the bus.",))
        assert len(bad_findings(machine, "kernel.off-bus")) == due


def test_a_gpu_that_is_not_listed_is_not_the_one_that_another_line_names() -> None:
    machine = box("dgx-1-v100")
    gpus = tuple(replace(gpu, index=None) if gpu.bdf == GPU else gpu for gpu in machine.gpus)
    unlisted = replace(machine, gpus=gpus, topology=replace(machine.topology, devices=gpus))
    said = "RmInitAdapter failed! (0x26:0xffff:1290)"
    for line, due in ((f"NVRM: GPU {NOWHERE}: {said}", NOWHERE), (f"NVRM: {said}", GPU)):
        assert [bad.subject.bdf for bad in bad_findings(with_log(unlisted, (line,)), "kernel.gpu-start")] == [due]


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


def test_a_crash_is_beside_an_xid_where_the_lines_have_times() -> None:
    crash = "python3[1]: segfault at 0 ip 0 sp 0 error 4 in libcuda.so.550.127.05[0+1]"
    machine = with_log(box("dgx-1-v100"), (crash, f"{X}31, pid=1, name=python3, MMU Fault"))
    for timed in (True, False):
        log = replace(machine.log, timed=timed)
        of = replace(machine, snapshot=replace(machine.snapshot, kernel_log=log))
        assert bool(bad_findings(of, "kernel.program-crash")) is timed


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


def of_an_earlier_load(machine: Box, *kinds: str) -> Box:
    """The same with these kinds of events, all without any, from before the driver was last loaded."""
    log = machine.log
    past = {name: tuple(replace(event, past=True) for event in getattr(log, name)) for name in kinds or _EVENTS}
    return replace(machine, snapshot=replace(machine.snapshot, kernel_log=replace(log, **past)))


OF_DRIVERS = ("kernel.off-bus", "kernel.gpu-start", "kernel.xid", "kernel.driver-errors", "kernel.hca",
              "kernel.port-module", "kernel.hot-plug", "kernel.nvlink")  # fmt: skip


def test_what_an_earlier_load_of_a_driver_logged_is_over() -> None:
    machine = box("dgx-1-v100")
    of_drivers = [(lines, check) for lines, check, _ in JUDGED if check in OF_DRIVERS]
    assert len(of_drivers) > 100
    for lines, check in of_drivers:
        assert not bad_findings(of_an_earlier_load(with_log(machine, lines)), check), lines


def test_what_an_earlier_module_refused_is_over() -> None:
    (match,) = [each for each in CHECKS if each.id == "driver.version-match"]
    refused = with_log(box("dgx-1-v100"), ("NVRM: API mismatch: the client has the version 535.1, but",))
    for machine, status in ((refused, "warn"), (of_an_earlier_load(refused, "refused"), "pass")):
        assert {each.status.value for each in run(machine, [match])} == {status}


def test_a_gpu_that_fell_off_the_bus_before_the_last_load_is_not_lost_now() -> None:
    lines = (f"NVRM: GPU {GPU}: GPU has fallen off the bus.", f"NVRM: GPU {GPU}: RmInitAdapter failed! (0x26:0x4:1290)")
    gpus = tuple(replace(gpu, index=None) if gpu.bdf == GPU else gpu for gpu in box("dgx-1-v100").gpus)
    machine = replace(box("dgx-1-v100"), gpus=gpus)
    machine = with_log(replace(machine, topology=replace(machine.topology, devices=gpus)), lines)
    for of, gone in ((machine, True), (of_an_earlier_load(machine, "off_bus"), False)):
        (bad,) = bad_findings(of, "kernel.gpu-start")
        assert ("could not start it: it does not respond" in bad.judgement.message) is gone


def test_modules_that_the_kernel_refused_are_judged_one_by_one() -> None:
    lines = ("nvidia_uvm: Unknown symbol x (err -2)", "gdrdrv: disagrees about version of symbol nvidia_p2p_get_pages")
    found = bad_findings(with_log(box("dgx-1-v100"), lines), "kernel.gpu-start")
    assert {(bad.subject.part, bad.judgement.measured) for bad in found} == {("gdrdrv", 1), ("nvidia_uvm", 1)}


def test_the_reason_of_a_refused_gpu_leads_to_its_own_remedy() -> None:
    machine = box("dgx-1-v100")
    remedies = {
        bad.judgement.remedy: lines
        for lines, check, fault in JUDGED if fault in (Fault.GPU_REFUSED, *MODULES_REFUSED)
        for bad in bad_findings(with_log(machine, lines), check)
    }  # fmt: skip
    assert sorted(" ".join(remedy.split()[:3]) for remedy in remedies) == [
        "build the modules", "find that driver", "in the firmware", "install a release", "install the GSP",
        "install the driver's", "install the open", "install the proprietary", "load the modules",
    ]  # fmt: skip
    assert all("reset" not in remedy and "replace" not in remedy for remedy in remedies)


@pytest.mark.parametrize("text", [lines[0] for lines in UNJUDGED if "oad" in lines[0] and "NVRM" not in lines[0]])
def test_a_refused_signature_counts_where_the_driver_is_not_loaded(text: str) -> None:
    machine = box("dgx-1-v100")
    assert not bad_findings(with_log(machine, (text,)), "kernel.gpu-start")
    without = replace(machine, snapshot=replace(machine.snapshot, gpu=Missing(Gap.ABSENT, "nvmlInit", code=9)))
    (bad,) = bad_findings(with_log(without, (text,)), "kernel.gpu-start")
    assert bad.judgement.fault is Fault.MODULE_UNSIGNED
    assert "signature" in bad.judgement.message


@pytest.mark.parametrize("text", [lines[0] for lines in UNJUDGED if "BAR 1" in lines[0] and "size" in lines[0]])
def test_a_bar_without_a_place_counts_for_a_gpu_that_nvml_does_not_list(text: str) -> None:
    machine = box("dgx-1-v100")
    here = text.replace(NOWHERE, GPU)
    assert not bad_findings(with_log(machine, (here,)), "kernel.gpu-start")
    gpus = tuple(replace(gpu, index=None) if gpu.bdf == GPU else gpu for gpu in machine.gpus)
    unlisted = replace(machine, gpus=gpus, topology=replace(machine.topology, devices=gpus))
    (bad,) = bad_findings(with_log(unlisted, (here,)), "kernel.gpu-start")
    assert bad.judgement.fault is Fault.BAR1_SMALL


def test_a_device_that_was_lent_to_a_guest_is_a_gpu_only_where_something_says_so() -> None:
    machine = box("dgx-1-v100")
    (gpu, *_) = machine.gpus
    said = "not ready 65535ms after FLR; giving up"
    (bad,) = bad_findings(with_log(machine, (f"vfio-pci {NOWHERE}: {said}",)), "kernel.hot-plug")
    assert (bad.blames[0].kind, bad.blames[0].part, bad.blames[0].bdf) == ("slot", "device", NOWHERE)
    own = with_log(machine, (f"vfio-pci {gpu.bdf}: {said}",))
    assert [bad.blames[0].kind for bad in bad_findings(own, "kernel.off-bus")] == ["gpu"]
    assert not bad_findings(own, "kernel.hot-plug")
    beside = (f"NVRM: GPU {NOWHERE}: GPU has fallen off the bus.", f"snd_hda_intel {NOWHERE[:-1]}1: {said}")
    assert not bad_findings(with_log(machine, beside), "kernel.hot-plug")


def test_a_bar_without_a_place_counts_where_the_log_alone_knows_the_gpu() -> None:
    """https://github.com/HeyMeco/Rockchip-pcie-devices/issues/2"""
    machine = box("dgx-1-v100")
    found = f"pci {NOWHERE}: [10de:2204] type 00 class 0x030000 PCIe Legacy Endpoint"
    refused = f"pci {NOWHERE}: BAR 1 [mem size 0x10000000 64bit pref]: can't assign; no space"
    (bad,) = bad_findings(with_log(machine, (found, refused)), "kernel.gpu-start")
    assert (bad.judgement.fault, bad.blames[0].kind, bad.blames[0].part) == (Fault.BAR1_SMALL, "gpu", "BAR1")
    assert not bad_findings(with_log(machine, (found.replace("10de", "1a03"), refused)), "kernel.gpu-start")
    for given in ("BAR 1 [mem 0x3800000000-0x380fffffff 64bit pref]: assigned", "BAR 1: assigned [mem 0x38000000]"):
        lines = (found, refused, f"pci {NOWHERE}: {given}")
        assert not bad_findings(with_log(machine, lines), "kernel.gpu-start")


@pytest.mark.parametrize(("size", "due"), [
    ("0x2000000000 64bit pref", ["host"]), ("0x200000000 64bit pref", ["host"]), ("0x10000000 64bit pref", []),
    ("0x80000000", []),
])  # fmt: skip
def test_a_large_bar_without_a_place_counts_where_nothing_but_the_log_is_there(
    size: str, due: list[str], tmp_path: Path
) -> None:
    """Others than GPUs have none of 8 GiB; which device it is nothing says."""
    text = f"[    0.911123] pci {NOWHERE}: BAR 1 [mem size {size}]: can't assign; no space\n"
    _, found = of_text(text, tmp_path)
    assert [cause["component"]["kind"] for cause in found["causes"]] == due
    named = f"[    0.811123] pci {NOWHERE}: [10de:2330] type 00 class 0x030200\n"
    _, found = of_text(named + text, tmp_path)
    assert [cause["component"]["kind"] for cause in found["causes"]] == ["gpu"]


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


@pytest.mark.parametrize(("said", "fault"), [
    (f"nvidia: probe of {NOWHERE} failed with error -1", Fault.BAR1_SMALL),
    (f"NVRM: GPU {NOWHERE}: RmInitAdapter failed! (0x22:0x56:884)", Fault.GPU_UNRECOGNISED),
])  # fmt: skip
def test_a_start_that_failed_without_a_reason_failed_for_want_of_a_bar(said: str, fault: FaultKind) -> None:
    """Also of a device that the log names as a GPU only so."""
    refused = f"pci {NOWHERE}: BAR 1 [mem size 0x10000000 64bit pref]: failed to assign"
    (bad,) = bad_findings(with_log(box("dgx-1-v100"), (refused, said)), "kernel.gpu-start")
    assert bad.judgement.fault is fault
    (bad,) = bad_findings(with_log(box("dgx-1-v100"), (said,)), "kernel.gpu-start")
    assert bad.judgement.fault is not Fault.BAR1_SMALL


def test_a_gpu_that_another_driver_was_given_is_no_fault() -> None:
    machine = box("dgx-1-v100")
    lines = ("NVRM: The NVIDIA probe routine was not called for 1 device(s).",)
    (gpu, *others) = machine.gpus
    function = gpu.function
    assert function is not None
    given = replace(gpu, index=None, function=replace(function, driver="vfio-pci"))
    gpus = (given, *others)
    made = replace(machine, gpus=gpus, topology=replace(machine.topology, devices=gpus))
    assert not bad_findings(with_log(made, lines), "kernel.gpu-start")
    taken = replace(given, function=replace(function, driver="nouveau"))  # driver.bound reports it
    made = replace(machine, gpus=(taken, *others), topology=replace(machine.topology, devices=(taken, *others)))
    assert not bad_findings(with_log(made, lines), "kernel.gpu-start")


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


@pytest.mark.parametrize(("apart_s", "due"), [(3600.0, [Fault.XID_PROGRAMS]), (50_000.0, [])])
def test_programs_count_that_fail_within_a_day(apart_s: float, due: list[FaultKind], tmp_path: Path) -> None:
    here = [(apart_s * n, line) for n, (_, line) in enumerate(application_xids(GPU, *"abcde"), 1)]
    found = bad_findings(box(logged(tmp_path, *here)), "kernel.xid")
    assert [bad.judgement.fault for bad in found] == due


@pytest.mark.parametrize(
    ("numbers", "fault"),
    [((48, 94), Fault.XID_CONTAINED), ((171, 94), Fault.XID_CONTAINED), ((48,), Fault.XID), ((48, 94, 95), Fault.XID),
     ((48, *[31] * 9, 94), Fault.XID_CONTAINED), ((48, *[31] * 10, 94), Fault.XID)],
)
def test_a_memory_error_that_is_contained_waits_for_a_drain(
    numbers: tuple[int, ...], fault: FaultKind, tmp_path: Path
) -> None:
    lines = [(100.0 + n, f"NVRM: Xid (PCI:0000:47:00): {number}, x") for n, number in enumerate(numbers)]
    (bad,) = bad_findings(box(logged(tmp_path, *lines, base="dgx-a100")), "kernel.xid")
    assert bad.judgement.fault is fault


@pytest.mark.parametrize(("apart_s", "due"), [(10.0, False), (10.5, True)])
def test_an_nvlink_error_of_a_gpu_that_fails_is_no_other(apart_s: float, due: bool, tmp_path: Path) -> None:
    """NVLinks time out within seconds of the failure of their GPU."""
    lines = [(at, f"NVRM: Xid (PCI:0000:47:00): {number}, x") for at, number in ((100.0, 62), (100.0 + apart_s, 74))]
    (bad,) = bad_findings(box(logged(tmp_path, *lines, base="dgx-a100")), "kernel.xid")
    assert bool([event for event in bad.judgement.events if event.number == 74]) == due


@pytest.mark.parametrize(
    ("text", "fault", "words"),
    [
        ("20034, Fatal, Link 28 LTSSM Fault Up", Fault.NVSWITCH, "reset all GPUs"),
        ("12028, Non-fatal, x", Fault.NVSWITCH_NOTICE, "Xid 45"),
        ("12028, Fatal, x", Fault.NVSWITCH, "reset all GPUs"),
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


def test_sxids_of_a_kind_are_counted_by_what_they_say_first(tmp_path: Path) -> None:
    """The driver writes three lines for one: how grave it is, its severity, its data."""
    said = ("Fatal, Link 30 LTSSM Fault Up", "Severity 1 Engine instance 30 Sub-engine instance 00", "Data {0x0}")
    lines = [(100.0 + n, f"nvidia-nvswitch0: SXid (PCI:{SWITCH}): 20034, {each}") for n, each in enumerate(said * 2)]
    (bad,) = bad_findings(box(logged(tmp_path, *lines, base="dgx-a100")), "kernel.xid")
    assert "SXid 20034 (LTSSM fault up) 2 times at port 30" in bad.judgement.message
    (once,) = bad_findings(box(logged(tmp_path, *lines[:3], base="dgx-a100")), "kernel.xid")
    assert "(LTSSM fault up) at port 30" in once.judgement.message


def test_of_two_troubles_the_worse_is_the_fault(tmp_path: Path) -> None:
    hot = f"{MLX5}temp_warn:198:(pid 0): High temperature on sensors with bit set 0x0 0x1"
    spec = logged(tmp_path, (100.0, hot), (101.0, f"{MLX5}poll_health:174: device's health compromised - x"))
    (bad,) = bad_findings(box(spec), "kernel.hca")
    assert bad.judgement.fault is Fault.HCA_UNRESPONSIVE
    assert bad.judgement.message.startswith("firmware stopped responding; its temperature sensors reached")


@pytest.mark.parametrize(
    ("number", "words"),
    [(48, "dcgmi diag"), (62, "reset the GPU"), (63, "no action now"), (54, "power cables"), (74, "nvlink"),
     (94, "restart the program"), (154, "GPU Recovery Action"), (999, "call the vendor")],
)  # fmt: skip
def test_the_remedy_is_that_of_the_xid(number: int, words: str, tmp_path: Path) -> None:
    (bad,) = bad_findings(box(logged(tmp_path, (100.0, f"{X}{number}, x"))), "kernel.xid")
    assert words in bad.remedy


def test_of_several_xids_the_most_drastic_remedy_is_given(tmp_path: Path) -> None:
    (bad,) = bad_findings(box(logged(tmp_path, (100.0, f"{X}62, x"), (101.0, f"{X}48, x"))), "kernel.xid")
    assert bad.remedy == table.REMEDIES["memory"]


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
    f"{TO} 0x4 (Drain and Reset)": (Fault.DRAIN_AND_RESET, GPU_ITSELF),
    f"{TO} 0x9 (something new)": (Fault.RECOVERY_REQUIRED, GPU_ITSELF),
}


@pytest.mark.parametrize(("asked", "words"), [
    ("0x2 (Node Reboot Required)", "node reboot required"), ("0x4 (Drain and Reset)", "drain and reset"),
    ("0x9 (something new)", "GPU recovery action changed"),
])  # fmt: skip
def test_a_message_says_what_the_driver_asks_for(asked: str, words: str, tmp_path: Path) -> None:
    (bad,) = bad_findings(box(logged(tmp_path, (100.0, f"{X}{TO} {asked}"))), "kernel.xid")
    assert bad.judgement.message.startswith(f"Xid 154 ({words})")


@pytest.mark.parametrize("text", RESPONSES)
def test_the_fault_and_the_part_follow_from_what_nvidia_asks_for(text: str, tmp_path: Path) -> None:
    fault, key = RESPONSES[text]
    (bad,) = bad_findings(box(logged(tmp_path, (100.0, f"{X}{text}"))), "kernel.xid")
    assert (bad.judgement.fault, bad.blames[0].key) == (fault, key)


def test_every_response_that_asks_for_no_reset_has_a_fault_of_its_own() -> None:
    faults = {response: (row["gpu"], row["nvswitch"]) for response, row in table.RESPONSES.items()}
    resets = {response for response, those in faults.items() if those == ("xid", "nvswitch-watched")}
    assert resets == {"power", "memory", "nvlink", "reset", "none"}


def test_a_device_that_does_not_start_or_answer_is_dead() -> None:
    assert {Fault.GPU_UNPOWERED, Fault.HCA_UNRESPONSIVE, Fault.HCA_NOT_STARTED} < DEVICE_DEAD
    assert not {Fault.GPU_STARTED_LATE, Fault.HCA_OVERHEATING, Fault.HCA_POWER, Fault.HCA_FLASH_RECOVERY} & DEVICE_DEAD


def test_the_log_has_the_version_of_the_module_that_refused(tmp_path: Path) -> None:
    text = """Failed to initialize NVML: Driver/library version mismatch
[    1.000000] NVRM: API mismatch: the client has the version 535.161.07, but
[    1.000000] NVRM: this kernel module has the version 535.154.05.  Please
"""
    (found,) = [each for each in of_text(text, tmp_path)[1]["findings"] if each["id"] == "driver.version-match"]
    assert found["message"].endswith("loaded kernel module, version 535.154.05")
