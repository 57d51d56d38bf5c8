"""The kernel log of a bug report: an event in several logs counts once, and boots are separated."""

from __future__ import annotations

import pytest

from dgxcheck.readers.bundles.kernel_logs import kernel_log
from dgxcheck.readers.bundles.sections import Section

XID = "NVRM: Xid (PCI:0000:0f:00): 79, pid=1, GPU has fallen off the bus."
LOADS = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  535.113.01"
FIRST = "[    0.000000] Linux version 6.2.0"


def section(title: str, *rows: str) -> Section:
    return Section(title=title, lines=rows, size=len(rows))


def xids(*sections: Section) -> list[str]:
    return [line for line in kernel_log(sections) if "Xid" in line]


DMESG = section("dmesg:", FIRST, f"[    4.000000] {LOADS}", f"[  900.000000] {XID}")
KERN = section(
    "  /var/log/kern.log:",
    f"Nov 22 10:00:04 box kernel: [    4.000000] {LOADS}",
    f"Nov 22 10:00:40 box kernel: [   40.000000] {XID}",
    f"Nov 22 10:01:09 box kernel: [    4.100000] {LOADS}",
    f"Nov 23 10:00:04 box kernel: [    4.000000] {LOADS}",
    f"Nov 23 10:15:00 box kernel: [  900.000000] {XID}",
)
SAVED = section("  /var/log/dmesg:", f"[    4.000000] kernel: {LOADS}")
JOURNAL = section("  journalctl -b -0:", f"Nov 23 10:00:04 box kernel: {LOADS}", f"Nov 23 10:15:00 box kernel: {XID}")
BEFORE = section("  journalctl -b -1:", f"Nov 22 10:00:04 box kernel: {LOADS}", f"Nov 22 10:00:40 box kernel: {XID}")


def test_an_event_that_stands_in_four_logs_counts_once() -> None:
    assert xids(KERN, SAVED, JOURNAL, DMESG)[0] == f"900.000000;{XID}"
    assert len(xids(SAVED, JOURNAL, DMESG)) == 1


@pytest.mark.parametrize("logs", [(KERN, DMESG), (SAVED, JOURNAL, BEFORE, DMESG), (KERN, JOURNAL, BEFORE, DMESG)])
def test_events_of_the_boot_before_are_said_to_be_earlier(logs: tuple[Section, ...]) -> None:
    now, *earlier = xids(*logs)
    assert now == f"900.000000;{XID}"
    assert len(earlier) == 1
    assert "dgxcheck: earlier: boot " in earlier[0]


@pytest.mark.parametrize(("seconds", "earlier"), [("39.000000", False), ("38.999999", True)])
def test_rows_of_one_boot_may_be_a_second_out_of_order(seconds: str, earlier: bool) -> None:
    rows = (KERN.lines[1], f"Nov 22 10:01:09 box kernel: [   {seconds}] {LOADS}")
    (event,) = xids(section(KERN.title, *rows))
    assert ("dgxcheck: earlier: boot " in event) == earlier


@pytest.mark.parametrize("month", ["нояб.", "11月", "kas", "nov.", "Nov"])
def test_the_journal_is_read_in_any_language(month: str) -> None:
    rows = (row.replace("Nov", month) for row in BEFORE.lines)
    assert len(xids(section(BEFORE.title, *rows), DMESG)) == 2


def test_what_dmesg_has_lost_comes_from_the_journal() -> None:
    """The ring buffer was overwritten: the log of the same boot has the Xid, at dmesg's own time."""
    wrapped = section("dmesg:", f"[ 5000.000000] {LOADS}", "[ 5001.000000] nvidia-uvm: Loaded the UVM driver")
    journal = section(
        "  journalctl -b -0:", f"Nov 23 10:15:00 box kernel: {XID}", f"Nov 23 11:23:20 box kernel: {LOADS}"
    )
    assert xids(journal, wrapped) == [f"900.000000;{XID}"]


def test_without_dmesg_the_journal_is_the_log() -> None:
    refused = section("dmesg:", "dmesg: read kernel buffer failed: Operation not permitted")
    found = kernel_log((JOURNAL, BEFORE, refused))
    assert "its times do not count from boot" in found[0]
    assert [("earlier" in line) for line in found if "Xid" in line] == [False, True]


def test_an_earlier_boot_alone() -> None:
    (event,) = xids(BEFORE)
    assert "earlier: boot -1" in event
    assert len(xids(BEFORE, section(KERN.title, *KERN.lines[:4]))) == 1


def test_no_log_at_all() -> None:
    assert kernel_log((section("dmesg:"),)) == ()


def test_boots_before_those_of_the_journal_come_from_the_file() -> None:
    """The script shows three boots of the journal; a file of the logger, with dates alone, goes back further."""
    fell = "NVRM: GPU 0000:{}:00.0: GPU has fallen off the bus."
    boots = ((20, "06"), (21, "07"), (22, "0f"))
    rows = []
    for day, bus in boots:
        rows += [f"2026-11-{day}T10:00:{second}.1+01:00 box kernel: {message}"
                 for second, message in (("04", LOADS), ("40", fell.format(bus)))]  # fmt: skip
    kern = section("  /var/log/kern.log:", *rows)
    found = [line for line in kernel_log((kern, JOURNAL, BEFORE, DMESG)) if "earlier: boot" in line]
    assert [line.partition("boot ")[2].partition(",")[0] for line in found] == ["-3", "-2", "-1"]
    assert ["06:00.0" in found[0], "07:00.0" in found[1], XID in found[2]] == [True, True, True]


RING = section("dmesg:", "[  442.834675] NVRM: nvCheckOkFailedNoLog: a", f"[  900.000000] {XID}")
DBE = "NVRM: Xid (PCI:0000:0f:00): 48, pid=1, An uncorrectable double bit error (DBE) has been detected"


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([f"Nov 23 10:01:40 box kernel: {DBE}"], [DBE, XID]),  # nothing of dmesg is in it
        ([f"Nov 23 10:01:40 box kernel: {DBE}", f"Nov 23 10:15:00 box kernel: {XID}"], [DBE, XID]),
        ([f"Nov 23 10:01:40 box kernel: {XID}", f"Nov 23 10:15:00 box kernel: {XID}"], [XID, XID]),
        ([f"Nov 23 10:15:00 box kernel: {XID}"], [XID]),
        ([f"août 23 10:01:40 box kernel: {DBE}", f"août 23 10:15:00 box kernel: {XID}"], [DBE, XID]),
    ],
)
def test_what_the_kernel_has_overwritten_comes_from_the_journal(rows: list[str], found: list[str]) -> None:
    journal = section("  journalctl -b -0:", *rows)
    log = kernel_log((journal, RING))
    assert [line.partition(";")[2] for line in log if "Xid" in line] == found
    assert not any("earlier: boot" in line for line in log)


def test_a_journal_that_spans_more_than_dmesg_s_beginning_starts_with_the_boot() -> None:
    journal = section(
        "  journalctl -b -0:", f"Nov 23 10:00:00 box kernel: {LOADS}", f"Nov 23 10:50:00 box kernel: {DBE}"
    )
    assert xids(journal, RING) == [f"900.000000;{XID}", f"3000.000000;{DBE}"]


def test_a_line_of_this_boot_that_dmesg_lacks_is_not_lost() -> None:
    journal = section(
        "  journalctl -b -0:", f"Nov 23 10:00:04 box kernel: {LOADS}", f"Nov 23 10:05:00 box kernel: {DBE}",
        f"Nov 23 10:15:00 box kernel: {XID}",
    )  # fmt: skip
    assert xids(journal, DMESG) == [f"300.000000;{DBE}", f"900.000000;{XID}"]
