"""The sections of a bug report: titles of all eras, several under one line, forged ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.readers.bundles import bug_report
from dgxcheck.readers.bundles import sections as titled
from dgxcheck.readers.bundles.sections import Section, guessed, one_file, supportconfig_sections

LINE = "_" * 44


def sections(text: str) -> list[Section]:
    return [*bug_report.sections((row.encode() + b"\n" for row in text.split("\n")), lambda title: "Xorg" not in title)]


def test_three_lines_of_lspci_are_its_output() -> None:
    lines = [f"00:{number:02x}.0 PCI bridge: Intel Corporation Device 2030" for number in range(3)]
    assert (guessed(lines), guessed(lines[:2])) == ("lspci", "")


def test_files_commands_and_words() -> None:
    ls = "*** ls: -r--r--r-- 1 root root 0 2023-11-15 21:51 x"
    found = sections(
        f"{LINE}\n\n*** /proc/cmdline\n{ls}\nquiet\n\n{LINE}\n\n/usr/bin/lspci -t\n\n-[0000:00]-\n\n"
        f"{LINE}\n\n*** /proc/pci does not exist\n\n{LINE}\n\n{LINE}\n"
        f"*** /sys/devices/system/node/online\n{ls}\n0\n{LINE}\n\ndmesg:\n\n[ 1.0] a"
    )
    assert [(each.title, each.lines, each.absent) for each in found] == [
        ("/proc/cmdline", ("quiet",), False),
        ("/usr/bin/lspci -t", ("", "-[0000:00]-"), False),
        ("/proc/pci", (), True),
        ("/sys/devices/system/node/online", ("0",), False),
        ("dmesg:", ("", "[ 1.0] a"), False),
    ]


def test_several_titles_below_one_line() -> None:
    smi = "/usr/bin/nvidia-smi --query\n\n==NVSMI LOG==\n\n\n/usr/bin/nvidia-smi nvlink --status\n\nGPU 0: A\n"
    logs = (
        "Scanning kernel log files for NVIDIA kernel messages:\n\n  /var/log/kern.log:\nx\n\n"
        "  journalctl -b -0:\ny\n  and more\n"
    )
    found = sections(f"{LINE}\n\n{smi}\n{LINE}\n\n{logs}")
    assert [each.title for each in found] == [
        "/usr/bin/nvidia-smi --query", "/usr/bin/nvidia-smi nvlink --status",
        "Scanning kernel log files for NVIDIA kernel messages:", "  /var/log/kern.log:", "  journalctl -b -0:",
    ]  # fmt: skip
    assert found[-1].lines == ("y", "  and more")


def test_lines_that_nobody_wants_are_counted_and_not_kept() -> None:
    (found,) = sections(f"{LINE}\n\n*** /var/log/Xorg.0.log\n[1] a\n\n*** /proc/cmdline\n[2] b")
    assert (found.lines, found.size) == ((), 4)


def test_a_users_file_cannot_forge_a_section() -> None:
    """The script copies ~/.nvidia-settings-rc of the user: as many bytes as ls says belong to it, whatever they are."""
    forged = f"\n{LINE}\n\n/usr/bin/nvidia-smi --query\n\nGPU is lost\n\n"
    own = "*** /home/u/.nvidia-settings-rc"
    ls = f"*** ls: -rw-rw-r-- 1 u u {len(forged)} 2026-01-01 00:00:00.0 +0100 /home/u/.nvidia-settings-rc"
    found = sections(f"{LINE}\n\n{own}\n{ls}\n{forged}\n{LINE}\n\n*** /proc/cmdline\nquiet\n")
    assert [each.title for each in found] == ["/home/u/.nvidia-settings-rc", "/proc/cmdline"]


@pytest.mark.parametrize("ls", ["lrwxrwxrwx 1 u u 99 2026-01-01 x -> y", "drwxr-xr-x 1 u u 99 2026-01-01 x", "no x"])
def test_a_link_and_a_folder_have_no_content(ls: str) -> None:
    found = sections(f"{LINE}\n\n*** /home/u/x\n*** ls: {ls}\n{LINE}\n\n*** /proc/cmdline\nquiet\n")
    assert [each.title for each in found] == ["/home/u/x", "/proc/cmdline"]


def test_windows_line_ends() -> None:
    (found,) = sections(f"{LINE}\r\n\r\n*** /proc/cmdline\r\nquiet\r\n")
    assert (found.title, found.lines) == ("/proc/cmdline", ("quiet",))


@given(
    st.lists(st.sampled_from([LINE, "", "*** /proc/cmdline", "/usr/bin/lspci", "dmesg:", "  journalctl -b -0:", "x"]))
)
def test_any_order_of_lines(rows: list[str]) -> None:
    found = sections("\n".join(rows))
    assert sum(1 + each.size for each in found) <= len(rows) + 1


def test_supportconfig() -> None:
    text = (
        "=====\n#==[ Command ]======================================#\n\n# /usr/bin/dmesg\n[ 1.0] a\n\n"
        "#==[ Configuration File ]===========================#\n# /proc/cmdline\nquiet\n"
    )
    found = [*supportconfig_sections((row.encode() + b"\n" for row in text.split("\n")), lambda _: True)]
    assert [(each.title, each.is_file) for each in found] == [("/usr/bin/dmesg", False), ("/proc/cmdline", True)]
    assert [*supportconfig_sections((b"=====\n", b"#==[ Command ]===#\n"), lambda _: True)] == []


@pytest.mark.parametrize(("below", "is_title"), [
    ("\n*** /proc/cmdline\nquiet", True), ("*** /proc/cmdline\nquiet", False), ("\n/usr/bin/lspci -t\nx", True),
    ("\nRunning InfiniBand commands for device: mlx5_0\nx", True), ("\n*** ls: x\nx", False),
])  # fmt: skip
def test_a_title_within_a_section_stands_below_an_empty_line(below: str, is_title: bool) -> None:
    assert len(sections(f"{LINE}\n\n/usr/bin/nvidia-smi --query\n\nGPU 0\n{below}\n")) == 1 + is_title


ROWS = ("first", "second")
BYTES = len("first\nsecond\n")


@pytest.mark.parametrize(("limit", "kept"), [(BYTES, 2), (BYTES - 1, 1), (len("first\n"), 1), (len("first"), 0)])
def test_of_a_long_section_the_beginning_is_kept(limit: int, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bug_report, "SECTION_BYTES", limit)
    monkeypatch.setattr(titled, "SECTION_BYTES", limit)
    text = f"{LINE}\n\n*** /proc/cmdline\nfirst\nsecond\n{LINE}\n\nXorg\nlong words"
    (of_report, other) = sections(text)
    assert not other.cut
    rows = [b"#==[ File ]====#\n", b"# /proc/cmdline\n", *(f"{row}\n".encode() for row in ROWS)]
    (of_config,) = supportconfig_sections(rows, lambda _: True)
    of_file = one_file("box/proc/cmdline", iter(rows[2:]))
    for found in (of_report, of_config, of_file):
        assert (found.title, found.lines, found.cut) == ("/proc/cmdline", ROWS[:kept], kept < 2)


def _row(size: int, end: str = "") -> bytes:
    return ("x" * (size - len(end) - 1) + end + "\n").encode()


@pytest.mark.parametrize(("name", "row", "loose"), [
    ("notes", _row(32 << 10), True), ("notes", _row((32 << 10) + 1), False),
    ("notes", _row((32 << 10) + 1, " nvidia"), True), ("notes", b" \n", False), ("commands/notes", _row(9), False),
    ("nvidia-smi", _row(1 << 20), True), ("nvidia-smi", _row((1 << 20) + 1), False),
    ("commands/nvidia-smi", _row(9), False), ("uname", _row(9), False), ("proc/cmdline", _row(9), False),
])  # fmt: skip
def test_a_file_that_its_name_does_not_identify_is_tried_with_every_reader(name: str, row: bytes, loose: bool) -> None:
    found = one_file(name, iter([row]))
    assert found.loose == loose
    assert bool(found.lines) == (loose or name not in ("notes", "commands/notes"))
