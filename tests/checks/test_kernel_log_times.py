"""The kernel log: what was logged at another time, or by an earlier load of a driver."""

from __future__ import annotations

import pytest
from kernel_lines import AER, GPU, JUDGED, OF_DISK, OF_RAID, PORT, with_log
from test_checks_kernel import X
from test_faults_of_hosts import bad_findings
from test_health_checks import box

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.kernel_log import _EVENTS
from dgxcheck.facts.record import replace
from dgxcheck.source.kernel_log.kmsg import relevant_lines
from dgxcheck.source.kernel_log.saved import times
from probes.kernel_log import facts

HUNG = "INFO: task rsync:471 blocked for more than 120 seconds."
SERR = "NMI: PCI system error (SERR) for reason a1 on CPU 0."
KILLED = "Out of memory: Killed process 4711 (python3) total-vm:1kB"
UNCORRECTED = "mce: [Hardware Error]: CPU 0: Machine Check Exception: 5 Bank 6: be00000000000e0b"
OF_MEMORY = "mce: Uncorrected hardware memory error in user-access at 3f00"


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


def test_a_crash_is_beside_an_xid_where_the_lines_have_times() -> None:
    crash = "python3[1]: segfault at 0 ip 0 sp 0 error 4 in libcuda.so.550.127.05[0+1]"
    machine = with_log(box("dgx-1-v100"), (crash, f"{X}48, pid=1, name=python3, Double Bit ECC Error"))
    for timed in (True, False):
        log = replace(machine.log, timed=timed)
        of = replace(machine, snapshot=replace(machine.snapshot, kernel_log=log))
        assert bool(bad_findings(of, "kernel.program-crash")) is timed


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
