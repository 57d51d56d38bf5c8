"""Excerpts of kernel logs as people paste them: every form of time, and none."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from readers_text import one, unread

from dgxcheck.facts.bdf import nameless
from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.kernel_messages.gpu import xid
from dgxcheck.readers.kernel_log import excerpt
from dgxcheck.readers.kernel_log.forms import as_rows
from dgxcheck.readers.layout.undo import undone
from probes.kernel_log import facts as events

XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=12, name=python, GPU has fallen off the bus."
SXID = "nvidia-nvswitch2: SXid (PCI:0000:c4:00.0): 20034, Fatal, Link 28 LTSSM Fault Up"
LOG = "\n".join(
    (
        "[  600.000001] NVRM: GPU at PCI:0000:3b:00: GPU-0",
        f"[  600.000002] {XID}",
        f"[  600.000003] {SXID}",
        "[  600.000004] Kernel panic - not syncing: Fatal exception",
    )
)
FORMS = (
    "[ 1234.567890] {}",
    "[1234567.890123] {}",
    "kern  :warn  : [ 1234.567890] {}",
    "[Sun Feb 23 16:24:18 2025] {}",
    "Feb  3 06:24:18 node7 kernel: {}",
    "Feb 23 03:28:16 kernel: {}",
    "Feb 23 03:28:16  kernel: {}",
    "Feb 23 16:24:18 node7 kernel: [ 1234.567890] {}",
    "2025-02-23T16:24:18.123456+01:00 node7 kernel: {}",
    "2025-02-23T16:24:18,123456+01:00 {}",
    "2025-02-23 16:24:18 {}",
    "[Feb23 16:24] {}",
    "4,100,1234567890,-;{}",
    "[ 1234.567890] node7 kernel: {}",
    "<4>1 2025-02-23T16:24:18.123456+01:00 node7 kernel - - - {}",
    "<4>Feb 23 16:24:18 node7 kernel: {}",
    "Sun 2025-02-23 16:24:18 CET node7 kernel: {}",
    "1740324258.123456 node7 kernel: {}",
    "Feb 23 16:24:18 node7 {}",
    "  Warning  XIDError  5m (x3 over 1h)  kernel-monitor, node7  {}",
    "[Sun Feb 23 16:24:18] {}",
    "april 24 16:22:15 node7 kernel: {}",
    "févr. 24 16:22:15 node7 kernel: {}",
    "11月 15 14:15:47 node7 kernel: {}",
    "192.0.2.7: kern: warning: [2026-04-22T21:26:20.599716692Z]: {}",
    "kern:     err: [2026-04-22T21:26:20.599716692Z]: {}",
    "16:24:18  {}",
    '[XID found] (54 minutes ago) "{}"',
    "XID: {}",
    '{{"log":"{}\\n","stream":"stderr"}}',
    '{{"@timestamp":"2025-02-23T16:24:18Z","host":{{"name":"node7"}},"message":"kernel: {}"}}',
    '2025-02-23 16:24:18,node7,"{}"',
    "| 10:00 | {} | lost |",
    "kernel: {}",
    "{}",
)
ENTRY = {"_TRANSPORT": "kernel", "__REALTIME_TIMESTAMP": "1740324258123456", "__MONOTONIC_TIMESTAMP": "1234999999",
         "_SOURCE_MONOTONIC_TIMESTAMP": "1234567890"}  # fmt: skip
HEAD = f"Sun 2025-02-23 16:24:18.123456 CET [s={'0' * 32};i=1;b=ab;m=1;t=1;x=1]"


def _as_json(message: str) -> str:
    return json.dumps({**ENTRY, "MESSAGE": message})


def _pretty(message: str) -> str:
    rows = ",\n".join(f'\t"{name}" : {json.dumps(value)}' for name, value in {**ENTRY, "MESSAGE": message}.items())
    return f"{{\n{rows}\n}}"


def _export(message: str) -> str:
    return (
        "\n".join(f"{name}={value}" for name, value in {"__CURSOR": "s=1", **ENTRY, "MESSAGE": message}.items()) + "\n"
    )


def _verbose(message: str) -> str:
    return "\n".join((HEAD, *(f"    {name}={value}" for name, value in {**ENTRY, "MESSAGE": message}.items())))


def _of_dmesg(message: str) -> str:
    return f'   {{\n      "pri": 4,\n      "time":  1234.567890,\n      "msg": {json.dumps(message)}\n   }},'


ENTRIES = (_as_json, _pretty, _export, _verbose, _of_dmesg)


def log(text: str) -> tuple[list[tuple[str, int]], list[str], bool]:
    """Xids, SXids, and whether it is known where the log begins."""
    found = one(excerpt.read_excerpt, text)
    read = events([str(fact) for key, fact in found.facts.items() if key.startswith("kmsg")], "log")
    assert isinstance(read, KernelLog)
    return [(xid.bdf, xid.number) for xid in read.xids], [each.bdf for each in read.sxids], read.begins == 0.0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("before", ["", "> ", "    "])
def test_every_form_gives_the_same_events(form: str, before: str) -> None:
    text = "\n".join(before + form.format(line) for line in (XID, SXID))
    assert log(text) == ([("0000:3b:00.0", 79)], ["0000:c4:00.0"], False)
    assert unread([one(excerpt.read_excerpt, text)], text) == []


@pytest.mark.parametrize("form", ENTRIES)
@pytest.mark.parametrize("laid_out", [False, True])
def test_every_kind_of_entry_gives_the_same_events(form: Callable[[str], str], laid_out: bool) -> None:
    text = "\n".join(form(line) for line in (XID, "usb 1-1: new device", SXID))
    text = "\n".join(undone(tuple(text.split("\n"))).lines) if laid_out else text
    found = one(excerpt.read_excerpt, text)
    assert log(text)[:2] == ([("0000:3b:00.0", 79)], ["0000:c4:00.0"])
    assert unread([found], text) == []
    assert {str(fact).partition(";")[0] for fact in found.facts.values()} == {"0.000000", "1234.567890"}


def test_an_entry_of_bytes_with_the_other_stamps() -> None:
    entry = {**ENTRY, "_SOURCE_REALTIME_TIMESTAMP": ENTRY["__REALTIME_TIMESTAMP"],
             "__MONOTONIC_TIMESTAMP": ENTRY["_SOURCE_MONOTONIC_TIMESTAMP"]}  # fmt: skip
    del entry["__REALTIME_TIMESTAMP"], entry["_SOURCE_MONOTONIC_TIMESTAMP"]
    assert [*as_rows((json.dumps({**entry, "MESSAGE": [*XID.encode()]}),))] == [*as_rows((_as_json(XID),))]
    ((_, row),) = as_rows((json.dumps({**entry, "MESSAGE": [255, 256]}),))
    assert (row or "").endswith("[255, 256]")


_WITHOUT = {"__MONOTONIC_TIMESTAMP": "", "_SOURCE_MONOTONIC_TIMESTAMP": ""}
_DATED = f"2025-02-23T15:24:18.123456+00:00 kernel: {XID}"
_SINCE_BOOT = f"[ 1234.567890] {XID}"


@pytest.mark.parametrize(("members", "row"), [
    ({}, _DATED.replace(XID, _SINCE_BOOT)), ({"SYSLOG_FACILITY": "0"}, _DATED.replace(XID, _SINCE_BOOT)),
    ({"SYSLOG_FACILITY": "1"}, None), (_WITHOUT, _DATED), ({**_WITHOUT, "__REALTIME_TIMESTAMP": "x"}, None),
    ({"__REALTIME_TIMESTAMP": "-1"}, _SINCE_BOOT), ({"__REALTIME_TIMESTAMP": "\u0661"}, _SINCE_BOOT),
    ({"__REALTIME_TIMESTAMP": str(1 << 52)}, _SINCE_BOOT), ({"__REALTIME_TIMESTAMP": "9" * 19}, _SINCE_BOOT),
    ({"_SOURCE_MONOTONIC_TIMESTAMP": "9" * 19}, _DATED),
    ({"MESSAGE": ["a"]}, _DATED.replace(XID, "[ 1234.567890] ['a']")),
])  # fmt: skip
def test_an_entry_has_what_times_can_be_read(members: dict[str, object], row: str | None) -> None:
    """Microseconds since 1970 and since boot."""
    assert [*as_rows((json.dumps({**ENTRY, "MESSAGE": XID, **members}),))] == [(0, row)]


def test_an_entry_without_a_message_and_one_of_a_program_in_dmesg_as_json() -> None:
    assert XID not in str([*as_rows(tuple(_export(XID).replace("MESSAGE=", "OTHER=").split("\n")))])
    of_dmesg = {"fac": "kern", "pri": "warn", "time": 1234.56789, "msg": XID}
    for facility, read in (("kern", True), ("user", False)):
        assert (XID in str([*as_rows((json.dumps({**of_dmesg, "fac": facility}),))])) == read


@pytest.mark.parametrize(("types", "domain"), [
    (("Translated",), "DMA"), (("Passthrough",), "identity"), (("Translated", "Translated"), "DMA"),
    (("Translated", "Passthrough"), None), ((), None),
])  # fmt: skip
def test_the_type_that_iommu_groups_have(types: tuple[str, ...], domain: str | None) -> None:
    rows = [f"[    0.40000{at}] iommu: Default domain type: {words} " for at, words in enumerate(types)]
    assert one(excerpt.read_excerpt, "\n".join([*rows, f"[ 1234.567890] {XID}"])).facts.get(excerpt.DOMAIN) == domain


OF_A_PROGRAM = f"user: warning: [2026-04-22T21:26:20.599716692Z]: {XID}"


SHORT = "NVRM: Xid (PCI:0000:01:00): 79"


@pytest.mark.parametrize(
    "row",
    [
        "Xid 79: GPU has fallen off the bus", "Look for NVRM: Xid", "NVRM shows Xid (PCI:..): 79", OF_A_PROGRAM,
        f"Our runbook says: when you see a line such as {XID} then reboot the host.",
        f'> Q: what does "{SHORT}" mean in my log?', f"and then it said `{XID}` and stopped",
        f"$ alias xids='journalctl -k | grep \"{SHORT}\"'", f"Documentation example: {XID}",
    ],
)  # fmt: skip
def test_sentences_about_an_xid_are_none(row: str) -> None:
    assert not any(found.facts for found in excerpt.read_excerpt((row,)))


@pytest.mark.parametrize("form", ENTRIES[:4])
def test_an_entry_of_a_program_is_not_the_kernel_s(form: Callable[[str], str]) -> None:
    assert not any(
        found.facts for found in excerpt.read_excerpt(tuple(form(XID).replace("kernel", "stdout").split("\n")))
    )
    forged = form("a program\n" + XID) if form in (_as_json, _pretty) else form("a program")
    assert "79" not in str([found.facts for found in excerpt.read_excerpt(tuple(forged.split("\n")))])


@pytest.mark.parametrize(
    "row",
    [f"<12>1 2025-02-23T16:24:18Z n kernel - - - {XID}", f"12,1,2,-;{XID}", f"<12>Feb 23 16:24:18 n kernel: {XID}"],
)
def test_what_a_user_wrote_to_the_log_is_not_the_kernel_s(row: str) -> None:
    assert not any(found.facts for found in excerpt.read_excerpt((row,)))


@given(
    st.lists(
        st.one_of(
            st.text(max_size=60),
            st.sampled_from(
                [*map(_as_json, (XID, "x")), HEAD, "{", "}", "__CURSOR=s", "MESSAGE=x", '"msg": "x"', '"time": 1.5,']
            ),
        ),
        max_size=12,
    )
)
def test_any_text_is_taken_apart_without_a_wrong_line(lines: list[str]) -> None:
    rows = [*as_rows(tuple(lines))]
    assert {number for number, _ in rows} <= {*range(len(lines))}
    assert all("\n" not in row for _, row in rows if row is not None and row not in lines)


def test_a_log_of_persistent_storage_is_known_with_its_heads() -> None:
    text = "Panic#1 Part1\n<0>[   12.345678] Kernel panic - not syncing: Fatal exception\n<4>[   12.345699] ---[ end"
    read = events([str(fact) for fact in one(excerpt.read_excerpt, text).facts.values()], "log")
    assert isinstance(read, KernelLog)
    assert [(each.trouble, each.part) for each in read.host] == [("panic", "Fatal exception")]
    assert unread([one(excerpt.read_excerpt, text)], text) == []


def test_a_whole_log_reaches_back_to_boot() -> None:
    text = f"[    0.000000] Linux version 6.8.0\n[    0.000000] Command line: quiet\n[ 1234.567890] {XID}"
    assert log(text)[2]


def test_seconds_after_the_row_before() -> None:
    text = f"[Feb23 16:24] nvidia 0000:3b:00.0: enabled\n[  +0.000012] {XID}\nThat was all."
    assert log(text)[0] == [("0000:3b:00.0", 79)]
    assert unread([one(excerpt.read_excerpt, text)], text) == [3]


def test_a_log_that_says_nothing_of_gpus_is_known_and_states_nothing() -> None:
    text = "[ 1234.567890] usb 1-1: new device\n2025-02-23 16:24:18 INFO step 100"
    found = one(excerpt.read_excerpt, text)
    assert (found.facts, unread([found], text)) == ({}, [2])
    assert excerpt.read_excerpt(("2025-02-23 16:24:18 INFO step 100",)) == ()


def test_a_program_cannot_write_a_line_of_its_own() -> None:
    """Name and file of a crashed program are logged with their newlines, which dmesg indents."""
    text = f"[ 1234.567890] a\n[ 1300.000001] NVRM: loading NVIDIA UNIX\n                {XID}\n     [ 9.000001] {XID}"
    assert log(text)[0] == []
    assert log(f"{XID}\n[ 1300.000001] NVRM: loading NVIDIA UNIX")[0] == []


def test_lines_without_a_time_are_not_of_one_moment() -> None:
    found = one(excerpt.read_excerpt, f"{XID}\n{XID.replace('3b', '5e')}")
    first, second = (str(found.facts[f"kmsg {number}"]).partition(";")[0] for number in (1, 2))
    assert float(second) - float(first) >= 3600


def test_an_xid_names_the_one_that_caused_it() -> None:
    row = "[ 12.345678] NVRM: Xid (PCI:0000:dc:00): {}, pid=18, name=python3, {}"
    caused = row.format(45, "Ch 00000001 caused by previous Xid 149")
    assert log(caused)[0] == [("0000:dc:00.0", 45), ("0000:dc:00.0", 149)]
    assert log(f"{row.format(149, 'NETIR')}\n{caused.replace('12.3', '12.4')}")[0].count(("0000:dc:00.0", 149)) == 1
    assert log(caused.replace("python3", "x, Ch 00000001"))[0] == [("0000:dc:00.0", 45)]


def test_a_gpu_that_fails_while_the_driver_loads_is_not_of_the_load_before() -> None:
    text = """\
[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0
               NVRM: (PCI ID: 10de:26b5) installed in this system has
               NVRM: fallen off the bus and is not responding to commands.
[ 1843.439662] NVRM: The NVIDIA probe routine failed for 1 device(s).
[ 1843.439669] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.158.01
"""
    read = events([str(fact) for fact in one(excerpt.read_excerpt, text).facts.values()], "log")
    assert isinstance(read, KernelLog)
    assert [(each.bdf, each.past) for each in read.off_bus] == [("0000:b3:00.0", False)]


@pytest.mark.parametrize(("address", "due"), [
    ("PCI:...", nameless(0)), ("PCI:0000:xx:00", nameless(0)), ("PCI:<bus id>", nameless(0)),
    ("xxxx:xx:xx", nameless(0)), ("PCI:0000:4b:00", "0000:4b:00.0"),
    ("PCI:0000:10:1c", "0000:10:1c.0"), ("0000:4b:00", "0000:4b:00.0"),
    ("PCI:0000:4b:00 GPU-I:05", "0000:4b:00.0"),
])  # fmt: skip
def test_a_bus_id_that_was_made_unreadable_is_of_a_gpu_that_is_not_named(address: str, due: str) -> None:
    row = f"[  812.117000] NVRM: Xid ({address}): 79, pid=1, GPU has fallen off the bus."
    kept = [
        str(fact).partition(";")[2]
        for key, fact in one(excerpt.read_excerpt, row).facts.items()
        if key.startswith("kmsg")
    ]
    assert [found.bdf for line in kept if (found := xid(line)) is not None] == [due]


def test_masks_that_differ_are_different_gpus() -> None:
    rows = [f"[  81{n}.117000] NVRM: Xid (PCI:0000:{each}:00): 48" for n, each in enumerate(("xx", "yy", "xx"))]
    facts = one(excerpt.read_excerpt, "\n".join(rows)).facts
    found = [xid(str(fact).partition(";")[2]) for key, fact in sorted(facts.items()) if key.startswith("kmsg")]
    assert [each.bdf for each in found if each is not None] == [nameless(0), nameless(1), nameless(0)]


def test_a_log_of_several_hosts_is_read_by_host() -> None:
    text = "\n".join((
        f"Feb 23 16:24:18 node7 kernel: {XID}",
        f"Feb 23 16:24:19 node8.example.org kernel: {SXID}",
        "Feb 23 16:24:20 node7 kernel: NVRM: Xid (PCI:0000:5e:00): 48, pid=1, DBE",
        "Feb 23 16:20:00 localhost kernel: Linux version 6.8",
    ))  # fmt: skip
    seven, eight = excerpt.read_excerpt(tuple(text.splitlines()))
    assert (seven.host, eight.host) == ("node7", "node8")
    assert "SXid" not in str(seven.facts)
    assert "SXid" in str(eight.facts)
    assert one(excerpt.read_excerpt, text.replace("node8.example.org", "node7")).host == ""


LOST = "[Fri Nov 20 10:00:00 2026] NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python3, GPU has fallen off the bus."


@pytest.mark.parametrize("line", [
    f"dgx017 login: {LOST}", f"root@dgx017:~# {LOST}",
    f"/var/log/dmesg.0:{LOST}", f"dmesg-dgx017.txt:12:{LOST}", f"dgx017 | {LOST}", f"| {LOST} |", f"dgx017\t{LOST}",
    f'{{"host":"dgx017","msg":"{LOST}"}}', f'{{"log":"{LOST}\\n","stream":"stdout","time":"2026-11-20T10:00:01Z"}}',
    f"2026-11-20T10:00:00.123456789Z stderr F {LOST}", f"2026-11-20 10:00:01,123 INFO dmesg: {LOST}",
    f'        "{LOST}",',
    f'2026-11-20,dgx017,"{LOST}"', f'    "stdout": "{LOST}\\n[Fri Nov 20 10:00:09 2026] usb 1-1: new device",',
])  # fmt: skip
def test_a_row_behind_something_else(line: str) -> None:
    """A file's name, a pipe, JSON, a container's log, Ansible's stdout_lines before a row of ``dmesg -T``."""
    alone, framed = (one(excerpt.read_excerpt, "\n".join(undone((text,)).lines)).facts for text in (LOST, line))
    assert framed == alone


@pytest.mark.parametrize("line", [XID.removeprefix("NVRM: "), f'a="{"x" * 300} kernel: [16450076.435595] {XID}'])
def test_a_line_without_its_driver_and_one_behind_a_long_one(line: str) -> None:
    assert [fact for fact in one(excerpt.read_excerpt, line).facts.values() if XID in str(fact)]


def test_a_line_of_nvidia_fs_without_a_time() -> None:
    """NVIDIA/gds-nvidia-fs issue 14."""
    line = "nvidia-fs:nvfs_pin_gpu_pages:1292 Error ret -22 invoking nvidia_p2p_get_pages"
    assert one(excerpt.read_excerpt, line).facts
