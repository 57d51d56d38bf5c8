"""A command that gets a signal ends its workers, says so in one line, and leaves with 3."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from live_box import Box, finished
from processes import end_within


def workers_of(pid: int) -> list[int]:
    """Children of a process that still run."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == str(pid) and fields[0] not in "ZX":
            found.append(int(name))
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_workers_end_with_the_command(number: signal.Signals, served: Callable[[str, int], Box], standin: Path) -> None:
    box = served("dgx-1-v100", 8)
    before = signal.signal(number, signal.SIG_DFL)  # children inherit what nohup ignores
    try:
        running = box.start(box.environment(standin, "hang nvmlDeviceGetName"), "topo", "--deadline", "20")
    finally:
        signal.signal(number, before)
    children: list[int] = []
    until = time.monotonic() + 10
    while not children and time.monotonic() < until:
        children = workers_of(running.process.pid)
        time.sleep(0.05)
    assert children
    time.sleep(0.7)  # it has begun to wait for the driver
    running.process.send_signal(number)
    ran = finished(running)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.strip() == "dgxcheck: interrupted"
    assert not any(Path(f"/proc/{child}").exists() for child in children)


def test_workers_of_a_command_that_is_killed_do_not_stay(served: Callable[[str, int], Box], standin: Path) -> None:
    """Slurm kills a node health check after 60 s."""
    box = served("dgx-1-v100", 8)
    running = box.start(box.environment(standin, "hang nvmlDeviceGetName"), "health", "-q", "--deadline", "25")
    until = time.monotonic() + 10
    while len(children := workers_of(running.process.pid)) < 2 and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(0.5)  # one hangs in the driver, the other waits for questions
    running.process.kill()
    finished(running)
    assert children
    assert end_within(5, children)
