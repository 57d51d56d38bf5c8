"""Closed and full standard streams, places that cannot be written, and a state file that is no file."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from live_box import Box
from seam import is_one_clear_line

TOPO = ("topo", "-m", "--from", "dgx-station-v100")


def shell(*argv: str, streams: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    """The installed command with redirections of a shell."""
    command = f'exec "$0" -m dgxcheck "$@" {streams}'
    return subprocess.run(
        ("sh", "-c", command, sys.executable, *argv), capture_output=True, text=True, timeout=30,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_a_closed_stdout_takes_everything() -> None:
    done = shell(*TOPO, streams=">&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_file_is_written_with_stdout_closed(tmp_path: Path) -> None:
    done = shell(*TOPO, "-o", str(tmp_path / "x"), streams=">&-")
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "x").read_text() == shell(*TOPO).stdout


def test_errors_do_not_go_to_stdout_where_stderr_is_closed() -> None:
    done = shell("topo", "--from", "no-such-box", streams="2>&-")
    assert (done.returncode, done.stdout) == (3, "")


@pytest.mark.parametrize("streams", ["<&-", "2>&-", "<&- 2>&-"])
def test_what_is_printed_does_not_depend_on_other_streams(streams: str) -> None:
    assert shell(*TOPO, streams=streams).stdout == shell(*TOPO).stdout


@pytest.mark.parametrize("argv", [("--version",), ("--help",), ("health", "--help"), ("health", "-H"), TOPO])
def test_a_full_stdout_is_said(argv: tuple[str, ...]) -> None:
    done = shell(*argv, streams=">/dev/full")
    assert done.returncode == 3
    assert is_one_clear_line(done.stderr)
    assert "stdout: cannot be written: No space left on device" in done.stderr


@pytest.mark.parametrize("columns", ["0", "-1", "x", "99999999999"])
def test_columns_that_make_no_sense_are_not_heeded(columns: str) -> None:
    assert shell(*TOPO, COLUMNS=columns).stdout == shell(*TOPO).stdout


@pytest.mark.parametrize("option", ["-o", "-l"])
@pytest.mark.parametrize("place", ["missing/x", "."])
def test_a_place_that_cannot_be_written_is_refused_before_the_machine_is_asked(
    served: object, standin: Path, tmp_path: Path, option: str, place: str
) -> None:
    assert callable(served)
    box: Box = served("dgx-1-v100", 1)
    since = time.monotonic()
    done = box.live(box.environment(standin, "slow 20 nvmlDeviceGetName"), "health", option, str(tmp_path / place))
    assert (done.code, done.out) == (3, "")
    assert is_one_clear_line(done.err)
    assert time.monotonic() - since < 15


def test_a_state_file_that_is_a_link_is_not_followed(served: object, standin: Path, tmp_path: Path) -> None:
    assert callable(served)
    box: Box = served("dgx-1-v100", 1)
    target, link = tmp_path / "target", tmp_path / "link"
    assert box.live(box.environment(standin), "health", "--state", str(target)).err == ""
    before = target.read_text().replace('"boot_id": "', '"boot_id": "f')  # another boot: it would be written again
    target.write_text(before)
    link.symlink_to(target)
    done = box.live(box.environment(standin), "health", "--state", str(link))
    assert f"note: host.last-run: {link} cannot be written: not a regular file" in done.out
    assert target.read_text() == before
    assert link.is_symlink()


def test_a_state_file_that_is_a_fifo_is_refused_at_once(served: object, standin: Path, tmp_path: Path) -> None:
    assert callable(served)
    box: Box = served("dgx-1-v100", 1)
    os.mkfifo(tmp_path / "fifo")
    done = box.live(box.environment(standin), "health", "--state", str(tmp_path / "fifo"))
    assert (done.code, done.out) == (3, "")
    assert is_one_clear_line(done.err)
    state = tmp_path / "state"
    state.mkdir()
    os.mkfifo(state / "counters.json")
    usual = box.live({**box.environment(standin), "STATE_DIRECTORY": str(state)}, "health", "-v")
    assert "not a regular file" in usual.out


def test_a_stdout_that_is_not_utf8_ends_no_watch(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("[   10.000000] NVRM: Xid (PCI:0000:3b:00): 31, pid=12, name=pythön, Ch 00000010\n", "utf-8")
    done = shell("watch", "--kernel-log", str(log), "--format", "text", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert "pyth?n" in done.stdout
