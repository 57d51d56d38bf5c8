"""Text that any user can put into the kernel log: names and files of programs that crash, floods, ``logger``."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest
from kernel_lines import JUDGED
from together import for_each

from dgxcheck.assessment.health import assess
from dgxcheck.assessment.request import Request
from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.kernel_log import FORGEABLE, MARK, KernelLog
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import replace
from dgxcheck.limits import LOG_LINES as MOST
from dgxcheck.readers.kernel_log.excerpt import read_excerpt
from dgxcheck.source.kernel_log.kmsg import EARLIER, relevant_lines
from dgxcheck.source.kernel_log.saved import is_forgeable, times
from dgxcheck.source.live import LiveSource
from probes.kernel_log import facts

GPU = "0000:06:00.0"
XID = "NVRM: Xid (PCI:0000:06:00): 79, pid=12, name=python3, GPU has fallen off the bus."
LOADED = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.127.05"
RECOVERED = "NVRM: Xid (PCI:0000:06:00): 154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"
FORGED = (
    XID,
    LOADED,
    RECOVERED,
    "Linux version 6.8.0",
    f"NVRM: GPU {GPU}: GPU has fallen off the bus.",
    f"nvidia {GPU}: PCIe Bus Error: severity=Uncorrected (Fatal), type=x",
    f"pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: {GPU}",
    "mlx5_core 0000:05:00.0: Detected insufficient power on the PCIe slot (27W).",
    f"nvidia {GPU}: enabling device (0140 -> 0142)",
    "EDAC MC0: 9 UE memory read error on CPU_SrcID#0_Ha#0_Chan#0_DIMM#0 (channel:0 slot:0 page:0x1)",
    "mce: [Hardware Error]: CPU 0: Machine Check: 0 Bank 7: be00000000010090",
    "{1}[Hardware Error]: event severity: fatal",
    "mce: Uncorrected hardware memory error in user-access at 3f00",
    "Memory failure: 0x3f: recovery action for dirty LRU page: Recovered",
    "CPU3: Core temperature above threshold, cpu clock throttled (total events = 4711)",
    "INFO: task nv_queue:12 blocked for more than 120 seconds.",
    " os_acquire_rwlock_write+0x30/0x40 [nvidia]",
    "blk_update_request: I/O error, dev sda, sector 0 op 0x0:(READ)",
    "Buffer I/O error on dev sda1, logical block 0, async page read",
    "nvme nvme0: controller is down; will reset: CSTS=0xffffffff",
    "sd 0:0:0:0: [sda] Sense Key : Medium Error [current]",
    "md/raid1:md0: Disk failure on sda2, disabling device.",
    "pcieport 0000:3a:00.0: pciehp: Slot(5): Link Down",
    "pciehp 0000:3a:00.0:pcie004: Slot(5): Link Down",
    *(lines[0] for lines, _, _ in JUDGED),
)
CRASH = "x[12]: segfault at 0 ip 0000000000401136 sp 00007ffd error 6 in a"
NAMED_LIKE_THE_DRIVER = CRASH.replace("x[12]", "NVRM: a[12]")
NAMED_LIKE_A_DEVICE = CRASH.replace("x[12]", "a 0000:06:00.0:[12]")
TASK_COMM_LEN = 16
"""Bytes of a process's name, with the one that ends it."""


def read(text: str) -> KernelLog:
    log = times(text)
    assert log is not None
    found = facts(relevant_lines(log), "here")
    assert not isinstance(found, Missing)
    return found


def told(log: KernelLog) -> list[object]:
    """All events but those of the first line, an Xid that is not past."""
    assert [(xid.number, xid.past) for xid in log.xids if xid.seconds == 1.0] == [(31, False)]
    xids = [xid for xid in log.xids if xid.seconds > 1]
    return [*xids, *log.off_bus, *log.not_started, *log.hcas, *log.pcie, *log.host, *log.earlier]


FIRST = "NVRM: Xid (PCI:0000:06:00): 31, Ch 00000003"


def journal(message: str, micro: int, **more: str) -> str:
    return json.dumps({"_TRANSPORT": "kernel", "__MONOTONIC_TIMESTAMP": str(micro), "MESSAGE": message} | more)


@for_each("crash", [CRASH, NAMED_LIKE_THE_DRIVER, NAMED_LIKE_A_DEVICE])
@for_each("forged", FORGED)
def test_lines_in_the_name_of_a_program_are_no_drivers_lines(forged: str, crash: str) -> None:
    """/dev/kmsg, dmesg, dmesg -S and rsyslog (every line with the time of the first), journald."""
    for text in (
        f"4,1,1000000,-;{FIRST}\n4,2,5000000,-;{crash}\\x0a{forged}[1000+1000]\n",
        f"[    1.000000] {FIRST}\n[    5.000000] {crash}\n               {forged}\n",
        f"[    1.000000] {FIRST}\n[    5.000000] {crash}\n[    5.000000] {forged}\n",
        f"Nov 20 12:00:00 dgx kernel: [    1.000000] {FIRST}\n"
        f"Nov 20 12:00:04 dgx kernel: [    5.000000] {crash}\nNov 20 12:00:04 dgx kernel: [    5.000000] {forged}\n",
        "\n".join((journal(FIRST, 1000000), journal(crash + "\n" + forged, 5000000))),
    ):
        assert told(read(text)) == []


@for_each("forged", FORGED)
def test_a_program_named_like_the_beginning_of_a_line_is_nothing(forged: str) -> None:
    """With the rest of the line as the name of its file: all that a user can choose of the first line of a record."""
    name, rest = forged[: TASK_COMM_LEN - 1], forged[TASK_COMM_LEN - 1 :]
    for crash in (
        f"{name}[12]: segfault at 0 ip 0000000000401136 sp 00007ffd error 6 in {rest}[400000+1000]",
        f"{name}: page allocation failure: order:0, mode:0x1 {rest}",
        f"ab {GPU}: page allocation failure: order:0, mode:0x1 {rest}",
        f"traps: {name}[12] trap invalid opcode ip:1 sp:2 error:0 in {rest}[400000+1000]",
    ):
        for text in (
            f"4,1,1000000,-;{FIRST}\n4,2,5000000,-;{crash}\n",
            f"[    1.000000] {FIRST}\n[    5.000000] {crash}\n",
        ):
            assert told(read(text)) == []
        followed = f"[    1.000000] {FIRST}\n[    5.000000] {crash}\n[    5.000000] {forged}\n"
        assert told(read(followed)) == []


@for_each("rest", ["IN=lo OUT= MAC=00:00", "9" * 5000, ".5", "%", "-"])
def test_a_number_of_an_xid_ends_where_the_driver_ends_it(rest: str) -> None:
    """netfilter writes the prefix of a rule, which need not end with a blank, before its own words."""
    assert told(read(f"4,1,1000000,-;{FIRST}\n4,2,5000000,-;NVRM: Xid (PCI:0000:06:00): 79{rest}\n")) == []


@for_each("forged", FORGED)
def test_only_the_kernels_facility_counts(forged: str) -> None:
    """What a program writes to /dev/kmsg has facility 1 or above."""
    for text in (
        f"4,1,1000000,-;{FIRST}\n12,2,5000000,-;{forged}\n",
        f"kern  :warn  : [    1.000000] {FIRST}\nuser  :warn  : [    5.000000] {forged}\n",
        f"<4>[    1.000000] {FIRST}\n<12>[    5.000000] {forged}\n",
        "\n".join((journal(FIRST, 1000000), journal(forged, 5000000, SYSLOG_FACILITY="1"))),
        "\n".join((journal(FIRST, 1000000), journal(forged, 5000000).replace("_TRANSPORT", "TRANSPORT"))),
    ):
        assert told(read(text)) == []


HALTED = "NVRM: Xid (PCI:0000:06:00): 62, pid=12, x"
SYSLOG_ROWS = f"Nov 20 12:00:01 dgx systemd[1]: Started x.\nNov 20 12:00:04 dgx kernel: [   70.000000] {HALTED}\n"
CONFIRM = "if this is a syslog file, any user can write to it: confirm with journalctl -k -o json"
NOT_OF_SYSLOG = (
    f"-- Boot 0123abcd --\nNov 20 12:00:04 dgx kernel: {HALTED}\n",
    f"$ sudo journalctl -k\nNov 20 12:00:04 dgx kernel: {HALTED}\n",
    f"[    1.000000] {HALTED}\n",
    f"[Fri Nov 20 12:00:04 2026] {HALTED}\n",
    f"4,1,1000000,-;{HALTED}\n",
    journal(HALTED, 1000000, _HOSTNAME="dgx", __REALTIME_TIMESTAMP="1763640000000000"),
)


def test_findings_of_syslog_say_that_any_user_can_write_to_it(tmp_path: Path) -> None:
    """As a text, and as the log of a recording; on the live machine they are warnings, which drain no node."""
    path = tmp_path / "syslog"
    for text, forgeable in ((SYSLOG_ROWS, True), *((text, False) for text in NOT_OF_SYSLOG)):
        path.write_text(text)
        given = Request(kernel_log=str(path), only=("kernel",), state=str(tmp_path / "state"))
        sources: list[str | LiveSource] = [str(path)]
        if text[0] != "$":
            sources += ["dgx-1-v100", LiveSource(str(tmp_path))]
        for source in sources:
            of_source = replace(given, state=None) if isinstance(source, str) else given
            found = assess(source, Request() if source == str(path) else of_source)
            of_log = (each for each in found.findings if each.witness == "log")
            bad = [each for each in of_log if each.status in (Status.FAIL, Status.WARN)]
            assert bad, (text, source)
            assert all((CONFIRM in each.judgement.message) is forgeable for each in bad), text
            live = found.origin.kind == "live"
            assert {each.status for each in bad} == {Status.WARN if live and forgeable else Status.FAIL}, text


HOSTS = ("", " ", "dgx ", "dgx kernel: ", "kernel: ", "dgx kernel[123]: ", "dgx x: ", "kernel: x kernel: ")


@for_each("date", ["Nov 20 12:00:04", "2026-11-20T12:00:04.123456+00:00", "2026-11-20 12:00:04", "<4>Nov  2 12:00:04"])
def test_no_row_with_a_date_of_syslog_is_believed_whatever_its_template(date: str) -> None:
    for host, stamp in product(HOSTS, ("", "[   70.000000] ", "<4>[   70.000000] ")):
        row = f"{date} {host}{stamp}{HALTED}\n"
        assert is_forgeable(row)
        for found in read_excerpt((row.rstrip(),)):
            assert not found.facts or any(str(text).endswith(FORGEABLE) for text in found.facts.values()), row
    assert is_forgeable(f"__CURSOR=s=1\n_TRANSPORT=syslog\nMESSAGE\nx\n_TRANSPORT=kernel\nMESSAGE={HALTED}\n")
    assert not is_forgeable(f"2026-11-20T12:00:04,123456+00:00 {HALTED}\n")  # dmesg --time-format iso


@for_each("row", [f"12:00:04 dgx kernel: {HALTED}", f"12:00:04.123456 kernel: {HALTED}", f"12:00:04 kernel: {HALTED}"])
def test_no_row_of_syslog_that_was_cut_to_its_clock_is_believed(row: str) -> None:
    for found in read_excerpt((row,)):
        assert not found.facts or any(str(text).endswith(FORGEABLE) for text in found.facts.values())


def test_a_value_of_several_lines_does_not_pass_for_another_entry() -> None:
    """``systemd-cat`` and sd_journal_send take any fields from any user; ``-o verbose`` indents their further lines."""
    head = "Fri 2026-11-20 12:00:04.123456 UTC [s=0123456789abcdef0123456789abcdef;i=1;b=01;m=2;t=3;x=4]"
    fields = ("_BOOT_ID=01", "_TRANSPORT=kernel", f"MESSAGE={HALTED}", "_SOURCE_MONOTONIC_TIMESTAMP=70000000")
    real = (head, *(f"    {field}" for field in fields))
    other = (head, "    _TRANSPORT=journal", "    A=x")
    assert not is_forgeable("\n".join(real))
    for forged in ((*other, *(f"      {field}" for field in fields)), (*other, f"      {head}", *real[1:]),
                   (head, *fields), (*real, f"      {head}")):  # fmt: skip
        assert is_forgeable("\n".join(forged))
        for found in read_excerpt(forged):
            assert not found.facts or any(str(text).endswith(FORGEABLE) for text in found.facts.values())


def test_a_line_of_another_clock_is_not_lost() -> None:
    """Rows of other programs set no clock; a row whose time is not known has that of the one before it."""
    both, dated = f"Nov 20 12:00:04 dgx kernel: [   70.000000] {FIRST}\n", f"Nov 20 12:00:09 dgx kernel: {XID}\n"
    alone = f"[   75.000000] {XID}\n"
    other = "Nov 20 12:00:01 dgx systemd[1]: Started x.\n"
    for text in (other + both + dated, other + both + alone, both + dated, dated + both, dated + alone + both):
        log = times(text)
        assert log is not None
        found = facts(relevant_lines(log), "here")
        assert isinstance(found, KernelLog)
        assert {31, 79} == {xid.number for xid in found.xids}, text


@for_each("own", [f"{EARLIER}boot 1, begun 0: {XID} AER:", f"{MARK} AER: PCIe Bus Error"])
def test_lines_like_dgxchecks_own_are_left_out(own: str) -> None:
    assert told(read(f"4,1,1000000,-;{FIRST}\n4,2,5000000,-;{own}\n")) == []


def test_a_message_of_three_lines_stays_one() -> None:
    lines = (f"NVRM: The NVIDIA GPU {GPU}", "NVRM: (PCI ID: 10de:1db1) installed", "NVRM: fallen off the bus and is")
    for text in ("\n".join(f"[    1.500000] {line}" for line in lines), journal("\n".join(lines), 1500000)):
        assert [(event.bdf, event.seconds) for event in read(text).off_bus] == [(GPU, 1.5)]


def test_lines_of_devices_may_share_a_microsecond() -> None:
    announced = f"pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: {GPU}"
    detailed = f"nvidia {GPU}: PCIe Bus Error: severity=Uncorrected (Fatal), type=x"
    log = read("\n".join(f"[    5.000000] {line}" for line in (announced, detailed, XID)))
    assert (len(log.pcie), len(log.xids)) == (1, 1)


@pytest.mark.parametrize("lines", [
    ("NVRM: This PCI I/O region assigned to your NVIDIA device is invalid:", f"NVRM: BAR1 is 0M @ 0x0 (PCI:{GPU})"),
    ("systemd-udevd: attempt to access beyond end of device", "sda1: rw=0, sector=9767, nr_sectors = 8 limit=0"),
])  # fmt: skip
def test_lines_of_one_message_have_one_time(lines: tuple[str, str]) -> None:
    log = read("\n".join(f"[    5.000000] {line}" for line in lines))
    assert [event.seconds for event in (*log.not_started, *log.host)] == [5.0]


FLOODS = (
    "NVRM: Xid (PCI:0000:07:00): 13, pid={n}, name=a, Graphics",
    "NVRM: API mismatch: the client (pid {n}) has the version 1.2.3, but",
    "nvidia 0000:07:00.0: PCIe Bus Error: severity=Corrected, type={n}",
    "pcieport 0000:00:02.0: AER: Corrected error received: 0000:07:00.0 {n}",
    "mlx5_core 0000:05:00.0: mlx5_cmd_out_err:{n}:(pid 1): ACCESS_REG(0x805) op_mod(0x1) failed, err(-22)",
    "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 11012, Non-fatal, {n}",
    "nvidia-modeset: {n}",
    "NVRM: {n}",
)


@for_each("flood", FLOODS)
def test_a_flood_of_one_kind_evicts_that_kind_alone(flood: str) -> None:
    rare = (
        XID,
        f"NVRM: GPU {GPU}: RmInitAdapter failed! (0x26:0xffff:1290)",
        "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 02 LTSSM Fault Up",
        "mlx5_core 0000:05:00.0: Detected insufficient power on the PCIe slot (27W).",
        LOADED,
    )
    rows = [*rare, *(flood.format(n=n) for n in range(MOST + 500))]
    log = times("\n".join(f"[{number}.000000] {row}" for number, row in enumerate(rows, 1)))
    assert log is not None
    lines = relevant_lines(log)
    assert [row for row in rare if not any(line.endswith(row) for line in lines)] == []
    assert len(lines) == 1 + len(rare) + MOST + 1  # the last says how many of that kind are not there
