"""Records of the kernel log become events: each reported once, forged ones never, lost ones counted."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from watched import XID_31, XID_79, Log, in_log, kmsg, never, record

from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.facts.missing import BadInput
from dgxcheck.source import state_file
from dgxcheck.survey import log_facts
from dgxcheck.watch.event import Event
from dgxcheck.watch.log_events import log_events, replayed
from dgxcheck.watch.log_follower import GATHER_S, LogFollower, open_kmsg

AER = "pcieport 0000:00:02.0: AER: Uncorrected (Fatal) error received: 0000:06:00.0"
AER_DETAIL = "nvidia 0000:06:00.0: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Requester ID)"


def followed(log: Log, sequence: int = -1) -> tuple[LogFollower, list[Event]]:
    """What is there at the start."""
    follower = LogFollower(log.detach(), sequence, never)
    return follower, [*follower.events()]


@pytest.mark.parametrize("target", ["/dev/null", "/dev/zero", __file__])
def test_what_containers_put_in_place_of_the_log_is_none(target: str, tmp_path: Path) -> None:
    (tmp_path / "kmsg").symlink_to(target)
    with pytest.raises(OSError, match="No such device"):
        open_kmsg(str(tmp_path / "kmsg"))


def later(follower: LogFollower) -> list[Event]:
    """What came since, once the lines are gathered."""
    found = [*follower.events()]
    if follower.due is not None:
        time.sleep(max(0.0, follower.due - time.monotonic()))
        found += follower.events()
    return found


def test_a_real_xid_is_read_and_a_forged_one_is_not() -> None:
    real = record(1, XID_79)
    by_user = record(2, XID_79, priority=12)
    by_crash = record(3, f"NVRM: Xid (PCI:[99]: segfault at 0 ip 0\\x0a{XID_79}")
    read = kmsg(real, by_user, by_crash).records()
    assert [line.partition(";")[2] for line in read.lines[:1]] == [XID_79]
    facts = log_facts(["0.000000;dgxcheck: log begins", *read.lines])
    assert isinstance(facts, KernelLog)
    (event,) = log_events(facts, never)
    assert (event.kind, event.bdf, event.code) == ("xid", "0000:0a:00.0", "79")


def test_adapters_that_stopped_and_one_that_goes_on() -> None:
    hca = "mlx5_core 0000:05:00.0"
    events = in_log(
        f"{hca}: mlx5_health_compromised:432:(pid 0): device's health compromised - reached miss count",
        f"{hca}: Port module event[error]: module 1, Cable error, Power budget exceeded",
        f"{hca} enp5s0f0: TX timeout detected",
    )
    assert {(event.kind, event.bdf) for event in events} == {("hca", "0000:05:00.0")}
    assert {event.code: (event.status, event.text.partition(":")[2].partition(":")[0]) for event in events} == {
        "firmware": (Status.FAIL, " firmware"), "module": (Status.WARN, " module, module 1"),
        "stalled": (Status.WARN, " stalled"),
    }  # fmt: skip


def test_what_was_read_before_a_restart_is_not_read_again() -> None:
    records = [record(number, XID_31.format(pid=number)) for number in range(5)]
    first = kmsg(*records[:3])
    assert len(first.records().lines) == 3
    second = kmsg(*records, sequence=first.sequence)
    assert len(second.records().lines) == 2
    assert second.sequence == 4


@pytest.mark.parametrize("said", [True, False], ids=["overrun", "gap"])
def test_records_that_were_overwritten_are_counted(said: bool) -> None:
    before, after = record(7, XID_79), record(20, XID_79)
    read = kmsg(before, *([None] if said else []), after).records()
    assert (read.lost, len(read.lines)) == (12, 2)


def test_records_that_were_overwritten_before_the_first_start_are_not() -> None:
    assert kmsg(record(5000, XID_79)).records().lost == 0


def test_what_is_no_record_is_passed_over() -> None:
    read = kmsg(b"", b"\xff\xfe", record(1, XID_79)).records()
    assert read.lines == ()  # the end of a file that is no log
    assert len(kmsg(b"garbage\n", record(1, XID_79)).records().lines) == 1


def test_a_flood_is_read_in_turns() -> None:
    log = kmsg(*(record(number, "usb 1-1: new device") for number in range(1200)))
    assert [log.records().more for _ in range(3)] == [True, True, False]


def test_an_error_of_several_lines_is_one_event() -> None:
    log = Log()
    follower, before = followed(log)
    assert before == []
    log.write(record(0, AER, 10.0))
    assert [*follower.events()] == []
    log.write(record(1, AER_DETAIL, 10.1), record(2, "nvidia 0000:06:00.0:    [20] UnsupReq", 10.1))
    (event,) = later(follower)
    assert (event.kind, event.bdf, event.code, event.status) == ("pcie-error", "0000:06:00.0", "fatal", Status.FAIL)
    assert follower.sequence == 2
    follower.close()


def test_errors_from_before_a_driver_load_are_no_news_at_the_first_start_only() -> None:
    load = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.14"
    for sequence, due in ((-1, []), (0, ["79"])):
        log = Log()
        log.write(record(1, XID_79, 10.0), record(2, load, 20.0))
        follower, events = followed(log, sequence)
        assert [event.code for event in events] == due
        follower.close()


def test_what_was_logged_long_before_the_start_has_its_age(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_file, "now", lambda: (10_010.0, ""))
    log = Log()
    log.write(record(1, XID_79, 10.0), record(2, XID_31.format(pid=1), 10_000.0))
    follower, (old, new) = followed(log)
    assert (old.text[-47:], new.text[-9:]) == ("GPU has fallen off the bus.; logged 3 hours ago", "MMU Fault")
    follower.close()


def test_the_sequence_waits_for_the_events() -> None:
    """A restart while lines are gathered must not lose them."""
    log = Log()
    follower, _ = followed(log)
    log.write(record(0, XID_79))
    assert [*follower.events()] == []
    assert follower.sequence == -1
    assert later(follower)
    assert (follower.sequence, GATHER_S <= 1) == (0, True)
    follower.close()


def test_off_the_bus_is_told_once_with_and_without_an_xid() -> None:
    without = "NVRM: GPU 0000:0a:00.0: GPU has fallen off the bus."
    assert [(event.kind, event.status) for event in in_log(XID_79, without)] == [("xid", Status.FAIL)]
    assert [(event.kind, event.status) for event in in_log(without)] == [("off-bus", Status.FAIL)]


@pytest.mark.parametrize(
    ("message", "kind", "code", "status"),
    [
        (XID_31.format(pid=7), "xid", "31", Status.PASS),
        ("NVRM: Xid (PCI:0000:06:00): 48, pid=1, DBE (double bit error)", "xid", "48", Status.FAIL),
        ("NVRM: Xid (PCI:0000:06:00): 9999, what", "xid", "9999", Status.WARN),
        ("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 LTSSM Fault Up", "sxid", "20034",
         Status.FAIL),
        ("NVRM: GPU 0000:06:00.0: RmInitAdapter failed! (0x26:0xffff:1290)", "not-started", "", Status.FAIL),
        ("EDAC MC1: 3 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1)", "host",
         "memory CPU_SrcID#0_Ha#0_Chan#1_DIMM#0", Status.PASS),
        ("mlx5_core 0000:05:00.0: Port module event: module 0, Cable unplugged", "hca", "unplugged", Status.PASS),
        ("mlx5_core 0000:05:00.0: Port module event[error]: module 0, Cable error, High Temperature", "hca", "module",
         Status.WARN),
        ("mlx5_core 0000:05:00.0: Detected insufficient power on the PCIe slot (27W).", "hca", "power", Status.WARN),
        ("nvme nvme0: controller is down; will reset: CSTS=0xffffffff", "host", "disk nvme0", Status.WARN),
        ("pcieport 0000:00:02.0: AER: Uncorrected (Non-Fatal) error received: 0000:06:00.0", "pcie-error", "nonfatal",
         Status.WARN),
        ("pcieport 0000:00:02.0: AER: Corrected error received: 0000:06:00.0", "pcie-error", "corrected", Status.PASS),
        ("Kernel panic - not syncing: Fatal exception", "host", "panic", Status.FAIL),
        ("BUG: kernel NULL pointer dereference, address: 0000000000000008", "host", "oops", Status.FAIL),
    ],
)  # fmt: skip
def test_every_kind_of_record(message: str, kind: str, code: str, status: Status) -> None:
    (event,) = in_log(message)
    assert (event.kind, event.code, event.status) == (kind, code, status)
    assert event.seconds == 10.0
    assert kind != "sxid" or event.text.endswith(" at port 30")


HE = "[Hardware Error]: "
BEFORE = ("BERT: Error records from previous boot:", f"{HE}event severity: fatal", f"{HE} Error 0, type: fatal")


@pytest.mark.parametrize(("section", "due"), [
    ((f"{HE}  section_type: PCIe error", f"{HE}  device_id: 0000:06:00.0"), ("pcie-error", Status.WARN)),
    ((f"{HE}  section type: unknown, 81212a96-09ed-4996-9471-8d729c8e69ed",), ("host", Status.WARN)),
])  # fmt: skip
def test_what_firmware_kept_from_before_the_boot_warns(section: tuple[str, ...], due: tuple[str, Status]) -> None:
    assert [(event.kind, event.status) for event in in_log(*BEFORE, *section)] == [due]


X = "NVRM: Xid (PCI:0000:06:00): "


@pytest.mark.parametrize(("messages", "due"), [
    ([f"{X}48, pid=1, DBE", f"{X}63, pid=1, Row remapper", f"{X}94, pid=1, Contained"],
     {"48": Status.WARN, "63": Status.WARN, "94": Status.WARN}),
    ([f"{X}48, pid=1, DBE", f"{X}95, pid=1, Uncontained"], {"48": Status.FAIL, "95": Status.FAIL}),
    ([f"{X}48, pid=1, DBE", f"{X.replace('06', '07')}94, pid=1, Contained"], {"48": Status.FAIL, "94": Status.WARN}),
    ([f"{X}149, x Nonfatal XC0 y", f"{X}45, pid=9, Ch 00000001 caused by previous Xid 149"],
     {"149": Status.FAIL, "45": Status.PASS}),
    ([f"{X}149, x Nonfatal XC0 y"], {"149": Status.WARN}),
])  # fmt: skip
def test_an_xid_is_as_grave_as_what_is_logged_beside_it_says(messages: list[str], due: dict[str, Status]) -> None:
    assert {event.code: event.status for event in in_log(*messages)} == due


def test_an_xid_that_fails_when_repeated_does_so_over_restarts() -> None:
    facts = log_facts(["0.0;dgxcheck: log begins", "5.0;NVRM: Xid (PCI:0000:06:00): 74, NVLink: error"])
    assert isinstance(facts, KernelLog)
    assert [event.status for event in log_events(facts, lambda bdf, code: 0)] == [Status.WARN]
    assert [event.status for event in log_events(facts, lambda bdf, code: 1)] == [Status.FAIL]


def test_a_flood_of_which_few_lines_are_kept_is_counted_whole(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("\n".join(f"[{number}.000000] {XID_31.format(pid=number)}" for number in range(1, 3001)))
    *_, last = replayed(str(path))
    assert last.total == 3000


@pytest.mark.parametrize("text", [
    "[Mo Nov 30 10:00:01 2026] {}\n", "[lun. nov. 30 10:00:01 2026] {}\n",
    '{{"__REALTIME_TIMESTAMP":"1764496801000000","_TRANSPORT":"kernel","MESSAGE":"{}"}}\n',
    "kern  :err   : [   70.512345] {}\n", "12:[   70.512345] {}\n", "> [   70.5] {}\n",
    "node1: [    0.000000] Linux version 6.8.0\nnode1: [   70.512345] {}\n",
    "node1: Nov 30 10:00:00 node1 kernel: usb 1-1: new device\nnode1: Nov 30 10:00:01 node1 kernel: {}\n",
    "Nov 30 10:00:00 gpu2 kernel: usb 1-1: new device\nNov 30 10:00:01 gpu1 kernel: {}\n",
    "Nov 30 10:00:00 ubuntu kernel: [    0.000000] Linux version 6.8.0\nNov 30 10:00:04 ubuntu kernel: [    4.000000]"
    " NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.54.15\nNov 30 10:01:10 dgx01 kernel: [   70.512345] {}\n",
])  # fmt: skip
def test_a_saved_log_in_another_form(text: str, tmp_path: Path) -> None:
    """``dmesg -T`` in the language of its user, the journal without the kernel's own time; behind what other programs
    put before a row; beside another host without trouble; of a host that is given its name after boot."""
    (tmp_path / "kern.log").write_text(text.format(XID_79))
    (found,) = replayed(str(tmp_path / "kern.log"))
    assert (found.event.code, found.event.bdf) == ("79", "0000:0a:00.0")


@pytest.mark.parametrize("row", [
    "node{n}: [Tue Mar  3 08:11:09 2026] {xid}", "node{n}: [   70.512345] {xid}",
    "Mar  3 08:11:09 node{n} kernel: [   12.000000] {xid}", "2026-03-03T08:11:09+00:00 node{n}.example kernel: {xid}",
    '{{"_HOSTNAME":"node{n}","__REALTIME_TIMESTAMP":"1764496801000000","__MONOTONIC_TIMESTAMP":"70512345",'
    '"_TRANSPORT":"kernel","MESSAGE":"{xid}"}}',
])  # fmt: skip
def test_a_saved_log_of_several_hosts_is_refused(row: str, tmp_path: Path) -> None:
    path = tmp_path / "kern.log"
    path.write_text("".join(f"{row.format(n=n, xid=XID_79)}\n" for n in (1, 2)))
    with pytest.raises(BadInput, match=r"the logs of 2 hosts, as node1 and node2; give that of one$"):
        [*replayed(str(path))]
    path.write_text("".join(f"{row.format(n=1, xid=XID_79.replace('79', str(xid)))}\n" for xid in (79, 48)))
    assert [each.event.code for each in replayed(str(path))] == ["79", "48"]


@pytest.mark.parametrize(("down", "up"), [
    ("ens3np0: Link down", "ens3np0: Link up"), ("mlx5_3: Port: 1 Link DOWN", "mlx5_3: Port: 1 Link ACTIVE"),
    ("eth0: NIC Link is Down", "eth0: NIC Link is Up, 25000 Mbps"),
    ("eth0: Link is down", "eth0: Link is up at 1000 Mbps"),
])  # fmt: skip
@pytest.mark.parametrize(("seconds", "again", "status"), [
    (12, "{up}", Status.PASS), (4000, "{up}", Status.WARN), (12, "eth7: Link up", Status.WARN),
])  # fmt: skip
def test_an_interface_that_is_set_up_at_boot_is_no_alarm(
    seconds: int, again: str, status: Status, down: str, up: str, tmp_path: Path
) -> None:
    row = "[{:5}.{}00000] mlx5_core 0000:40:00.0 {}\n"
    start = "[    0.000000] Linux version 6.8.0\n"
    lines = ((0, 9, up), (seconds, 1, down), (seconds + 3, 2, again.format(up=up)))
    (tmp_path / "kern.log").write_text(start + "".join(row.format(*each) for each in lines))
    assert [each.event.status for each in replayed(str(tmp_path / "kern.log"))] == [status]


def test_where_a_disk_is_is_no_event() -> None:
    facts = log_facts(["1.5;nvme nvme0: pci function 0000:22:00.0"])
    assert isinstance(facts, KernelLog)
    assert [each.trouble for each in facts.host] == ["located"]
    assert not log_events(facts, lambda *_: 0)
