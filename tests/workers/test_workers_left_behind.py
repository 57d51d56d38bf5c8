"""The list of workers that could not be killed: believed only where it names a process that is still there."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dgxcheck.workers.stuck_workers import note, stuck

KIND = "dgxcheck.workers.nvml.child"
PAST = "2026-01-02T03:04:05Z"


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where the list is; there is none yet."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "dgxcheck" / "left-behind"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(("sleep", "60")) as process:
        yield process
        process.kill()


def start_time(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def test_a_worker_that_is_still_there_is_told_with_its_time(listed: Path, sleeper: subprocess.Popen[bytes]) -> None:
    assert stuck(KIND) is None
    note(sleeper.pid, KIND)
    pid, started, since, kind = listed.read_text().split()
    assert (pid, started, kind) == (str(sleeper.pid), start_time(sleeper.pid), KIND)
    assert stuck(KIND) == f"an earlier worker (pid {pid}) has been stuck in the driver since {since}"
    assert stuck("dgxcheck.workers.files.child") is None
    assert (listed.parent.stat().st_mode & 0o777) == 0o700


def test_a_worker_that_is_gone_is_forgotten(listed: Path, sleeper: subprocess.Popen[bytes]) -> None:
    note(sleeper.pid, KIND)
    sleeper.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert stuck(KIND) is None  # a zombie yet
    sleeper.wait()
    assert stuck(KIND) is None
    note(os.getpid(), KIND)
    assert len(listed.read_text().splitlines()) == 1


def test_a_worker_that_only_leaves_counts_later(listed: Path, sleeper: subprocess.Popen[bytes]) -> None:
    note(sleeper.pid, KIND, grace=30)
    assert str(sleeper.pid) in listed.read_text()
    assert stuck(KIND) is None


def test_two_workers_are_kept(listed: Path, sleeper: subprocess.Popen[bytes]) -> None:
    note(sleeper.pid, "dgxcheck.workers.files.child")
    note(os.getpid(), KIND)
    assert [line.split()[0] for line in listed.read_text().splitlines()] == [str(sleeper.pid), str(os.getpid())]
    assert f"pid {os.getpid()}" in (stuck(KIND) or "")


def test_another_process_with_the_pid_is_not_taken_for_it(listed: Path) -> None:
    listed.parent.mkdir()
    listed.write_text(f"{os.getpid()} {int(start_time(os.getpid())) - 1} {PAST} {KIND}\n")
    assert stuck(KIND) is None


def test_good_lines_count_among_bad_ones(listed: Path) -> None:
    listed.parent.mkdir()
    good = f"{os.getpid()} {start_time(os.getpid())} {PAST} {KIND}"
    listed.write_text(f"\x00\n\n1 2 3\n{'9' * 6000} 1 {PAST} {KIND}\n{good}\n{good} more\n")
    assert stuck(KIND) == f"an earlier worker (pid {os.getpid()}) has been stuck in the driver since {PAST}"


@given(st.binary(max_size=200))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_a_garbled_list_is_ignored(listed: Path, content: bytes) -> None:
    listed.parent.mkdir(exist_ok=True)
    listed.write_bytes(content)
    assert stuck(KIND) is None


@pytest.mark.parametrize("since", ["\x1b[31mnow", "a while", "2026-01-02T03:04:05Z\x1b", "9999-01-01T00:00:00Z"])
def test_a_time_that_is_none_is_not_shown(listed: Path, since: str) -> None:
    listed.parent.mkdir()
    listed.write_text(f"{os.getpid()} {start_time(os.getpid())} {since} {KIND}\n")
    assert stuck(KIND) is None


def test_what_is_no_small_file_is_ignored(listed: Path) -> None:
    listed.parent.mkdir()
    os.mkfifo(listed)
    assert stuck(KIND) is None
    listed.unlink()
    listed.mkdir()
    assert stuck(KIND) is None
    note(os.getpid(), KIND)
    listed.rmdir()
    listed.write_bytes(b"x" * (1 << 20))
    assert stuck(KIND) is None


@pytest.mark.parametrize("place", ["", "not/absolute", "/nowhere/at/all"])
def test_without_a_place_for_it_there_is_no_list(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", place)
    if place:
        note(os.getpid(), KIND)
        assert stuck(KIND) is None


def test_a_directory_that_is_a_link_is_not_trusted(listed: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    listed.parent.symlink_to(tmp_path / "elsewhere")
    if os.geteuid() == 0:
        os.chown(listed.parent, 12345, 12345, follow_symlinks=False)
        note(os.getpid(), KIND)
        assert list((tmp_path / "elsewhere").iterdir()) == []
    assert stuck(KIND) is None


def test_a_directory_of_somebody_else_is_not_trusted(listed: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory away")
    note(os.getpid(), KIND)
    assert stuck(KIND) is not None
    os.chown(listed.parent, 12345, 12345)
    assert stuck(KIND) is None
