"""Memory errors, machine checks, disks and slots of the kernel log: limits, who is to blame, what is no fault."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from judging import judged
from test_checks_kernel import logged
from test_health_checks import box

from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.host.disks import lost_members
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.faults import Fault

HE = "mce: [Hardware Error]: "
DAY = 86400.0
Line = tuple[float, str]


def edac(seconds: float, count: int = 1, kind: str = "CE", controller: int = 1) -> Line:
    place = "CPU_SrcID#0_Ha#1_Chan#0_DIMM#0"
    return seconds, f"EDAC MC{controller}: {count} {kind} memory read error on {place} (channel:0 slot:0 page:0x1"


def findings(tmp_path: Path, check: str, *lines: Line, base: str = "dgx-1-v100") -> list[Finding]:
    (wanted,) = [each for each in CHECKS if each.id == check]
    return [*run(box(logged(tmp_path, *lines, base=base)), [wanted])]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], ("", Status.PASS)),
        ([edac(100.0, 10)], ("mc1", Status.PASS)),
        ([edac(100.0, 11)], ("mc1", Status.WARN)),
        ([edac(100.0, 6), edac(200.0 + DAY, 6)], ("mc1", Status.PASS)),
        ([edac(100.0, 6), edac(99.0 + DAY, 6)], ("mc1", Status.WARN)),
        ([edac(100.0, 1, "UE")], ("mc1", Status.FAIL)),
        ([(100.0, f"{HE}CPU 0: Machine Check: 0 Bank 7: 8c00004000010091")], ("CPU 0 bank 7", Status.PASS)),
        ([(100.0, f"{HE}CPU 0: Machine Check Exception: 5 Bank 7: bc00004000010091")], ("CPU 0 bank 7", Status.FAIL)),
        ([(5.0, f"{HE}CPU 0: Machine Check: 0 Bank 7: bc00004000010091")], ("CPU 0 bank 7", Status.WARN)),
    ],
)
def test_memory_errors(lines: list[Line], expected: tuple[str, Status], tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "kernel.memory", *lines)
    assert (found.subject.part, found.status) == expected


def test_a_dimm_by_counters_and_by_log_is_one_component(tmp_path: Path) -> None:
    """``mc1`` of EDAC in sysfs and ``EDAC MC1`` of the log, which names the DIMM; then the memory of its socket."""
    (by_log,) = findings(tmp_path, "kernel.memory", edac(100.0, 99))
    assert [each.key[2] for each in by_log.blames] == ["memory/CPU_SrcID#0_Ha#1_Chan#0_DIMM#0", "memory/socket 0"]
    both = Path(logged(tmp_path, edac(100.0, 99)))
    facts = {"text /sys/devices/system/edac/mc/mc1/ce_count": "90000\n"}
    both.write_text(json.dumps(json.loads(both.read_text()) | {"facts": facts}))
    (cause,) = judged(str(both))[1]["causes"]
    assert cause["id"] == "/".join(by_log.blames[0].key)


def test_each_controller_is_judged_by_itself(tmp_path: Path) -> None:
    found = findings(tmp_path, "kernel.memory", edac(100.0, 6), edac(101.0, 6, controller=2))
    assert [(each.subject.part, each.status) for each in found] == [("mc1", Status.PASS), ("mc2", Status.PASS)]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([(100.0, f"{HE}CPU 20: Machine Check Exception: 5 Bank 7: be00000000800400")], Status.FAIL),
        ([(100.0, f"{HE}CPU 20: Machine Check: 0 Bank 7: 8e00000000800400")], Status.PASS),
        ([(100.0 * n, f"{HE}Machine check events logged") for n in range(1, 12)], Status.WARN),
        ([(0.06, f"{HE}CPU 0: Machine Check: 0 Bank 4: a600000000020408")], Status.WARN),
    ],
    ids=["uncorrected", "corrected once", "eleven a day", "left over from the last boot"],
)
def test_machine_checks(lines: list[Line], expected: Status, tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "kernel.machine-check", *lines)
    assert found.status is expected
    if expected is not Status.PASS:
        assert found.judgement.fault is Fault.MACHINE_CHECK
        assert found.blames[0].part == "CPUs"


def test_a_cpu_that_is_throttled_now_and_then_is_no_fault(tmp_path: Path) -> None:
    text = "CPU{}: Core temperature is above threshold, cpu clock is throttled (total events = {})"
    few = [(100.0 + n, text.format(n, n + 1)) for n in range(40)]
    assert [each.status for each in findings(tmp_path, "kernel.cpu-throttled", *few)] == [Status.PASS]
    (many,) = findings(tmp_path, "kernel.cpu-throttled", *few, (200.0, text.format(3, 101)))
    assert [each.status for each in findings(tmp_path, "kernel.cpu-throttled", (100.0, text.format(3, 100)))] == [
        Status.PASS
    ]
    assert (many.status, many.blames[0].key) == (Status.WARN, ("host", "host", "cooling"))
    assert "NUMA node" not in many.judgement.message
    (one,) = findings(tmp_path, "kernel.cpu-throttled", *((100.0, text.format(n, 4711)) for n in range(20, 24)))
    assert "4 CPUs of NUMA node 1, none of the others" in one.judgement.message
    assert "heat sink" in one.judgement.remedy


@pytest.mark.parametrize(
    ("text", "blamed"),
    [
        ("blk_update_request: I/O error, dev sda, sector 2048 op 0x0:(READ) flags 0x0", "sda"),
        ("I/O error, dev sr0, sector 0 op 0x0:(READ)", None),
        ("blk_update_request: I/O error, dev fd0, sector 0 op 0x0:(READ) flags 0x0", None),
        ("Buffer I/O error on dev dm-0, logical block 0, async page read", "dm-0"),
        ("nvme nvme7: Removing after probe failure status: -19", "nvme7"),
        ("md/raid0:md0: Disk failure on sdq detected, failing array.", "md0"),
        ("md/raid0md0: Disk failure on sdq detected, failing array.", "md0"),
        ("md/linearmd0: Disk failure on sdq detected, failing array.", "md0"),
    ],
)
def test_disks_of_the_host_alone(text: str, blamed: str | None, tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "kernel.disk", (100.0, text))
    if blamed is None:
        assert (found.subject.kind, found.status) == ("host", Status.PASS)
    else:
        assert (found.status, found.blames[0].name) == (Status.WARN, blamed)


@pytest.mark.parametrize(("text", "how"), [
    ("nvme nvme7: I/O 512 QID 12 timeout, aborting", "1 I/O error logged"),
    ("nvme nvme7: Removing after probe failure status: -19", "1 I/O error logged, and the kernel gave it up"),
    ("nvme nvme7: Disabling device after reset failure: -19", "1 I/O error logged, and the kernel gave it up"),
    ("ata3: reset failed, giving up", "1 I/O error logged, and the kernel gave it up"),
])  # fmt: skip
def test_a_disk_that_the_kernel_gave_up(text: str, how: str, tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "kernel.disk", (100.0, text))
    assert found.judgement.message.partition(";")[0] == how
    of_its_port = "ata" not in text and "gave it up" in how
    assert found.judgement.remedy.startswith("read what its PCIe port logged") is of_its_port


@pytest.mark.parametrize(("beside", "apart_s", "blamed"), [
    ("sda", 60.0, "sda"), ("sda", 60.5, "ata1"), ("nvme0n1", 1.0, "ata1"), ("dm-0", 1.0, "ata1"), ("md0", 1.0, "ata1"),
])  # fmt: skip
def test_a_sata_port_is_of_no_disk_on_another_bus(beside: str, apart_s: float, blamed: str, tmp_path: Path) -> None:
    port = (100.0, "ata1.00: exception Emask 0x10 SAct 0x40000 SErr 0x400100 action 0x6 frozen")
    disk = (100.0 + apart_s, f"blk_update_request: I/O error, dev {beside}, sector 2048 op 0x0:(READ)")
    found = {each.subject.name: each for each in findings(tmp_path, "kernel.disk", port, disk)}
    assert found["ata1"].blames[0].name == blamed


def test_a_disk_of_an_array_is_the_array_s(tmp_path: Path) -> None:
    error = (100.0, "critical medium error, dev nvme1n1, sector 5")
    (found,) = findings(tmp_path, "kernel.disk", error, base="dgx-a100")
    assert [each.name for each in found.blames][-1] == "nvme1n1"
    assert found.blames[0].name.startswith("md")


def test_an_array_lacks_the_disk_that_it_dropped(tmp_path: Path) -> None:
    dropped = (100.0, "md/raid1:md0: Disk failure on nvme1n1, disabling device.")
    of = box(logged(tmp_path, dropped, base="dgx-a100"))
    assert {array.name: lost_members(of, array) for array in of.snapshot.arrays} == {"md0": ["nvme1n1"], "md1": []}


def test_a_slot_that_lost_its_device(tmp_path: Path) -> None:
    down = "pcieport 0000:00:02.0: pciehp: Slot(5): Link Down"
    (found,) = findings(tmp_path, "kernel.hot-plug", (100.0, down))
    assert (found.subject.bdf, found.status, found.blames[0].kind) == ("0000:00:02.0", Status.WARN, "link")
    (back,) = findings(tmp_path, "kernel.hot-plug", (100.0, down), (101.0, down.replace("Link Down", "Link Up")))
    assert back.status is Status.PASS


@pytest.mark.parametrize(("port", "bus", "seconds", "blamed"), [
    ("0000:09:08.0", "0a", 101.0, ["0000:0a:00.0"]),  # which is below it still
    ("0000:0f:00.0", "06", 110.0, ["0000:0f:00.0", "GPU0"]), ("0000:0f:00.0", "06", 110.5, ["0000:0f:00.0"]),
    ("0000:0f:00.0", "77", 90.0, ["0000:0f:00.0", "GPU@0000:77:00.0"]), ("0000:0f:00.0", "77", 89.5, ["0000:0f:00.0"]),
])  # fmt: skip
def test_a_gpu_that_fell_off_the_bus_when_a_slot_lost_its_device(
    port: str, bus: str, seconds: float, blamed: list[str], tmp_path: Path
) -> None:
    fell = (seconds, f"NVRM: GPU at PCI:0000:{bus}:00: GPU has fallen off the bus.")
    lines = sorted([fell, (100.0, f"pcieport {port}: pciehp: Slot(5): Link Down")])
    (found,) = findings(tmp_path, "kernel.hot-plug", *lines)
    assert [each.bdf if each.kind == "link" else each.name for each in found.blames] == blamed


@pytest.mark.parametrize(
    ("port", "lost", "status"),
    [
        ("0000:00:02.0", "0000:06:00", Status.WARN), ("0000:00:02.0", "", Status.PASS),
        ("0000:00:1c.0", "0000:06:00", Status.PASS), ("0000:0f:00.0", "0000:06:00", Status.PASS),
    ],
    ids=["above a lost GPU", "above GPUs that answer", "above none", "not there"],
)  # fmt: skip
def test_a_link_that_does_not_train_matters_where_a_gpu_is_lost(
    port: str, lost: str, status: Status, tmp_path: Path
) -> None:
    off_bus = [(2.0, f"NVRM: GPU at PCI:{lost}: GPU has fallen off the bus.")] if lost else []
    (found,) = findings(tmp_path, "kernel.hot-plug", *off_bus, (3.0, f"pcieport {port}: retraining failed"))
    assert found.status is status


KCS = "ipmi_si IPI0001:00: KCS in invalid state 6"
NO_BMC = "ipmi_si IPI0001:00: There appears to be no BMC at this location"
FOUND = "ipmi_si IPI0001:00: IPMI message handler: Found new BMC (man_id: 0x00b3d1, prod_id: 0x0001, dev_id: 0x20)"


@pytest.mark.parametrize(
    ("base", "lines", "status"),
    [
        ("dgx-1-v100", [], Status.PASS), ("dgx-1-v100", [NO_BMC], Status.WARN),
        ("dgx-1-v100", [NO_BMC, FOUND], Status.PASS), ("dgx-1-v100", [FOUND, NO_BMC], Status.PASS),
        ("dgx-1-v100", [KCS, KCS, KCS], Status.WARN), ("dgx-1-v100", [KCS, FOUND], Status.PASS),
        ("dgx-1-v100", [KCS, "", "", KCS], Status.SKIP),
        ("dgx-1-v100", [KCS], Status.SKIP), ("geforce-x4", [NO_BMC], Status.SKIP),
        ("dgx-station-v100", [NO_BMC], Status.SKIP),
    ],
)  # fmt: skip
def test_a_bmc_that_does_not_answer(base: str, lines: list[str], status: Status, tmp_path: Path) -> None:
    timed = [(60.0 + 600 * number, line) for number, line in enumerate(lines)]
    (found,) = findings(tmp_path, "kernel.bmc", *timed, base=base)
    assert found.status is status


@pytest.mark.parametrize(("times", "status"), [
    ((60.0, 600.0, 960.0), Status.WARN), ((60.0, 600.0, 959.9), Status.SKIP), ((60.0, 960.0), Status.SKIP),
    ((60.0, 959.9, 960.0), Status.WARN),
])  # fmt: skip
def test_a_bmc_is_silent_for_longer_than_it_restarts(
    times: tuple[float, ...], status: Status, tmp_path: Path
) -> None:
    (found,) = findings(tmp_path, "kernel.bmc", *((seconds, KCS) for seconds in times))
    assert found.status is status


def test_tasks_that_hang_in_the_driver(tmp_path: Path) -> None:
    hung = "INFO: task python3:4711 blocked for more than 120 seconds."
    (found,) = findings(tmp_path, "kernel.driver-stuck", (100.0, hung), (100.01, " nv_open_q+0x1/0x2 [nvidia]"))
    assert (found.status, found.blames[0].kind, found.judgement.fault) == (Status.WARN, "driver", Fault.DRIVER_STUCK)
    (other,) = findings(tmp_path, "kernel.driver-stuck", (100.0, hung), (100.01, " nfs_wait+0x1/0x2 [nfs]"))
    assert other.status is Status.PASS
    (waits,) = findings(tmp_path, "kernel.hung-task", (100.0, hung), (100.01, " mlx5_cmd_exec+0x1/0x2 [mlx5_core]"))
    assert "(module mlx5_core)" in waits.judgement.message
    assert "lspci -x" in waits.judgement.remedy


def test_an_array_that_cannot_go_on_fails(tmp_path: Path) -> None:
    words = ((1.0, "Disk failure on sda, disabling device."), (2.0, "Disk failure on sdb, disabling device."),
             (2.1, "Cannot continue operation (2/4 failed)."))
    dropped = [(at, f"md/raid:md0: {line}") for at, line in words]
    for many, last in ((2, Status.WARN), (3, Status.FAIL)):
        found = findings(tmp_path, "kernel.disk", *dropped[:many])
        assert [each.status for each in found] == [Status.WARN, last]
    (alone,) = findings(tmp_path, "kernel.disk", dropped[2])
    assert (alone.subject.name, alone.status) == ("md0", Status.FAIL)
    assert alone.judgement.message.startswith("this array cannot continue operation")


def test_what_is_not_an_io_error_of_a_disk(tmp_path: Path) -> None:
    stale = (100.0, "md: kicking non-fresh sdc1 from array!"), (100.1, "md/raid1:md0: active with 1 out of 2 mirrors")
    (left,) = findings(tmp_path, "kernel.disk", *stale)
    assert left.judgement.message.startswith("its data are older than its array's; md0 dropped it")
    assert "--re-add" in left.judgement.remedy
    (unknown,) = findings(tmp_path, "kernel.disk", stale[0])
    assert [each.name for each in unknown.blames] == ["sdc"]
    assert "dropped" not in unknown.judgement.message
    pool = "WARNING: Pool 'data-1' has encountered an uncorrectable I/O failure and has been suspended."
    (suspended,) = findings(tmp_path, "kernel.file-system", (100.0, pool))
    assert (suspended.subject.name, suspended.status) == ("data-1", Status.FAIL)
    assert "zpool clear" in suspended.judgement.remedy
