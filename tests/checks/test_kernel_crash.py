"""Whom a panic, a hung task, memory that ran out and a crash are laid at, and what is no fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_host_trouble import HE, Line, findings

from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind

PANIC = "Kernel panic - not syncing: "
OOPS = "BUG: kernel NULL pointer dereference, address: 0000000000000008"
HUNG = [(100.0, "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [kworker/3:1:471]"),
        (100.1, "RIP: 0010:mlx5e_x+0x1/0x2 [mlx5_core]")]
KILLED = "ut of memory: Killed process 4711 (python3) total-vm:1kB"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], None),
        ([(100.0, f"{PANIC}Fatal exception")], ("host", "kernel")),
        ([(100.0, OOPS), (100.1, "RIP: 0010:nv_x+0x1/0x2 [nvidia]"), (101.0, f"{PANIC}Fatal exception")],
         ("driver", "")),
        ([(100.0, OOPS), (100.1, "RIP: 0010:ll_x+0x1/0x2 [lustre]")], ("host", "kernel")),
        ([(100.0, f"{HE}CPU 2: Machine Check Exception: 5 Bank 4: b200000000070f0f"),
          (100.1, f"{PANIC}Fatal machine check")], ("host", "CPUs")),
    ],
)  # fmt: skip
def test_a_panic(lines: list[Line], expected: tuple[str, str] | None, tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "kernel.panic", *lines)
    assert found.status is (Status.FAIL if expected else Status.PASS)
    assert [(each.kind, each.part) for each in found.blames[:1]] == ([expected] if expected else [])


ADAPTER = "mlx5_core 0000:0c:00.0: "
PCIE = f"{ADAPTER}PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)"

ON = "mc#0csrow#1channel#3"
DIMM = f"EDAC MC0: 1 UE on {ON} (csrow:1 channel:3 page:0x123 offset:0x0 grain:64)"
SERR = "NMI: PCI system error (SERR) for reason a1 on CPU 0."


@pytest.mark.parametrize(("check", "lines", "expected"), [
    ("kernel.panic", [(100.0, f"{HE}CPU 2: Machine Check Exception: 5 Bank 4: b200000000070f0f"),
                      (100.1, f"{PANIC}Fatal machine check")], ["CPUs/CPU 2 bank 4", "CPUs"]),
    ("kernel.panic", [(100.0, f"{HE}CPU 2: Machine Check: 0 Bank 7: 8e00000000800400"),
                      (100.1, f"{PANIC}Fatal machine check")], ["CPUs"]),
    ("kernel.panic", [(0.06, f"{HE}CPU 0: Machine Check: 0 Bank 4: a600000000020408"),  # left over from the last boot
                      (100.1, f"{PANIC}Fatal machine check")], ["CPUs"]),
    ("kernel.panic", [(99.0, PCIE), (100.1, f"{PANIC}Fatal hardware error!")],
     ["0000:0c:00.0", "0000:0c:00.0", "CPUs"]),
    ("kernel.panic", [(10.0, PCIE), (100.1, f"{PANIC}Fatal hardware error!")], ["CPUs"]),
    ("kernel.panic", [(99.0, DIMM), (100.1, f"{PANIC}Fatal hardware error!")],
     [f"memory/{ON}", "memory/socket 0", "CPUs"]),
    ("kernel.panic", [(99.0, DIMM), (100.1, f"{PANIC}Fatal exception")], ["kernel"]),
    ("kernel.panic", [(99.0, SERR), (100.1, f"{PANIC}NMI: Not continuing")], ["PCIe links", "CPUs"]),
    ("kernel.machine-check", [(100.0, SERR)], ["PCIe links"]),
    ("kernel.machine-check", [(99.0, PCIE), (100.0, SERR)], ["0000:0c:00.0", "0000:0c:00.0", "PCIe links"]),
    ("kernel.machine-check", [(99.0, DIMM), (100.0, SERR)],
     [f"memory/{ON}", "memory/socket 0", "PCIe links"]),
    ("kernel.hung-task", [(90.0, f"{ADAPTER}TX timeout detected"), *HUNG], ["0000:0c:00.0", "kernel"]),
    ("kernel.hung-task", [(90.0, f"{ADAPTER}poll_health:174: device's health compromised"), *HUNG],
     ["0000:0c:00.0", "kernel"]),
    ("kernel.hung-task", [(90.0, f"{ADAPTER}TX timeout detected"), (91.0, f"{ADAPTER}firmware version: 12.28.2006"),
                          *HUNG], ["kernel"]),
])  # fmt: skip
def test_what_is_over_is_not_blamed(check: str, lines: list[Line], expected: list[str], tmp_path: Path) -> None:
    (found,) = findings(tmp_path, check, *lines)
    assert [each.bdf or each.key[2] for each in found.blames] == expected


@pytest.mark.parametrize(
    ("check", "message", "status"),
    [
        ("kernel.hung-task", "INFO: task rsync:471 blocked for more than 120 seconds.", Status.WARN),
        ("kernel.out-of-memory", f"O{KILLED}", Status.WARN),
        ("kernel.out-of-memory", f"Memory cgroup o{KILLED}", Status.PASS),
        ("kernel.out-of-memory", f"Memory cgroup o{KILLED.replace('python3', 'nv-hostengine')}", Status.WARN),
        ("kernel.program-crash", "a[1]: segfault at 0 ip 0 sp 0 error 4 in libcuda.so.1[0+1]", Status.PASS),
        ("kernel.program-crash", "nv-hostengine[1]: segfault at 0 ip 0 sp 0 error 4 in libdcgm.so.4[0+1]", Status.WARN),
        ("kernel.program-crash", "nvidia-persiste[1]: segfault at 8 ip 0 sp 0 error 4 in libnvidia-cfg.so.1[0+1]",
         Status.WARN),
    ],
)
def test_other_ends(check: str, message: str, status: Status, tmp_path: Path) -> None:
    (found,) = findings(tmp_path, check, (100.0, message))
    assert found.status is status
    (none,) = findings(tmp_path, check, (100.0, "NVRM: loading NVIDIA UNIX x86_64 Kernel Module"))
    assert none.status is Status.PASS


@pytest.mark.parametrize(("process", "fault", "unit"), [
    ("python3", Fault.OUT_OF_MEMORY, ""), ("nv-fabricmanage", Fault.SERVICE_KILLED, "nvidia-fabricmanager"),
    ("nv-fabricmanage", Fault.SERVICE_KILLED, "nvidia-smi -r"),
    ("slurmd", Fault.SERVICE_KILLED, "slurmd"),
])  # fmt: skip
def test_a_service_that_was_killed_or_crashed_is_due_at_once(
    process: str, fault: FaultKind, unit: str, tmp_path: Path
) -> None:
    line = f"O{KILLED.replace('python3', process)}"
    (found,) = findings(tmp_path, "kernel.out-of-memory", (100.0, line))
    assert (found.judgement.fault, unit in found.judgement.remedy) == (fault, True)
    crash = f"{process}[1]: segfault at 0 ip 0 sp 0 error 4 in nv-fabricmanager[0+1]"
    (found,) = findings(tmp_path, "kernel.program-crash", (100.0, crash))
    assert (found.judgement.fault is Fault.SERVICE_KILLED, unit in found.judgement.remedy) == (bool(unit), True)


def test_an_iommu_that_refuses_a_gpu_is_a_setting(tmp_path: Path) -> None:
    line = "nvidia 0000:06:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0003 address=0x80000040 flags=0x0020]"
    (found,) = findings(tmp_path, "kernel.iommu-fault", (100.0, line), (100.1, line))
    assert (found.status, found.subject.name) == (Status.WARN, "GPU0")
    assert [each.part for each in found.blames] == ["IOMMU setting"]
    other = "DMAR: [DMA Write] Request device [00:14.0] fault addr 7f000 [fault reason 05] PTE Write access is not set"
    (found,) = findings(tmp_path, "kernel.iommu-fault", (100.0, other))
    assert found.status is Status.SKIP  # of a device that is none of ours


@pytest.mark.parametrize(("apart_s", "names"), [(10.0, ["GPU0"]), (10.5, ["host", "GPU0"])])
def test_a_wait_of_the_iommu_is_for_the_device_that_it_names(
    apart_s: float, names: list[str], tmp_path: Path
) -> None:
    named = "AMD-Vi: Event logged [IOTLB_INV_TIMEOUT device=06:00.0 address=0x0000000100]"
    found = findings(tmp_path, "kernel.iommu-fault", (100.0, named),
                     (100.0 + apart_s, "AMD-Vi: Completion-Wait loop timed out"))  # fmt: skip
    assert sorted(each.subject.name for each in found) == sorted(names)


def test_a_bar_without_an_address_is_a_matter_of_the_firmware(tmp_path: Path) -> None:
    found = findings(tmp_path, "kernel.gpu-start", (100.0, "NVRM: BAR1 is 0M @ 0x0 (PCI:0000:7f:00.0)"))
    (bad,) = (each for each in found if each.status is Status.FAIL)
    assert [each.part for each in bad.blames] == ["BAR1"]


@pytest.mark.parametrize(("number", "apart", "status"), [
    (48, 60.0, Status.WARN), (48, 60.5, Status.PASS), (94, 1.0, Status.WARN),
    (31, 1.0, Status.PASS), (43, 1.0, Status.PASS),  # of the program, as its crash
])  # fmt: skip
def test_a_program_that_crashes_beside_an_xid(number: int, apart: float, status: Status, tmp_path: Path) -> None:
    xid = f"NVRM: Xid (PCI:0000:06:00): {number}, pid=1, name=a, Ch 00000008"
    crash = (100.0, "a[1]: segfault at 0 ip 0 sp 0 error 4 in libcuda.so.1[0+1]")
    (found,) = findings(tmp_path, "kernel.program-crash", crash, (100.0 + apart, xid))
    assert found.status is status


@pytest.mark.parametrize(("base", "due"), [("dgx-a100", True), ("geforce-x4", False)])
def test_a_desktop_can_lack_ecc(base: str, due: bool, tmp_path: Path) -> None:
    found = findings(tmp_path, "kernel.memory", (9.0, "EDAC amd64: Node 0: DRAM ECC disabled."), base=base)
    assert any(each.judgement.fault is Fault.MEMORY_ECC for each in found) is due


def test_an_adapter_that_was_too_hot_is_cooled_first(tmp_path: Path) -> None:
    lines = ("poll_health:835: device's health compromised", "print_health_info:432: synd 0x10: High temperature")
    (bad,) = (each for each in findings(tmp_path, "kernel.hca", *((900.0, f"{ADAPTER}{line}") for line in lines))
              if each.status is Status.FAIL)  # fmt: skip
    assert bad.judgement.remedy.startswith("read the temperature")


@pytest.mark.parametrize(("apart_s", "times", "status"), [
    (600.0, 2, Status.WARN), (600.0, 1, Status.PASS), (5.0, 2, Status.PASS),
])  # fmt: skip
def test_an_adapter_whose_firmware_stops_again_and_again(
    apart_s: float, times: int, status: Status, tmp_path: Path
) -> None:
    lines = (f"{ADAPTER}poll_health:174: device's health compromised", f"{ADAPTER}firmware version: 12.28.2006")
    log = [(860_000.0 + n * apart_s + later, line) for n in range(times) for later, line in enumerate(lines)]
    found = {each.subject.bdf: each for each in findings(tmp_path, "kernel.hca", *log)}
    assert found["0000:0c:00.0"].status is status
