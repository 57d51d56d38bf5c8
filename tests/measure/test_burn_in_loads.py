"""What becomes of a load that fails, dies or hangs, without a process: its fact, its event, one without its peer;
and what is measured again."""

from __future__ import annotations

import json
import time
from typing import Any, cast

import pytest
from test_burn_in_stop import GPU, OTHER, Silent, sample

from dgxcheck.facts.missing import Json
from dgxcheck.measure.burn_in.events import Events
from dgxcheck.measure.burn_in.loads import LoadWorkers
from dgxcheck.measure.burn_in.plan import GpuLoad
from dgxcheck.measure.burn_in.stop_rules import SlowdownThresholds, Stop
from dgxcheck.measure.burn_in.watch import Watch
from dgxcheck.measure.run import best
from dgxcheck.workers.stream import Worker
from dgxcheck.workers.supervisor import Silence, Supervisor

BEGUN: dict[str, Json] = {"start": {"value": 8, "turns": ["power"]}}


class Told:
    """In place of a worker."""

    def __init__(self) -> None:
        self.answers: dict[str, str] = {}
        self.pending: str | None = None
        self.ended: str | None = None
        self.spoke, self.heard = True, time.monotonic()


class Plans:
    """In place of the supervisor: workers that say what a test has them say."""

    def __init__(self) -> None:
        self.plans: list[Any] = []

    def start(self, module: str, silence: Silence, plan: str) -> Worker:
        self.plans.append({"module": module, **json.loads(plan)})
        return cast("Worker", Told())


def crew(answers: dict[str, Json], ended: str | None, pending: str | None = None) -> tuple[LoadWorkers, Events, Plans]:
    """The load of one GPU with a peer, after what its worker said and how it ended."""
    plans, events = Plans(), Events(Silent())
    loads = [GpuLoad(gpu=GPU, peers=((OTHER,),), cpus=(0,)), GpuLoad(gpu=OTHER, peers=(), cpus=(1,))]
    found = LoadWorkers(loads, 600.0, 20.0, "libcuda.so.1", events, cast("Supervisor", plans))
    found.begin(())
    found.launch(GPU)
    (worker,) = found.workers
    worker.answers |= {f"{key} 1": json.dumps(fact) for key, fact in answers.items()}
    worker.ended, worker.pending = ended, pending
    found.read_answers()
    found.worker_ended(worker)
    return found, events, plans


def ended(events: Events) -> list[tuple[str, str, str]]:
    return [(str(each["event"]), str(each["text"]), str(each.get("status", ""))) for each in events.recorded]


REFUSED: dict[str, Json] = {"failed": "cuda-error", "detail": "cuMemAlloc: 719"}


@pytest.mark.parametrize(
    ("answers", "end", "pending", "start", "why", "status"),
    [
        ({**BEGUN, "failed": {**REFUSED, "turn": "memory"}}, "done", None, "value", "in turn memory", "fail"),
        ({"failed": REFUSED}, "done", None, "failed", "", "fail"),
        (BEGUN, "died: SIGSEGV", "power 3", "value", "died: SIGSEGV in turn power", "fail"),
        (BEGUN, "died: SIGSEGV", None, "value", "died: SIGSEGV", "fail"),
        (BEGUN, None, "power 3", "value", "hung: no answer for 0 s in turn power", "fail"),
        ({}, None, "start", "missing", "", "fail"),
        ({}, "died: SIGKILL", "start", "failed", "", "fail"),
    ],
)
def test_a_load_that_ends_by_itself_says_where(
    answers: dict[str, Json], end: str | None, pending: str | None, start: str, why: str, status: str
) -> None:
    loads, events, _ = crew(answers, end, pending)
    result = loads.results[GPU]
    assert start in result.start
    assert result.ended.endswith(why) if why else not result.ended
    (event,) = ended(events)
    assert (event[0], event[2]) == ("load-ended", status)
    assert not loads.workers


@pytest.mark.parametrize(("answers", "end", "pending"), [
    ({**BEGUN, "failed": {**REFUSED, "turn": "peer"}}, "done", None), (BEGUN, "died: SIGSEGV", "peer 2"),
])  # fmt: skip
def test_a_load_that_its_peer_ended_goes_on_alone(answers: dict[str, Json], end: str, pending: str | None) -> None:
    loads, _, plans = crew(answers, end, pending)
    assert [plan["peers"] for plan in plans.plans] == [[OTHER], []]
    result = loads.results[GPU]
    assert (result.ended, result.turn_ended) == ("", "")
    assert "in turn peer" in result.with_peer
    assert len(loads.workers) == 1


def test_a_load_that_hung_with_its_peer_is_not_started_again() -> None:
    loads, _, plans = crew(BEGUN, None, "peer 2")
    assert len(plans.plans) == 1
    assert loads.results[GPU].turn_ended == "peer"


def test_a_turn_that_is_refused_is_left_out_and_one_with_wrong_words_counts() -> None:
    loads, events, _ = crew({**BEGUN, "peer": REFUSED, "memory": {"wrong": 1, "checked": 64}}, "done")
    assert [each[:2] for each in ended(events)] == [
        ("note", "turn peer left out from now on: cuda-error: cuMemAlloc: 719"),
        ("wrong-words", "1 wrong word in turn memory"),
    ]
    assert (loads.results[GPU].wrong, loads.results[GPU].ended) == (1, "")


def watch() -> tuple[Watch, Events]:
    plans, events = Plans(), Events(Silent())
    limits = SlowdownThresholds(degrees={GPU: 87, OTHER: 87}, margins={})
    return Watch([GPU, OTHER], {}, 60.0, limits, events, cast("Supervisor", plans)), events


@pytest.mark.parametrize(("end", "why"), [("died: SIGBUS", "died: SIGBUS"), (None, "no sample for ")])
def test_nothing_is_loaded_that_nobody_watches(end: str | None, why: str) -> None:
    watched, events = watch()
    assert watched.worker is not None
    worker = watched.worker
    row = sample(temperature=None)
    worker.answers |= {"idle": "{}", "sample 1": json.dumps(row)}
    assert watched.read_samples((), 0.0) is None
    assert ended(events) == [("note", "no temperature: the load would not end before a slowdown", "")]
    worker.ended = end
    stop = watched.worker_ended(worker)
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.gpu) == ("unwatched", "")
    assert why in stop.text
    assert watched.read_samples((), 0.0) is None


@pytest.mark.parametrize(
    ("first", "second", "due"),
    [
        ({"value": 9, "unit": "GB/s"}, {"value": 11, "unit": "GB/s"}, {"value": 11, "unit": "GB/s", "retries": [9]}),
        ({"value": 9, "unit": "GB/s"}, {"value": 8, "unit": "GB/s"}, {"value": 9, "unit": "GB/s", "retries": [8]}),
        ({"value": 9, "unit": "us", "retries": [8]}, {"value": 4, "unit": "us"},
         {"value": 4, "unit": "us", "retries": [8, 9]}),
        ({"value": 3, "unit": "ns"}, {"value": 4, "unit": "ns"}, {"value": 3, "unit": "ns", "retries": [4]}),
        ({"value": 9, "unit": "GB/s"}, {"failed": "hung"}, {"value": 9, "unit": "GB/s"}),
        ({"failed": "hung"}, {"value": 9, "unit": "GB/s"}, {"failed": "hung"}),
        ({"value": 9}, None, {"value": 9}),
    ],
)  # fmt: skip
def test_of_repeated_measurements_the_best_counts(first: Json, second: Json, due: Json) -> None:
    assert best(first, second) == due
