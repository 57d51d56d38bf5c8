"""All GPUs at once and calculation; and that no fact whatever makes a check break."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from measured_box import GPUS, dgx1_p100, fact, found, imported, measured, of_box, overlay, said
from test_measurement import FACTS, JSON

from dgxcheck.checks.engine.run import run
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.measurement import Measurement, NotMeasured
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.facts.record import replace
from dgxcheck.source.recording.load import open_source

COLLECTIVE, COMPUTE = "measure.collective", "measure.compute"
MINE = [check for check in CHECKS if check.id.startswith("measure.") or check.id in ("pcie.width", "pcie.generation")]


@pytest.mark.parametrize(
    ("key", "figure", "due"),
    [
        ("collective all_reduce 8", fact(62.3, wrong=0), ""),
        ("collective all_reduce 8", fact(55.0), "warn"),
        ("collective all_reduce 8", fact(7.6), "fail"),
        ("collective all_reduce 8", fact(7.6, sizes=[[8, 1, 1, 1], [1 << 20, 1, 1, 1]]), "skip no-reference"),
        ("collective all_reduce 8", fact(62.3, wrong=4), "fail"),
        ("collective broadcast 8", fact(56.8), ""),
        ("collective all_reduce 4", fact(30), "fail"),
        ("collective sendrecv 8", fact(30), "skip no-reference"),
        ("collective sendrecv 8", fact(30, wrong=0), ""),
        ("collective sendrecv 8", fact(30, wrong=1), "fail"),
        ("collective all_reduce 16", fact(30), "skip no-reference"),
        ("collective all_reduce 8", {"failed": "crashed (SIGSEGV)", "detail": ""}, "fail"),
    ],
)
def test_collectives(key: str, figure: Json, due: str, tmp_path: Path) -> None:
    subject = f"host {key.partition(' ')[2]}"
    assert said(measured(tmp_path, {key: figure}), COLLECTIVE) == ({subject: due} if due else {})


@pytest.mark.parametrize(("last", "due"), [(20.4, {}), (8.0, {"host all_reduce 2": "warn"})])
def test_a_figure_at_the_largest_size_far_below_another(last: float, due: dict[str, str]) -> None:
    none: list[Json] = [[], "x", 7, [1 << 20], [1 << 20, 1, "N/A", "N/A"]]
    rows: list[Json] = [*none, [1 << 27, 6500, 20.65, 20.65], [1 << 30, 52500, last, last]]
    box = imported({"collective all_reduce 2": fact(last, sizes=rows, wrong=0)})
    assert said(box, COLLECTIVE) == due


@pytest.mark.parametrize(
    ("ranks", "sizes", "hosts", "due"),
    [
        (8, (30.0, 5.0), 2, "network of NCCL"),
        (8, (60.0, 5.0), 1, "settings of NCCL"),
        (12, (30.0, 5.0), None, "network of NCCL"),
        (8, (60.0, 5.0), None, "settings of NCCL"),
    ],
)
def test_a_collective_over_several_hosts_is_as_fast_as_their_network(
    ranks: int, sizes: tuple[float, float], hosts: int | None, due: str, tmp_path: Path
) -> None:
    """More ranks than the machine has GPUs are of several hosts, though the table has no list of them."""
    rows: list[Json] = [[1 << (25 + at), 100, rate, rate] for at, rate in enumerate(sizes)]
    figure = fact(sizes[-1], sizes=rows, hosts=hosts)
    told = found(measured(tmp_path, {f"collective all_reduce {ranks}": figure}), COLLECTIVE)
    (finding,) = [each for each in told.values() if each.judgement.fault is Fault.SLOW]
    assert finding.crossed[0].part == due
    assert ("ib_write_bw" in finding.judgement.remedy) == (due == "network of NCCL")


def test_the_figure_of_two_hosts_is_not_held_to_that_of_one(tmp_path: Path) -> None:
    figure = fact(40.0, hosts=2)
    assert said(measured(tmp_path, {"collective all_reduce 8": figure}), COLLECTIVE) == {
        "host all_reduce 8": "skip no-reference"
    }


K80 = tuple(f"0000:{bus}:00.0" for bus in ("06", "07", "85"))


def of_two(busbw: float, a: str, b: str, also: Json = None) -> Json:
    return fact(busbw, devices=[a, b], sizes=[[10 << 20, 1500, busbw, busbw]], also=also)


@pytest.mark.parametrize(
    ("result", "due"),
    [
        (of_two(7.09, K80[0], K80[1]), {}),
        (of_two(4.15, K80[0], K80[2]), {}),
        (of_two(4.15, K80[0], K80[1]), {"host reduce 2": "fail"}),
        (of_two(3.5, K80[0], K80[2]), {"host reduce 2": "warn"}),
        (of_two(7.09, K80[0], K80[1], also=[{"value": 4.15, "devices": [K80[0], K80[2]]}]), {}),
        (of_two(7.09, K80[0], K80[1], also=["x", {"value": None, "devices": [K80[0], K80[2]]}, {"value": 2.0},
                                            {"value": 2.0, "devices": [K80[0], K80[1]]}]), {}),
        (
            of_two(7.09, K80[0], K80[1], also=[of_two(2.0, K80[0], K80[2])]),
            {"host reduce 2 GPU0 GPU4": "fail"},
        ),
    ],
)
def test_nccl_over_pcie_is_held_to_what_joins_the_two_gpus(result: Json, due: dict[str, str], tmp_path: Path) -> None:
    """NCCL 1 on a server with K80 boards, 2016: 7 GB/s on one board, 4.1 across the sockets."""
    of = measured(tmp_path, {"collective reduce 2": result}, base="k80-x8", profile="k80-x8")
    assert said(of, COLLECTIVE) == due


@pytest.mark.parametrize(("busbw", "due"), [(445, {}), (435, {"host all_reduce 8": "warn"})])
def test_a_floor_of_the_profile_counts_where_it_is_the_higher_bound(
    busbw: float, due: dict[str, str], tmp_path: Path
) -> None:
    """Oracle takes machines below 440 GB/s out; nine tenths of what a DGX H100 reached are 429."""
    assert said(measured(tmp_path, {"collective all_reduce 8": fact(busbw)}, profile="dgx-h100"), COLLECTIVE) == due


@pytest.mark.parametrize(
    ("rings", "due"),
    [((36.1, 36.1), ""), ((20, 20), ""), ((14, 14), "warn"), ((36.1,), ""), ((15,), ""), ((12,), "warn")],
)
def test_rings(rings: tuple[float, ...], due: str, tmp_path: Path) -> None:
    order: list[Json] = [*GPUS]
    facts = {f"ring {n} all": fact(each, order=order, directions=2) for n, each in enumerate(rings)}
    assert said(measured(tmp_path, facts), COLLECTIVE) == ({"host rings": due} if due else {})


def test_a_ring_of_one_direction_carries_half(tmp_path: Path) -> None:
    facts = {"ring 0 all": fact(18, directions=1), "ring 1 all": fact(18, directions=1)}
    assert said(measured(tmp_path, facts), COLLECTIVE) == {}


def load(mask: int) -> Json:
    return fact(None, "", reasons=mask, sm_clock=1000)


@pytest.mark.parametrize(
    ("value", "clock", "mask", "words"),
    [
        (8.2, 1480, None, None),
        (8.1, 1480, None, "8.1 TFLOP/s at 1480 MHz, median 9.1 TFLOP/s; GPUs of this model at equal clocks"),
        (6.1, 1000, None, "6.1 TFLOP/s at 1000 MHz, median 9.1 TFLOP/s; GPUs of this model at 1480 MHz"),
        (6.1, 1000, 0x4, "6.1 TFLOP/s at 1000 MHz, median 9.1 TFLOP/s; GPUs of this model at 1480 MHz;"
                         " clocks held down: power limit reached, which was not lowered"),
        (6.1, 1000, 0x48, "6.1 TFLOP/s at 1000 MHz, median 9.1 TFLOP/s; GPUs of this model at 1480 MHz;"
                          " clocks held down: hardware thermal slowdown"),
    ],
)  # fmt: skip
def test_compute(value: float, clock: int, mask: int | None, words: str | None, tmp_path: Path) -> None:
    facts = dgx1_p100() | {f"compute {GPUS[5]}": fact(value, "TFLOP/s", clock_mhz=clock)}
    facts |= {} if mask is None else {f"under-load {GPUS[5]}": load(mask)}
    box = measured(tmp_path, facts)
    assert said(box, COMPUTE) == ({} if words is None else {"GPU5": "warn"})
    assert words is None or found(box, COMPUTE)["GPU5"].judgement.message == words


@pytest.mark.parametrize(("most", "words"), [
    (1480, ""), (1479, "; clocks held down: highest clock 1479 MHz, others 1480 MHz"),
])  # fmt: skip
def test_a_clock_that_the_vbios_holds_below_those_of_the_others(most: int, words: str, tmp_path: Path) -> None:
    path = Path(overlay(tmp_path, dgx1_p100() | {f"compute {GPUS[5]}": fact(6.1, "TFLOP/s", clock_mhz=1000)}))
    changed = {"facts": {f"nvml nvmlDeviceGetMaxClockInfo {GPUS[5]} 1": most}}
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changed), encoding="utf-8")
    message = found(of_box(open_source(str(path))), COMPUTE)["GPU5"].judgement.message
    assert message.partition("1480 MHz")[2] == words


@pytest.mark.parametrize(("value", "due"), [(3.2, {"GPU0": "skip no-reference"}), (3.1, {"GPU0": "fail"})])
def test_far_below_the_peak_of_its_model_fails_without_siblings(
    value: float, due: dict[str, str], tmp_path: Path
) -> None:
    """30 % of a P100's 10.6 TFLOP/s."""
    assert said(measured(tmp_path, {f"compute {GPUS[0]}": fact(value, "TFLOP/s")}), COMPUTE) == due


@pytest.mark.parametrize(
    ("value", "clock", "due"),
    [(9.5, 1480, {}), (4.7, 740, {}), (5.5, 1480, {"GPU0": "warn"}), (9.5, 1, {}), (0.0, 1, {"GPU0": "fail"})],
)
def test_one_gpu_is_held_to_the_peak_of_its_model_at_its_clock(
    value: float, clock: int, due: dict[str, str], tmp_path: Path
) -> None:
    assert said(measured(tmp_path, {f"compute {GPUS[0]}": fact(value, "TFLOP/s", clock_mhz=clock)}), COMPUTE) == due


def test_multiprocessors_that_disagree_fail(tmp_path: Path) -> None:
    facts = {f"compute {GPUS[0]}": fact(9.5, "TFLOP/s", clock_mhz=1480, wrong=256, checked=1 << 20)}
    box = measured(tmp_path, facts)
    assert said(box, COMPUTE) == {"GPU0": "fail"}
    assert "256 wrong words" in found(box, COMPUTE)["GPU0"].judgement.message


def test_one_gpu_has_nothing_to_be_compared_with() -> None:
    assert said(imported({"compute 0": fact(9, "TFLOP/s")}), COMPUTE) == {"GPU0": "skip no-reference"}


KINDS = ("host-to-device", "device-to-host", "device-copy", "memory-integrity", "p2p", "p2p-both", "p2p-off",
         "p2p-off-both", "latency", "latency-off", "access", "p2p-integrity", "ring", "collective", "compute",
         "under-load", "cuda", "x")  # fmt: skip
ENDS = st.sampled_from((GPUS[0], GPUS[1], "0", "1", "all", "", "8", "0000:ff:00.0"))
NUMBERS = st.floats(-1e15, 1e15) | st.integers(-10, 10**15)
VALUES = st.one_of(
    st.none(), st.booleans(), NUMBERS,
    st.builds(Missing, st.sampled_from(Gap), st.just("measure")),
    st.builds(NotMeasured, st.sampled_from(("busy", "failed", "?")), st.text(max_size=9),
              st.none() | st.integers(0, 999), st.sampled_from(("", "x", "integrity", "interrupted"))),
)  # fmt: skip
ROWS = st.lists(
    st.builds(
        Measurement, kind=st.sampled_from(KINDS), a=ENDS, b=ENDS, value=VALUES, unit=st.just("GB/s"),
        method=st.sampled_from(("ce", "sm")), tool=st.sampled_from(("a", "b")),
        how=st.sampled_from(("measured", "simulated", "imported")), samples=st.just(()),
        runs=st.lists(st.floats(-1e15, 1e15), max_size=3).map(tuple),
        more=st.dictionaries(st.sampled_from(("by", "first", "checked", "timed_out", "retries", "clock_mhz", "reasons",
                                              "sizes", "wrong", "order", "directions", "link_gen", "link_width")),
                             JSON, max_size=4),
    ), max_size=12,
)  # fmt: skip
BOXES = [of_box(open_source("dgx-1-p100")), of_box(open_source("k80-x8")), imported({})]


@given(ROWS, st.integers(0, len(BOXES) - 1))
def test_no_measurement_breaks_a_check(rows: list[Measurement], which: int) -> None:
    box = BOXES[which]
    findings = run(replace(box, snapshot=replace(box.snapshot, measurement=tuple(rows))), MINE)
    assert not [each for each in findings if each.judgement.fault is Fault.CHECK_FAILED]
    keys = [each.key for each in findings]
    assert len(keys) == len(set(keys))


@given(st.dictionaries(st.tuples(st.sampled_from(KINDS), ENDS, ENDS), FACTS | JSON, max_size=6))
def test_no_recorded_fact_breaks_a_check(facts: dict[tuple[str, str, str], Json]) -> None:
    box = imported({" ".join(filter(None, key)): fact for key, fact in facts.items() if key[1]})
    assert not [each for each in run(box, MINE) if each.judgement.fault is Fault.CHECK_FAILED]
