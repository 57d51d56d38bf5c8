"""``dgxcheck watch`` on the command line: a saved log, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from seam import is_one_clear_line, run

LOG = """\
[    1.000001] Linux version 6.1.0
[   70.512345] NVRM: Xid (PCI:0000:06:00): 31, pid=4711, name=python3, Ch 00000010, MMU Fault
[   71.512345] NVRM: Xid (PCI:0000:06:00): 31, pid=4712, name=python3, Ch 00000010, MMU Fault
[  104.100000] NVRM: Xid (PCI:0000:0a:00): 79, pid=1, GPU has fallen off the bus.
"""


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "kern.log"
    path.write_text(LOG)
    return str(path)


def test_a_saved_log_as_lines(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "watch", "--kernel-log", log)
    told = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 0
    assert [(each["code"], each["count"], each["total"]) for each in told] == [("31", 1, 1), ("79", 1, 1), ("31", 1, 2)]


def test_a_colored_log_reads_as_a_plain_one(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    plain = run(capsys, "watch", "--kernel-log", log)
    Path(log).write_text("".join(f"\x1b[32m{line[:14]}\x1b[0m{line[14:]}\n" for line in LOG.splitlines()))
    assert run(capsys, "watch", "--kernel-log", log) == plain


@pytest.mark.parametrize(("date", "logged"), [
    ("Nov 20 12:00:0{} dgx kernel:", "Nov 20 12:00:02"),
    ("2026-11-20T12:00:0{}+01:00 dgx kernel:", "2026-11-20 12:00:02"),
])  # fmt: skip
def test_a_log_with_dates_alone_tells_them(
    date: str, logged: str, log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = enumerate(LOG.splitlines())
    Path(log).write_text("".join(f"{date.format(second)} {row.partition('] ')[2]}\n" for second, row in rows))
    last = json.loads(run(capsys, "watch", "--kernel-log", log).out.splitlines()[-1])
    assert (last["logged"], last.get("seconds_since_boot")) == (logged, None)
    assert run(capsys, "watch", "--kernel-log", log, "--format", "text").out.splitlines()[-1].startswith(f"{logged}  ")


def test_a_program_is_given_its_events(log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "hook"
    program.write_text(f"#!/bin/sh\ncat >> {tmp_path}/got\n")
    program.chmod(0o755)
    done = run(capsys, "watch", "--kernel-log", log, "--exec", str(program))
    assert sorted((tmp_path / "got").read_text().splitlines()) == sorted(done.out.splitlines())


def test_a_program_is_given_all_events_of_a_long_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = (f"[{number}.000000] NVRM: Xid (PCI:0000:06:00): {number}, pid=1, name=x, y" for number in range(1, 200))
    (tmp_path / "log").write_text("\n".join(rows))
    program = tmp_path / "hook"
    program.write_text(f"#!/bin/sh\ncat > {tmp_path}/got.$$\n")
    program.chmod(0o755)
    done = run(capsys, "watch", "--kernel-log", str(tmp_path / "log"), "--exec", str(program))
    assert len([*tmp_path.glob("got.*")]) == done.out.count("\n") == 199


@pytest.mark.parametrize(
    "argv",
    [("--exec", "/nowhere/hook"), ("--every", "1x"), ("--counters", "0"), ("--kernel-log", "/nowhere"),
     ("--kernel-log", "/dev/null"), ("--metrics", "/nowhere/x.prom"), ("-c", "/nowhere.toml"),
     ("--profile", "dgx-7"), ("--no-health", "--every", "5m"), ("--kernel-log", "x", "--metrics", "x.prom"),
     ("--kernel-log", "x", "--no-health"), ("--kernel-log", "x", "--every", "5m"),
     ("--kernel-log", "x", "--format", "table")],
)  # fmt: skip
def test_what_is_refused(argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "watch", *argv)
    assert (done.code, done.out) == (3, "")
    assert is_one_clear_line(done.err), done.err
