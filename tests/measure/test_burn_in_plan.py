"""Which GPU of a burn-in sends to which, and when their turns come."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_health_checks import box

from dgxcheck.cuda.burn import TURNS, turns
from dgxcheck.facts.record import replace
from dgxcheck.measure.burn_in.events import Events
from dgxcheck.measure.burn_in.loads import LoadWorkers
from dgxcheck.measure.burn_in.plan import EXCLUSIVE, GpuLoad, loads, matched
from dgxcheck.workers.supervisor import Silence, Supervisor

CUBE = box("dgx-1-v100")
GPUS = [str(gpu.bdf) for gpu in CUBE.gpus]


def load(gpu: str, *peers: tuple[str, ...]) -> GpuLoad:
    return GpuLoad(gpu=gpu, peers=peers, cpus=())


@pytest.mark.parametrize("busy", [set(), {GPUS[3]}, {GPUS[0], GPUS[5]}])
def test_in_a_cube_each_gpu_sends_over_nvlink_and_none_is_reached_twice(busy: set[str]) -> None:
    pairs = matched(loads(CUBE.topology, CUBE.gpus), busy)
    assert set(pairs) == set(pairs.values()) == set(GPUS) - busy
    for a, b in pairs.items():
        ends = [CUBE.topology.device(bdf) for bdf in (a, b)]
        assert ends[0] is not None
        assert ends[1] is not None
        assert CUBE.topology.link(ends[0], ends[1]).nvlinks in ((1, 2) if busy else (2,))


def test_a_gpu_yields_its_neighbour_where_it_has_another() -> None:
    assert matched([load("a", ("b", "c")), load("b", ("a",)), load("c", ("b",))]) == {"a": "c", "b": "a", "c": "b"}
    assert matched([load("a", ("b",), ("c",)), load("c", ("b",))]) == {"a": "c", "c": "b"}


@given(st.integers(0, 9), st.sets(st.integers(0, 9)))
def test_where_all_reach_all_only_a_single_gpu_has_no_neighbour(count: int, busy: set[int]) -> None:
    names = [str(number) for number in range(count)]
    made = [load(name, tuple(other for other in names if other != name)) for name in names]
    left = set(names) - set(map(str, busy))
    pairs = matched(made, {str(each) for each in busy})
    assert set(pairs) == set(pairs.values()) == (left if len(left) > 1 else set())
    assert all(a != b for a, b in pairs.items())


def test_a_gpu_for_one_process_alone_has_no_neighbour_and_is_none() -> None:
    modes: Any = CUBE.snapshot.gpu_modes
    alone = tuple(replace(row, compute_mode=EXCLUSIVE) if row.bdf == GPUS[2] else row for row in modes)
    found = loads(CUBE.topology, CUBE.gpus, alone)
    assert all((each.gpu == GPUS[2]) == (each.peers == ()) for each in found)
    assert GPUS[2] not in {peer for each in found for group in each.peers for peer in group}


def test_all_begin_together_and_none_with_a_busy_neighbour() -> None:
    plans: list[dict[str, Any]] = []

    class Recorder(Supervisor):
        def start(self, module: str, silence: Silence, plan: str | None = None) -> Any:
            plans.append(json.loads(plan or ""))
            return object()

    silent: Any = None
    crew = LoadWorkers(loads(CUBE.topology, CUBE.gpus), 600.0, 120.0, "", Events(silent), Recorder())
    crew.begin({GPUS[1]})
    for bdf in set(GPUS) - {GPUS[1]}:
        crew.launch(bdf)
    crew.launch(GPUS[0], alone=True)
    assert len({plan["begin"] for plan in plans}) == 1
    *together, alone = plans
    assert sorted(peer for plan in together for peer in plan["peers"]) == sorted(set(GPUS) - {GPUS[1]})
    assert alone["peers"] == []


def test_a_load_that_is_late_leaves_out_whole_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("dgxcheck.cuda.burn.time.monotonic", lambda: now[0])
    ends = []
    for cycle, _, until in turns(("power",), 0.0, 1.0):
        ends.append(until)
        now[0] = until + 0.3 if cycle != 1 else until + 25
        if cycle == 3:
            break
    whole = sum(units for _, units in TURNS)
    assert [(end - ends[0]) % whole for end in ends] == [0, 0, 0, 0]
    assert ends[2] - ends[1] > whole
