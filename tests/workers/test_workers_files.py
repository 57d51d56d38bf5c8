"""Driver-backed files are read in a worker: a device that hangs is given up, the others answer, in time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clock import SPARE
from live_box import Box, flat_gaps

from dgxcheck.facts.missing import NO_WORKER, Json
from dgxcheck.source.live import LiveSource
from dgxcheck.source.recording.recorder import RecordingSource
from dgxcheck.survey import survey
from dgxcheck.workers.files import supervisor as files
from dgxcheck.workers.files.driver_backed import PORTS, device_of, driver_backed, questions_with
from dgxcheck.workers.files.supervisor import FilesStage
from dgxcheck.workers.stream import Worker
from dgxcheck.workers.supervisor import Supervisor

IB = "/sys/class/infiniband"
RATE = f"text {IB}/mlx5_%d/ports/1/rate"


@pytest.fixture(autouse=True)
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A directory of its own for the list of workers left behind."""
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Three HCAs, one with two ports, and files of other drivers."""
    root = tmp_path / "tree"
    for hca, ports in (("mlx5_0", 1), ("mlx5_1", 2), ("mlx5_2", 1)):
        for port in range(1, ports + 1):
            folder = root / f"sys/class/infiniband/{hca}/ports/{port}"
            for name in ("counters", "hw_counters"):
                (folder / name).mkdir(parents=True)
            write(folder / "rate", "100 Gb/sec (4X EDR)\n")
            write(folder / "state", "4: ACTIVE\n")
            write(folder / "counters/symbol_error", f"{port}\n")
            write(folder / "hw_counters/lifespan", "10\n")
    write(root / "proc/driver/nvidia/version", "NVRM version: x\n")
    write(root / "sys/bus/pci/devices/0000:06:00.0/config", "\xde\x10")
    write(root / "dev/nvidia0", "")
    return root


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode("latin-1"))


@pytest.fixture
def stage(tree: Path) -> Iterator[Callable[..., FilesStage]]:
    """A stage over the tree; stopped at the end."""
    made: list[FilesStage] = []

    def new(deadline: float = 20.0) -> FilesStage:
        made.append(FilesStage(str(tree), deadline))
        return made[-1]

    yield new
    for each in made:
        each.stop()


def told(gap: Json) -> str:
    """The words of a timeout."""
    assert isinstance(gap, dict)
    assert gap["missing"] == "timeout", gap
    return str(gap["detail"])


def absent(answer: Json) -> bool:
    return isinstance(answer, dict) and answer["missing"] == "absent"


def test_every_kind_of_question_is_answered(stage: Callable[..., FilesStage]) -> None:
    files = stage()
    assert files.ask(RATE % 1) == "100 Gb/sec (4X EDR)\n"
    assert files.ask(f"text {IB}/mlx5_1/ports/2/counters/symbol_error") == "2\n"
    assert absent(files.ask(f"text {IB}/mlx5_1/ports/1/lid"))
    assert absent(files.ask(f"text {IB}/mlx5_9/ports/1/rate"))
    assert files.ask("text /proc/driver/nvidia/version") == "NVRM version: x\n"
    assert absent(files.ask("text /proc/driver/nvidia/params"))
    assert files.ask("data /sys/bus/pci/devices/0000:06:00.0/config") == "de10"
    assert files.ask("opens /dev/nvidia0") is True
    assert absent(files.ask("opens /dev/nvidia1"))


def test_a_file_of_a_port_that_no_pattern_holds_is_asked_for_itself(
    stage: Callable[..., FilesStage], tree: Path
) -> None:
    write(tree / "sys/class/infiniband/mlx5_0/ports/1/cap_mask", "0x1\n")
    assert stage().ask(f"text {IB}/mlx5_0/ports/1/cap_mask") == "0x1\n"
    assert questions_with(f"text {IB}/mlx5_0/ports/1/cap_mask") == (*PORTS, f"text {IB}/mlx5_0/ports/1/cap_mask")
    assert questions_with(f"text {IB}/mlx5_0/ports/1/counters/x") == PORTS


def test_a_pipe_in_place_of_a_file_does_not_hang(stage: Callable[..., FilesStage], tree: Path) -> None:
    rate = tree / "sys/class/infiniband/mlx5_1/ports/1/rate"
    rate.unlink()
    os.mkfifo(rate)
    before = time.monotonic()
    files = stage()
    answer = files.ask(RATE % 1)
    assert isinstance(answer, dict)
    assert answer["detail"] == "not a regular file"
    assert files.ask(RATE % 2) == "100 Gb/sec (4X EDR)\n"
    assert time.monotonic() - before < 2 + SPARE


@pytest.fixture
def hang(monkeypatch: pytest.MonkeyPatch, slow_open: Path) -> Callable[[str], None]:
    """Make the opening of files whose path holds this text hang, in workers started from now on."""

    def now(part: str) -> None:
        monkeypatch.setenv("LD_PRELOAD", str(slow_open))
        monkeypatch.setenv("SLOW_OPEN", part)

    return now


def test_one_hca_hangs_and_the_others_answer(stage: Callable[..., FilesStage], hang: Callable[[str], None]) -> None:
    hang("mlx5_1/ports/1/rate")
    files = stage(4)
    before = time.monotonic()
    assert files.ask(RATE % 0) == files.ask(RATE % 2) == "100 Gb/sec (4X EDR)\n"
    assert files.ask(f"text {IB}/mlx5_2/ports/1/counters/symbol_error") == "1\n"
    assert told(files.ask(RATE % 1)) == "no answer for 1 s"
    assert files.ask(f"text {IB}/mlx5_1/ports/1/state") == "4: ACTIVE\n"  # it was asked before
    given_up = f"given up after {RATE % 1}: no answer for 1 s"
    for left in ("1/counters/symbol_error", "2/rate", "2/hw_counters/lifespan"):
        assert told(files.ask(f"text {IB}/mlx5_1/ports/{left}")) == given_up, left
    assert absent(files.ask(f"text {IB}/mlx5_0/ports/1/lid"))
    assert time.monotonic() - before < 3 + SPARE


def test_all_hcas_hang_and_other_drivers_answer(stage: Callable[..., FilesStage], hang: Callable[[str], None]) -> None:
    hang("/ports/1/rate")
    files = stage(6)
    before = time.monotonic()
    assert [told(files.ask(RATE % hca)) for hca in range(3)] == ["no answer for 1.5 s"] * 3
    assert time.monotonic() - before < 6 + SPARE
    assert files.ask("text /proc/driver/nvidia/version") == "NVRM version: x\n"


def test_the_deadline_is_for_all_of_them(stage: Callable[..., FilesStage], hang: Callable[[str], None]) -> None:
    hang("/ports/1/rate")
    files = stage(4)
    files.spent = 1.5  # waited for NVML
    before = time.monotonic()
    gaps = [told(files.ask(RATE % hca)) for hca in range(3)]
    rest = told(files.ask("text /proc/driver/nvidia/version"))
    assert 2.4 < time.monotonic() - before < 3.5 + SPARE
    assert gaps[0] == "no answer for 1 s"
    assert gaps[-1].endswith("within the deadline of 4 s")
    assert rest == "not asked within the deadline of 4 s"


def test_without_a_free_cpu_the_driver_is_not_blamed(
    stage: Callable[..., FilesStage], hang: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    hang("/ports/1/rate")
    monkeypatch.setattr(Supervisor, "crowded_out", lambda own: True)
    monkeypatch.setattr(Worker, "excused", lambda worker: True)
    files = stage(2)
    why = "the host had no CPU free for most of the deadline of 2 s"
    gap = {"missing": "timeout", "detail": why, "code": NO_WORKER}
    assert files.ask(RATE % 0) == gap
    assert files.ask("text /proc/driver/nvidia/version") == gap


def test_a_single_file_that_hangs_is_asked_once(stage: Callable[..., FilesStage], hang: Callable[[str], None]) -> None:
    hang("/nvidia/version")
    files = stage(4)
    before = time.monotonic()
    assert told(files.ask("text /proc/driver/nvidia/version")) == "no answer for 1 s"
    assert told(files.ask("text /proc/driver/nvidia/version")) == "no answer for 1 s"
    assert time.monotonic() - before < 2.5 + SPARE
    assert files.ask(RATE % 0) == "100 Gb/sec (4X EDR)\n"


def test_a_worker_that_dies_at_once_is_no_absent_file(
    stage: Callable[..., FilesStage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MODULE", "no_such_module")
    ended = stage()
    assert told(ended.ask(RATE % 0)) == "died: exit 1"
    assert told(ended.ask("text /proc/driver/nvidia/version")) == "died: exit 1"


def test_one_that_cannot_be_killed_is_noted_and_the_next_run_starts_none(
    tree: Path, hang: Callable[[str], None], run: Path
) -> None:
    hang("mlx5_1/ports/1/rate")
    pids: list[int] = []
    first = FilesStage(str(tree), 4, pids.append)
    before = time.monotonic()
    assert first.ask(RATE % 2) == "100 Gb/sec (4X EDR)\n"
    first.stop()
    assert time.monotonic() - before < 3 + SPARE
    second = FilesStage(str(tree), 4)
    for question in (RATE % 0, "text /proc/driver/nvidia/version", "opens /dev/nvidia0"):
        assert told(second.ask(question)).startswith(f"an earlier worker (pid {pids[0]}) has been stuck in the driver")
    os.kill(pids[0], 9)
    os.waitpid(pids[0], 0)
    third = FilesStage(str(tree), 4)
    assert third.ask(RATE % 0) == "100 Gb/sec (4X EDR)\n"
    third.stop()


def test_through_the_source_one_hca_lacks_and_the_rest_is_complete(
    served: Callable[..., Box], hang: Callable[[str], None]
) -> None:
    box = served("dgx-1-v100")
    hang("mlx5_1/ports/1/rate")
    source = LiveSource(str(box.tree), deadline=4)
    recorder = RecordingSource(source)
    survey(recorder, ("infiniband", "ib_ports", "config_space", "modules", "network"))
    source.close()
    late = {key for key, gap in flat_gaps(recorder.facts).items() if gap == "timeout"}
    assert f"text {IB}/mlx5_1/ports/1/rate" in late
    assert all(key.startswith(f"text {IB}/mlx5_1/ports/") for key in late)
    assert "unasked" not in flat_gaps(recorder.facts).values()


@pytest.mark.parametrize(
    ("path", "device"),
    [
        (f"{IB}/mlx5_1/ports/1/rate", f"{IB}/mlx5_1"),
        (f"{IB}/mlx5_1/ports/1/counters/x", f"{IB}/mlx5_1"),
        ("/sys/class/net/eth0/speed", "/sys/class/net/eth0"),
        ("/sys/bus/pci/devices/0000:06:00.0/config", "/sys/bus/pci/devices/0000:06:00.0"),
        ("/proc/driver/nvidia/version", "/proc/driver/nvidia/version"),
        ("/dev/nvidia0", "/dev/nvidia0"),
    ],
)
def test_a_driver_stands_behind_a_file(path: str, device: str) -> None:
    assert driver_backed(path)
    assert device_of(f"text {path}") == device


@pytest.mark.parametrize(
    "path", [f"{IB}/mlx5_1/fw_ver", "/sys/bus/pci/devices/0000:06:00.0/class", "/proc/cpuinfo", "/dev/kmsg"]
)
def test_no_driver_stands_behind_a_file(path: str) -> None:
    assert not driver_backed(path)
