"""Lines of the kernel log about the host itself, as real machines logged them, and text that only looks like them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.kernel_log import HostEvent
from dgxcheck.facts.missing import Missing
from dgxcheck.kernel_messages import hca, host, memory, pcie, storage
from dgxcheck.source.kernel_log.kmsg import relevant_lines
from dgxcheck.source.kernel_log.saved import times
from probes.kernel_log import facts

HE = "mce: [Hardware Error]: "
BROADWELL = (  # illinois-scicomp/machine-shop-maintenance issue 66
    (1.0, "EDAC sbridge MC1: HANDLING MCE MEMORY ERROR"),
    (1.0, "EDAC sbridge MC1: CPU 0: Machine Check Event: 0 Bank 7: cc00418000010091"),
    (1.0, "EDAC MC1: 262 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x2031c14"),
)
AMPERE = (  # geerlingguy/top500-benchmark issue 43
    (511.3, "EDAC MC0: 1 CE single-symbol chipkill ECC on P0_Node0_Channel5_Dimm0 DIMMF1 (node:0 card:5 module:16"),
    (511.4, "{139}[Hardware Error]: event severity: corrected"),
    (511.4, "{139}[Hardware Error]:   section_type: memory error"),
)
MILAN = (  # prometheus/node_exporter issue 3511
    (9.0, "{35}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 4"),
    (9.0, "{35}[Hardware Error]: event severity: corrected"),
    (9.0, "{35}[Hardware Error]:  Error 0, type: corrected"),
    (9.0, "{35}[Hardware Error]:  fru_text: D2"),
    (9.0, "{35}[Hardware Error]:   section_type: memory error"),
    (9.0, "{35}[Hardware Error]:   node:6 card:1 module:0 rank:1 bank:2 device:11 row:40948 column:560"),
)
CASCADE = (  # kubernetes/node-problem-detector pull request 846
    (9.0, "{3}[Hardware Error]: event severity: recoverable"),
    (9.0, "{3}[Hardware Error]:   section_type: memory error"),
    (9.0, "{3}[Hardware Error]:   DIMM location: CPU 2 DIMM 30"),
)
NUC = (  # andikleen/mcelog issue 70
    (0.06, f"{HE}Machine check events logged"),
    (0.06, f"{HE}CPU 0: Machine Check: 0 Bank 4: a600000000020408"),
    (0.06, f"{HE}TSC 0 ADDR fef4c9e0"),
    (0.06, f"{HE}PROCESSOR 0:706a1 TIME 1537152664 SOCKET 0 APIC 0 microcode 28"),
)
OPTERON = (  # superuser: "Hardware error messages from syslogd"
    (50.0, "[Hardware Error]: MC4_STATUS[Over|CE|MiscV|-|AddrV|-|-|CECC]: 0xdc10410040080a13"),
    (50.0, "[Hardware Error]: Northbridge Error (node 4): DRAM ECC error detected on the NB."),
)
FATAL = ((50.0, f"{HE}CPU 20: Machine Check Exception: 5 Bank 7: be00000000800400"),)
BEFORE = (
    (1.0, "BERT: Error records from previous boot:"),
    (1.0, "[Hardware Error]: event severity: fatal"),
    (1.0, "[Hardware Error]:  Error 0, type: fatal"),
    (1.0, "[Hardware Error]:   section_type: general processor error"),
)
PCIE = (
    (9.0, "{1}[Hardware Error]: event severity: corrected"),
    (9.0, "{1}[Hardware Error]:   section_type: PCIe error"),
)
Seen = tuple[str, str, str, bool | None, int, bool]


def seen(event: HostEvent) -> Seen:
    return event.trouble, event.part, event.group, event.corrected, event.count, event.past


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (BROADWELL, [("memory", "CPU_SrcID#0_Ha#0_Chan#1_DIMM#0", "mc1", True, 262, False)]),
        (AMPERE, [("memory", "P0_Node0_Channel5_Dimm0 DIMMF1", "mc0", True, 1, False)]),
        (MILAN, [("memory", "D2", "D2", True, 1, False)]),
        (CASCADE, [("memory", "CPU 2 DIMM 30", "CPU 2 DIMM 30", False, 1, False)]),
        (NUC, [("machine check", "CPU 0 bank 4", "socket 0", False, 1, True)]),
        (OPTERON, [("memory", "bank 4", "", True, 1, False)]),
        (FATAL, [("machine check", "CPU 20 bank 7", "", False, 1, False)]),
        (BEFORE, [("machine check", "", "", False, 1, True)]),
        (PCIE, []),
        (((9.0, f"{HE}Machine check events logged"),), [("machine check", "", "", True, 1, False)]),
        (((9.0, "mce: Uncorrected hardware memory error in user-access at 3f00"),
          (9.0, "Memory failure: 0x3f: recovery action for dirty LRU page: Recovered")),
         [("memory", "", "", False, 1, False)]),
        (((9.0, "mce: CPU supports 22 MCE banks"), (9.0, "EDAC MC: Ver: 3.0.0"),
          (9.0, "EDAC MC0: Giving out device to module sb_edac controller Broadwell SrcID#0_Ha#0")), []),
    ],
    ids=["edac", "edac and apei", "apei", "apei uncorrected", "left over", "opteron", "fatal", "bert", "apei of pcie",
         "no details", "poisoned page", "no errors"],
)  # fmt: skip
def test_errors_of_memory_and_cpus(lines: tuple[tuple[float, str], ...], expected: list[Seen]) -> None:
    assert [seen(event) for event in memory.errors(lines)] == expected


@pytest.mark.parametrize(("xid", "after", "due"), [
    (63, 0.4, []), (95, 0.1, []), (63, 40.0, [False]), (13, 0.1, [False]),
])  # fmt: skip
def test_a_page_of_gpu_memory_is_none_of_the_host(xid: int, after: float, due: list[bool]) -> None:
    """The driver of a Grace machine has the kernel take it out of use."""
    page = (9.0 + after, "Memory failure: 0x4218a3f: recovery action for dirty LRU page: Recovered")
    of_driver = ((9.0, f"NVRM: Xid (PCI:0009:01:00): {xid}, pid='<unknown>', name=<unknown>, words"),)
    assert [event.corrected for event in memory.errors((page,), of_driver)] == due


FRAME = " os_acquire_rwlock_write+0x30/0x40 [nvidia]"
OLD_FRAME = " [<ffffffffa09c376e>] uvm_gpu_retain_by_uuid+0x1e/0x40 [nvidia_uvm]"
DUMPED = "task:python3.11      state:D stack:    0 pid:15277 ppid: 15257 flags:0x00000002"
HUNG = "INFO: task python3:4711 blocked for more than 120 seconds."
SPINNING = "watchdog: BUG: soft lockup - CPU#3 stuck for 22s! [nv_queue:812]"
DOWN, CARD_GONE = ("pcieport 0000:3a:00.0: pciehp: Slot(5): Link Down",
                   "pcieport 0000:3a:00.0: pciehp: Slot(5): Card not present")  # fmt: skip
BACK = "pcieport 0000:3a:00.0: pciehp: Slot(5): Card present"


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        (["mce: CPU3: Core temperature is above threshold, cpu clock is throttled (total events = 7)"],
         [("throttled", "CPU 3", 7, False)]),
        (["CPU12: Package temperature above threshold, cpu clock throttled (total events = 812)"],
         [("throttled", "CPU 12", 812, False)]),
        (["CPU3: Core temperature/speed normal"], []),
        ([HUNG, "Call Trace:", FRAME], [("stuck", "python3", 1, False)]),
        ([HUNG, DUMPED, "Call Trace:", OLD_FRAME], [("stuck", "python3", 1, False)]),
        ([DUMPED, "Call Trace:", OLD_FRAME, FRAME], []),  # whoever asks for a dump finds tasks that just wait
        ([SPINNING, "RIP: 0010:[<ffffffffa09c376e>]  [<ffffffffa09c376e>] _nv012345rm+0x1c/0x60 [nvidia]"],
         [("stuck", "nv_queue", 1, False)]),
        ([SPINNING, "RIP: 0010:_nv012345rm+0x1c/0x60 [nvidia]"], [("stuck", "nv_queue", 1, False)]),
        ([HUNG, " nfs_wait_bit_killable+0x1/0x2 [nfs]"], []),
        (["INFO: task nvidia-smi:12 blocked for more than 120 seconds."], []),
        (["blk_update_request: I/O error, dev sdb, sector 2048 op 0x0:(READ) flags 0x0"], [("disk", "sdb", 1, False)]),
        (["I/O error, dev nvme1n1, sector 0 op 0x1:(WRITE)"], [("disk", "nvme1n1", 1, False)]),
        (["critical medium error, dev sda, sector 77 op 0x0:(READ)"], [("disk", "sda", 1, False)]),
        (["Buffer I/O error on dev sdb1, logical block 0, async page read"], [("disk", "sdb", 1, False)]),
        (["nvme nvme3: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff"],
         [("disk", "nvme3", 1, False)]),
        (["nvme nvme3: I/O 5 QID 12 timeout, aborting"], [("disk", "nvme3", 1, False)]),
        (["nvme nvme3: I/O tag 5 (1005) opcode 0x2 (I/O Cmd) QID 12 timeout, completion polled"], []),
        (["nvme nvme3: 16/0/0 default/read/poll queues"], []),
        (["sd 0:2:1:0: [sdb] tag#0 Sense Key : Medium Error [current]"], [("disk", "sdb", 1, False)]),
        (["sd 0:2:1:0: [sdb] Attached SCSI disk"], []),
        (["md/raid1:md0: Disk failure on sdb2, disabling device."], [("array", "md0", 1, False)]),
        (["md/raid0:md1: Disk failure on nvme2n1 detected, failing array."], [("array", "md1", 1, False)]),
        ([DOWN, CARD_GONE], [("unplugged", "0000:3a:00.0", 1, False)]),
        ([DOWN, CARD_GONE, BACK], [("unplugged", "0000:3a:00.0", 1, True)]),
        (["pciehp 0000:3a:00.0:pcie004: Slot(5): Link Down"], [("unplugged", "0000:3a:00.0", 1, False)]),
        (["pcieport 0000:3a:00.0: pciehp: Slot(5): Attention button pressed", DOWN], []),
        ([BACK], []),
        (["Out of memory: Killed process 4711 (python3) total-vm:1kB", "oom-kill:constraint=CONSTRAINT_NONE"],
         [("out of memory", "python3", 1, False)]),
    ],
)  # fmt: skip
def test_other_trouble(messages: list[str], expected: list[tuple[str, str, int, bool]]) -> None:
    lines = [(60.0 + number / 1000, message) for number, message in enumerate(messages)]
    found = (*storage.events(lines), *host.events(lines), *pcie.unplugged(lines))
    events = [event for event in found if event.trouble != "hung"]
    assert [(event.trouble, event.part, event.count, event.past) for event in events] == expected


@pytest.mark.parametrize(
    ("partition", "disk"),
    [("sda1", "sda"), ("sda", "sda"), ("nvme0n1p2", "nvme0n1"), ("nvme0n1", "nvme0n1"), ("md0", "md0"),
     ("mmcblk0p1", "mmcblk0")],
)  # fmt: skip
def test_the_disk_of_a_partition(partition: str, disk: str) -> None:
    assert storage.whole_disk(partition) == disk


@given(st.lists(st.text(max_size=80), max_size=8))
def test_any_text_gives_events_or_none(messages: list[str]) -> None:
    lines = [(float(number), message) for number, message in enumerate(messages)]
    assert all(event.line in messages for event in (*memory.errors(lines), *storage.events(lines), *host.events(lines)))


def test_a_log_s_text_keeps_what_is_read_of_it() -> None:
    """Each of these as dmesg prints it, through the filter of the lines that are kept."""
    shown = (*BROADWELL[2:], *MILAN, *FATAL, (51.0, HUNG), (51.5, FRAME), (52.0, DOWN),
             (53.0, "md/raid1:md0: Disk failure on sdb2, disabling device."),
             (54.0, "nvme nvme3: I/O 5 QID 12 timeout, aborting"))  # fmt: skip
    rows = (f"[{seconds + number / 1000:12.6f}] {message}" for number, (seconds, message) in enumerate(shown))
    log = times("\n".join(("[    0.000000] Linux version 6.8.0", *rows)))
    assert log is not None
    found = facts(relevant_lines(log), "here")
    assert not isinstance(found, Missing)
    troubles = [event.trouble for event in found.host]
    assert troubles == ["memory", "memory", "machine check", "stuck", "unplugged", "array", "disk"]


LOGGED, SMMU, PORT = f"{HE}Machine check events logged", "arm-smmu-v3 arm-smmu-v3.0.auto: ", "nvidia 0000:06:00.0: "
CLIENT = f"{SMMU}event: F_TRANSLATION client: 0000:0a:00.0 sid: 0xa00 ssid: 0x0 iova: 0xffffe040"
RECEIVED, LOST = f"{SMMU}event 0x10 received:", "nvidia 0000:07:00.0: AER: can't recover (no error_detected callback)"
FATAL_ERROR = f"{PORT}PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)"
MLX5 = "mlx5_core 0000:0c:00.0: print_health_info:428:(pid 0): "
HEALTH = f"{MLX5}Health issue observed, firmware internal error, severity(3) ERROR:"


@pytest.mark.parametrize(("shown", "limit", "within", "beyond"), [
    (lambda at: len(memory.errors(((0.0, BROADWELL[2][1]), (at, LOGGED)))), 1.0, 1, 2),
    (lambda at: len(memory.errors(((0.0, LOGGED), (at, LOGGED)))), 1.0, 1, 2),
    (lambda at: memory.errors(((0.0, FATAL[0][1]), (at, NUC[3][1])))[0].group, 1.0, "socket 0", ""),
    (lambda at: memory.errors(((at, NUC[1][1]),))[0].past, 30.0, True, False),
    (lambda at: len(hca.events(((0.0, HEALTH), (at, f"{MLX5}synd 0x1: firmware internal error")))), 1.0, 1, 2),
    (lambda at: len(pcie.errors(((0.0, "pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: 0000:06:00.0"),
                                 (at, FATAL_ERROR)))), 1.0, 1, 2),
    (lambda at: pcie.errors(((0.0, FATAL_ERROR), (at, f"{PORT}   [14] CmpltTO")))[0].names, 1.0, ("CmpltTO",), ()),
    (lambda at: pcie.errors(((0.0, FATAL_ERROR), (at, LOST)))[0].other_gpus, 10.0, ("0000:07:00.0",), ()),
    (lambda at: len(pcie.iommu_faults(((0.0, RECEIVED), (at, CLIENT)))), 1.0, 1, 2),
    (lambda at: pcie.iommu_faults(((0.0, RECEIVED), (at, f"{SMMU}0x00000a00 00000010")))[0].bdf, 1.0,
     "0000:0a:00.0", ""),
])  # fmt: skip
def test_lines_of_one_event_are_logged_within_a_time(
    shown: Callable[[float], object], limit: float, within: object, beyond: object
) -> None:
    assert (shown(limit), shown(limit + 0.001)) == (within, beyond)


@pytest.mark.parametrize(("stream", "bdf"), [("0000ffff", "0000:ff:1f.7"), ("00010000", "")])
def test_a_stream_beyond_a_bus_is_of_no_device(stream: str, bdf: str) -> None:
    lines = ((0.0, RECEIVED), (0.0, f"{SMMU}0x{stream} 00000010"))
    assert [fault.bdf for fault in pcie.iommu_faults(lines)] == [bdf]
