"""A child process per worker: heard with a deadline, ended without waiting, and holding nothing of the caller's."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from checkout import TESTS
from clock import SPARE

from dgxcheck.facts.missing import Json
from dgxcheck.workers import stream
from dgxcheck.workers.stream import Worker, next_event, reap_or_list
from dgxcheck.workers.stuck_workers import stuck

Start = Callable[..., Worker]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Start]:
    """Start a double with a script; all are killed at the end."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    started: list[int] = []

    def double(*steps: list[Json], plan: str = "{}", unread: bool = False, killable: bool = True) -> Worker:
        script: dict[str, Json] = {"*": list(steps)}
        monkeypatch.setenv("WORKER_DOUBLE", json.dumps(script | {"unread": 1} if unread else script))
        worker = Worker("worker_double", plan) if killable else Worker("worker_double", plan, lambda pid: None)
        started.append(worker.pid)
        return worker

    yield double
    for pid in started:
        if pid > 0 and os.path.exists(f"/proc/{pid}"):
            os.kill(pid, signal.SIGKILL)


def heard(worker: Worker, silence: float = 5.0, seconds: float = 10.0) -> Worker | None:
    return next_event([worker], lambda _: silence, time.monotonic() + seconds)


def hangs(worker: Worker) -> None:
    """Listen until it hangs in a question."""
    until = time.monotonic() + 10
    while worker.pending is None and time.monotonic() < until:
        assert heard(worker, silence=0.05) is worker
    assert worker.pending is not None


def test_answers_come_by_key_and_the_end_is_told(start: Start) -> None:
    worker = start(["tell", "a 1", {"x": [1, "tab\t"]}], ["tell", "b", None])
    assert heard(worker) is worker
    assert {key: json.loads(text) for key, text in worker.answers.items()} == {"a 1": {"x": [1, "tab\t"]}, "b": None}
    assert (worker.ended, worker.pending) == ("done", None)


@pytest.mark.parametrize(
    ("step", "ended"),
    [
        (["die", "SIGSEGV"], "died: SIGSEGV"),
        (["die", "SIGKILL"], "died: SIGKILL"),
        (["exit", 3], "died: exit 3"),
        (["exit", 0], "died: exit 0"),
    ],
)
def test_a_death_is_told_with_the_question_it_died_at(start: Start, step: list[Json], ended: str) -> None:
    worker = start(["tell", "a", 1], ["ask", "b"], step)
    assert heard(worker) is worker
    assert (worker.answers, worker.pending, worker.ended) == ({"a": "1"}, "b", ended)


def test_silence_is_told_with_the_question_that_hangs(start: Start) -> None:
    worker = start(["tell", "a", 1], ["ask", "b"], ["hang"])
    before = time.monotonic()
    assert heard(worker, silence=0.5) is worker
    assert (worker.pending, worker.ended) == ("b", None)
    assert 0.5 <= time.monotonic() - before < 2 + SPARE


def test_silence_without_a_free_cpu_is_no_hang(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that is overloaded is no sick driver: what it kept from the worker does not count, and no more than that.
    """
    waits = iter((0.4, 0.7))
    monkeypatch.setattr(stream, "waited_for_cpu", lambda pid: next(waits, 0.7))
    worker = start(["tell", "a", 1], ["ask", "b"], ["hang"])
    hangs_at = time.monotonic()
    assert heard(worker, silence=0.5) is worker
    assert 0.5 + 0.7 <= time.monotonic() - hangs_at < 2 + SPARE


@pytest.mark.skipif(not os.path.exists("/proc/self/schedstat"), reason="a kernel without schedstat")
def test_the_kernel_tells_how_long_a_process_waited_for_a_cpu() -> None:
    before, cpu = stream.waited_for_cpu(os.getpid()), {min(os.sched_getaffinity(0))}
    here = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cpu)  # a child is where its parent is
    with subprocess.Popen((sys.executable, "-c", "while True: pass")) as busy:
        until = time.process_time() + 0.5
        while time.process_time() < until:
            pass
        busy.kill()
    os.sched_setaffinity(0, here)
    assert before + 0.05 < stream.waited_for_cpu(os.getpid())
    assert stream.waited_for_cpu(-1) == 0


def test_the_deadline_ends_the_wait_for_all(start: Start) -> None:
    workers = [start(["ask", "b"], ["hang"]) for _ in range(2)]
    before = time.monotonic()
    assert next_event(workers, lambda _: 60, time.monotonic() + 0.4) is None
    assert time.monotonic() - before < 1 + SPARE


def test_half_a_line_and_bytes_that_are_no_text_harm_nobody(start: Start) -> None:
    worker = start(["raw", "\u00e9\t1\nhalf a li"], ["die", "SIGABRT"])
    assert heard(worker) is worker
    assert (worker.answers, worker.ended) == ({"é": "1"}, "died: SIGABRT")


@pytest.mark.parametrize(("said", "ended"), [("x", "died: it said more than any worker does"), ("x\n", None)])
def test_one_that_never_stops_talking_holds_nothing_up(
    start: Start, monkeypatch: pytest.MonkeyPatch, said: str, ended: str | None
) -> None:
    monkeypatch.setattr(stream, "_LONGEST", 1 << 20)
    worker = start(["flood", said])
    before = time.monotonic()
    assert heard(worker, seconds=1.0) is (worker if ended else None)
    assert time.monotonic() - before < 2 + SPARE
    assert worker.ended == ended


def test_a_plan_larger_than_a_pipe_arrives_whole(start: Start) -> None:
    plan = json.dumps({"long": "x" * 1_000_000})
    worker = start(["echo"], plan=plan)
    assert heard(worker) is worker
    assert worker.answers == {"plan": plan}


def test_a_plan_that_is_never_read_blocks_nobody(start: Start) -> None:
    before = time.monotonic()
    worker = start(["ask", "b"], ["hang"], plan="x" * 1_000_000, unread=True)
    assert heard(worker, silence=1.0) is worker
    worker.stop(hung=True)
    reap_or_list([worker])
    assert time.monotonic() - before < 3 + SPARE


def test_a_second_line_goes_on_with_the_same_worker(start: Start) -> None:
    worker = start(["tell", "a", 1])
    assert heard(worker) is worker
    worker.tell("{}")
    assert worker.ended is None
    assert heard(worker) is worker  # the double leaves after its first line
    assert worker.ended == "died: exit 0"


def test_a_child_holds_nothing_of_the_callers(start: Start, tmp_path: Path) -> None:
    """Even of what the caller would let its children inherit."""
    with open(tmp_path / "file", "w") as file:
        os.set_inheritable(file.fileno(), True)
        worker = start(["ask", "b"], ["hang"])
        hangs(worker)
        folder = f"/proc/{worker.pid}/fd"
        held = {int(name): os.readlink(f"{folder}/{name}") for name in os.listdir(folder)}
    ours = {os.readlink(f"/proc/self/fd/{name}") for name in (worker.fd, worker._plan_fd)}
    assert held.keys() == {0, 1, 2, 3}
    assert {held[0], held[3]} == ours
    assert held[1] == held[2] == os.devnull
    assert os.getpgid(worker.pid) == worker.pid


def test_a_stopped_worker_is_gone_and_reaped(start: Start) -> None:
    worker = start(["ask", "b"], ["hang"])
    hangs(worker)
    pid = worker.pid
    worker.stop(hung=True)
    reap_or_list([worker])
    assert not os.path.exists(f"/proc/{pid}")
    worker.stop()


def test_eight_that_cannot_be_killed_are_waited_for_together_and_shortly(start: Start, tmp_path: Path) -> None:
    workers = [start(["ask", "b"], ["hang"], killable=False) for _ in range(8)]
    for worker in workers:
        hangs(worker)
    before = time.monotonic()
    for worker in workers:
        worker.stop(hung=True)
    reap_or_list(workers)
    assert time.monotonic() - before < 0.6 + SPARE
    listed = (tmp_path / "dgxcheck" / "left-behind").read_text().splitlines()
    assert [line.split()[0] for line in listed] == [str(worker.pid) for worker in workers]


def test_a_worker_that_is_done_and_leaves_slowly_is_left_alone(start: Start, tmp_path: Path) -> None:
    """The driver powers GPUs down as their last user goes; for a while that is no reason not to start another."""
    worker = start(["raw", "done\n"], ["sleep", 30])
    assert heard(worker) is worker
    before = time.monotonic()
    worker.stop()
    reap_or_list([worker])
    assert time.monotonic() - before < 0.3 + SPARE
    assert running(worker.pid)
    assert (tmp_path / "dgxcheck" / "left-behind").read_text().startswith(f"{worker.pid} ")
    assert stuck("worker_double") is None


def test_a_worker_that_cannot_be_started_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    open_before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    worker = Worker("worker_double", "{}")
    assert heard(worker) is worker
    assert worker.ended == "no worker could be started: No such file or directory"
    worker.stop()
    reap_or_list([worker])
    assert os.listdir("/proc/self/fd") == open_before


SIGCHLD_IGNORED = """
import signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
from dgxcheck.workers.stream import Worker, reap_or_list, next_event
worker = Worker("worker_double", "{}")
assert next_event([worker], lambda _: 5, time.monotonic() + 10) is worker
worker.stop()
reap_or_list([worker])
print(worker.ended)
"""


def test_a_caller_that_ignores_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some daemons leave SIGCHLD ignored to what they start: the kernel reaps, and nobody learns how a child ended."""
    monkeypatch.setenv("WORKER_DOUBLE", json.dumps({"*": [["ask", "b"], ["die", "SIGSEGV"]]}))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(TESTS), os.getcwd())))
    command = (sys.executable, "-c", SIGCHLD_IGNORED)
    ran = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert (ran.stdout, ran.stderr) == ("died\n", "")


ORPHAN = """
import sys, time
from dgxcheck.workers.stream import Worker
worker = Worker("worker_double", "{}")
print(worker.pid, flush=True)
time.sleep(60)
"""


def test_a_worker_whose_parent_was_killed_ends_with_its_next_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that sits in the driver stays there until the driver lets it go, and then ends alike."""
    steps: list[Json] = [["ask", "b"], ["sleep", 0.6], ["ask", "c"], ["sleep", 60]]
    monkeypatch.setenv("WORKER_DOUBLE", json.dumps({"*": steps}))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(TESTS), os.getcwd())))
    with subprocess.Popen((sys.executable, "-c", ORPHAN), stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.kill()
    until = time.monotonic() + 10
    while running(pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not running(pid)


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
