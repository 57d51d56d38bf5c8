"""The workers of the watch: one that dies or hangs is said, and not started again at once."""

from __future__ import annotations

import select
import time
from pathlib import Path

import pytest

from dgxcheck.watch import children
from dgxcheck.watch.children import COUNTERS, JUDGEMENT, NVML_EVENTS, Answer, Children, Trouble
from dgxcheck.workers.supervisor import Supervisor


def taken(workers: Children, seconds: float = 10) -> list[Answer | Trouble]:
    """What they say until one of them has said something."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if said := [*workers.take()]:
            return said
        poll = select.poll()
        workers.watch(poll)
        poll.poll(100)
    return []


def test_counters_of_a_machine_come_in_turns(tmp_path: Path) -> None:
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    workers = Children()
    assert workers.start(COUNTERS, {"root": str(tmp_path), "every_s": 0.05}, 10)
    assert not workers.start(COUNTERS, {}, 10)  # one runs
    said: list[Answer | Trouble] = []
    while len(said) < 3:
        said += taken(workers)
    assert [(each.module, each.key, each.value) for each in said[:3] if isinstance(each, Answer)] == [
        (COUNTERS, f"reading {number}", {}) for number in range(3)
    ]
    workers.stop()


def test_one_that_dies_is_said_and_waits(tmp_path: Path) -> None:
    workers = Children()
    assert workers.start(COUNTERS, {"root": str(tmp_path / "nothing"), "every_s": 1}, 10)
    (said,) = taken(workers)
    assert isinstance(said, Trouble)
    assert said.text.startswith("counters: died: ")
    assert not workers.start(COUNTERS, {"root": str(tmp_path), "every_s": 1}, 10)
    assert not workers.running(COUNTERS)


def test_one_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    monkeypatch.setattr(children, "RETRY_S", 0.2)
    workers = Children()
    assert workers.start(COUNTERS, {"root": str(tmp_path), "every_s": 3600}, 0.5)
    said = taken(workers)
    while not any(isinstance(each, Trouble) for each in said):
        said += taken(workers)
    assert said[-1] == Trouble(COUNTERS, "counters: no answer for 0.5 s; next try in 0.00333333 min")
    time.sleep(0.25)
    assert workers.start(COUNTERS, {"root": str(tmp_path), "every_s": 3600}, 10)
    workers.stop()


def test_a_request_that_cannot_be_met_is_an_answer(tmp_path: Path) -> None:
    workers = Children()
    plan: dict[str, object] = {"root": "/", "profile": "/nowhere.toml", "config": None, "deadline": 2.0}
    plan["state"] = str(tmp_path / "watch-counters.json")
    plan["known"] = []
    assert workers.start(JUDGEMENT, plan, 60)
    (said,) = taken(workers, 60)
    assert isinstance(said, Answer)
    assert said.value["error"].startswith("/nowhere.toml: ")
    workers.stop()


def test_one_that_cannot_be_killed_keeps_its_own_kind_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    monkeypatch.setattr(Supervisor, "reap", lambda _: {NVML_EVENTS})
    workers = Children()
    for _ in range(2):
        assert not workers.start(NVML_EVENTS, {}, 10)  # the second time it is not due yet
    assert [*workers.take()] == [
        Trouble(NVML_EVENTS, "NVML events: one that hung cannot be killed; next try in 10 min")
    ]
    assert workers.start(COUNTERS, {"root": str(tmp_path), "every_s": 1}, 10)
    workers.stop()
