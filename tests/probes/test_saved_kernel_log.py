"""Saved kernel logs: every form of text and journal, boots apart from each other, and floods of lines."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_probe_kernel_log import GPU, HCA, XID, log, of_text

from dgxcheck.facts.kernel_log import MARK, KernelLog
from dgxcheck.facts.missing import Missing
from dgxcheck.limits import LOG_LINE_CHARACTERS, LOG_LINES
from dgxcheck.source.kernel_log.kmsg import line, relevant_lines
from dgxcheck.source.kernel_log.saved import times
from probes.kernel_log import facts

FORMS = {
    "kmsg": "6,339,5140900,-;{}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:06:00.0\n",
    "kmsg with caller": "4,1,5140900,-,caller=T12;{}",
    "dmesg": "[    5.140900] {}",
    "dmesg -x": "kern  :warn  : [    5.140900] {}",
    "dmesg -r": "<4>[    5.140900] {}",
    "with caller": "[    5.140900][  T512] {}",
    "short-monotonic": "[    5.140900] dgx kernel: {}",
    "kern.log": "Nov 20 12:00:00 dgx kernel: [    5.140900] {}",
}
DATED = {
    "journalctl -k": "Nov  1 12:00:0{n} dgx kernel: {}",
    "dmesg -T": "[Fri Nov 20 12:00:0{n} 2026] {}",
    "dmesg --time-format iso": "2026-11-20T12:00:0{n},123456+01:00 {}",
    "short-iso": "2026-11-20T12:00:0{n}+0100 dgx kernel: {}",
    "syslog without a host": "Nov  1 12:00:0{n} kernel: {}",
    "host cut out": "Nov  1 12:00:0{n}  kernel: {}",
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_with_time_since_boot(form: str) -> None:
    found = of_text(FORMS[form].format(XID))
    assert [(each.bdf, each.seconds) for each in found.xids] == [(GPU, 5.1409)]
    assert found.begins == 5.1409


def journal(boot: str, micro: int, message: object, **more: object) -> str:
    fields = {"_BOOT_ID": boot, "__MONOTONIC_TIMESTAMP": str(micro + 999), "_TRANSPORT": "kernel", "MESSAGE": message}
    return json.dumps(fields | more)


def test_journal_as_json() -> None:
    rows = [
        journal("a", 9000000, XID),
        journal("b", 100, "Linux version 5.15", _SOURCE_MONOTONIC_TIMESTAMP="0"),
        "{ broken", "[1]", '{"a": ' * 3000, json.dumps("x"), "{}",
        journal("b", 5140900, XID, _SOURCE_MONOTONIC_TIMESTAMP="5140900"),
        journal("b", 6000000, [*XID.encode(), 255]),
        journal("b", 7000000, f"{XID}\n{XID.replace('06:00', '07:00')}"),
        journal("b", 8000000, XID, _TRANSPORT="stdout"),
        journal("b", 8000000, None), journal("b", 8000000, [1, "a", 300]), journal("b", 8000000, "\ud800"),
        journal("b", 8000000, XID, __MONOTONIC_TIMESTAMP="soon"),
    ]  # fmt: skip
    found = of_text("\n".join(rows))
    assert [(each.bdf, each.seconds) for each in found.xids] == [
        (GPU, 5.1409), (GPU, 6.000999), (GPU, 7.000999),
    ]  # fmt: skip
    assert found.begins == 0.0


def test_of_two_boots_in_a_journal_the_last_counts_and_the_other_is_remembered() -> None:
    found = of_text("\n".join([journal("a", 9000000, XID), journal("b", 1000000, XID.replace(": 79,", ": 13,"))]))
    assert [each.number for each in found.xids] == [13]
    assert [each.number for each in found.earlier] == [79]


@given(st.lists(st.one_of(st.text(), st.dictionaries(
    st.sampled_from(("MESSAGE", "_BOOT_ID", "_TRANSPORT", "__MONOTONIC_TIMESTAMP", "_SOURCE_MONOTONIC_TIMESTAMP")),
    st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner), max_leaves=5),
).map(json.dumps))))  # fmt: skip
def test_any_json_is_a_log_or_none(rows: list[str]) -> None:
    found = times("\n".join(["{}", *rows]))
    if found is not None:
        for each in relevant_lines(found):
            each.encode()


@pytest.mark.parametrize("form", DATED)
def test_forms_with_dates(form: str) -> None:
    rows = [DATED[form].format(text, n=n) for n, text in enumerate(("Linux version 5.15", XID, XID))]
    found = of_text("\n".join(rows))
    assert [each.seconds for each in found.xids] == [1.0, 2.0]
    assert found.begins == 0.0
    assert isinstance(of_text("\n".join(rows[1:])).begins, Missing)


def test_a_message_of_three_lines() -> None:
    said = (f"NVRM: The NVIDIA GPU {GPU}", "NVRM: (PCI ID: 10de:1db1) installed", "NVRM: fallen off the bus and is")
    for text in ("[ 1.5] " + "\n        ".join(said), "3,1,1500000,-;" + "\\x0a".join(said)):
        assert [(each.bdf, each.seconds) for each in of_text(text).off_bus] == [(GPU, 1.5)]


@pytest.mark.parametrize(
    "between",
    ["Nov 21 12:00:00 dgx kernel: [    0.000000] Linux version 5.15", "-- Boot 0123456789abcdef0123456789abcdef --"],
)
def test_boots_before_the_last_are_kept_apart(between: str) -> None:
    first = f"Nov 20 12:00:00 dgx kernel: [  900.000000] {XID}"
    again = f"Nov 21 12:00:00 dgx kernel: [   99.000000] {XID}"
    found = of_text(f"{first}\n{between}\n{first}\n{between}\n{again}\n")
    assert [each.seconds for each in found.xids] == [99.0]
    assert [(each.bdf, each.number, each.boot, each.text) for each in found.earlier] == [
        (GPU, 79, "-1", "GPU has fallen off the bus.")
    ]  # the first is the same boot, written twice


def test_earlier_boots_of_dates_are_kept_apart() -> None:
    rows = [f"Nov {day} 12:00:0{n} dgx kernel: {text}"
            for day in (18, 19, 20) for n, text in enumerate(("Linux version 5.15", XID))]  # fmt: skip
    found = of_text(
        "\n".join([*rows[:2], *rows, "Nov 20 12:00:05 dgx kernel: NVRM: GPU 0000:06:00.0: GPU has fallen off the bus."])
    )
    assert [each.seconds for each in found.xids] == [1.0]
    assert [each.boot for each in found.earlier] == ["-2", "-1"]
    assert len(found.off_bus) == 2


@pytest.mark.parametrize("text", ["x", "-- Boot 0123456789abcdef0123456789abcdef --", ""])
def test_a_last_boot_without_a_line_is_no_log(text: str) -> None:
    assert times(f"[ 1.0] {XID}\n-- Reboot --\n{text}") is None


def test_dmesg_written_twice_is_one_boot() -> None:
    once = f"[    0.0] Linux version 5.15\n[  100.5] {XID}\n[  400.5] nvidia-nvlink: x\n"
    found = of_text(once * 2)
    assert (len(found.xids), found.earlier) == (1, ())


def test_an_event_is_of_the_load_of_the_driver_before_it() -> None:
    load = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.127.05"
    found = log((1.0, XID), (2.0, load), (3.0, XID), (4.0, f"nvidia {GPU}: enabling device (0 -> 2)"), (5.0, XID))
    assert [each.begun_s for each in found.xids] == [0.0, 2.0, 4.0]
    assert [each.begun_s for each in found.off_bus] == [0.0, 2.0, 4.0]


def test_new_year_is_one_second_long() -> None:
    found = of_text(f"Dec 31 23:59:59 dgx kernel: {XID}\nJan  1 00:00:00 dgx kernel: {XID}")
    assert [each.seconds for each in found.xids] == [0.0, 1.0]


@given(st.text())
def test_any_text_is_a_log_or_none(text: str) -> None:
    for form in (text, f"[ 1.0] {text}", f"6,1,2,-;{text}", f"Feb 30 25:61:61 a kernel: {text}"):
        found = times(form)
        if found is not None:
            lines = relevant_lines(found)
            assert not isinstance(facts(lines, "here"), KernelLog) or lines[0].partition(";")[2]


def test_a_flood_pushes_out_no_xid_and_moves_the_beginning() -> None:
    flood = [f"[ {n}.0] pcieport 0000:00:02.0: AER: Corrected error received: {GPU}" for n in range(1, LOG_LINES + 500)]
    lines = kept_of(f"[ 0.0] Linux version\n[ 0.5] {XID}\n" + "\n".join(flood))
    assert len(lines) == LOG_LINES + 3  # where it begins, the Xid, and how many of the flood are not there
    assert lines[1] == f"0.500000;{XID}"
    assert lines[0] == line(500.0, MARK) or float(lines[0].partition(";")[0]) >= 499
    assert len(kept_of(f"[ 0.0] NVRM: {'x' * 4000}")[1]) < LOG_LINE_CHARACTERS + 20


@pytest.mark.parametrize(
    "noise",
    [f"mlx5_core {HCA}: mlx5_cmd_out_err:838:(pid 9): ACCESS_REG(0x805) op_mod(0x1) failed, err(-22)",
     f"nvidia {GPU}:    [12] Timeout", f"nvidia {GPU}:   device [10de:1db1] error status/mask=00001000/00000000"],
)  # fmt: skip
def test_no_other_flood_pushes_out_an_xid_either(noise: str) -> None:
    rows = "\n".join(f"[ {n}.0] {noise}" for n in range(1, LOG_LINES + 500))
    assert kept_of(f"[ 0.0] Linux version\n[ 0.5] {XID}\n{rows}")[1] == f"0.500000;{XID}"


def kept_of(text: str) -> tuple[str, ...]:
    found = times(text)
    assert found is not None
    return relevant_lines(found)


@pytest.mark.parametrize(
    "message",
    ["audit: type=1400 profile=\"nvidia_modprobe\" name=\"/home/alice/x\"", "nvidia-smi[12]: segfault at 0",
     "EXT4-fs: x",
     "python3[12]: segfault in libnvidia-ml.so"],
)  # fmt: skip
def test_what_is_of_no_use_is_not_kept(message: str) -> None:
    assert kept_of(f"[ 0.0] x\n[ 1.0] {message}") == (line(0.0, MARK),)
