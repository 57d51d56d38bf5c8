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
from dgxcheck.checks.gpu.beside_siblings import POWER_CAP
from dgxcheck.checks.measurement.compute import held_back
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import PASSED_THROUGH
from dgxcheck.facts.measurement import Measurement, NotMeasured
from dgxcheck.facts.missing import Gap, Json, Missing, rows
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
        ("collective all_reduce 2", fact(30, devices=[*GPUS[2:4]], sizes=[[16 << 20, 1, 1, 30]], wrong=0),
         "skip no-reference"),
        ("collective all_reduce 2", fact(30, devices=[*GPUS[1:4:2]], sizes=[[32 << 20, 1, 1, 30]], wrong=0), ""),
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


@pytest.mark.parametrize("hosts", [1, 2])
def test_after_wrong_values_no_bandwidth_is_looked_for(hosts: int, tmp_path: Path) -> None:
    box = measured(tmp_path, {"collective all_reduce 8": fact(62.3, wrong=4, hosts=hosts)})
    remedy = found(box, COLLECTIVE)["host all_reduce 8"].remedy
    assert "NCCL_P2P_DISABLE=1" in remedy
    assert "bandwidth" not in remedy


@pytest.mark.parametrize(("gpus", "busbw", "due"), [
    (4, 23.5, ""), (4, 23.4, "warn"), (2, 23.4, "warn"), (1, 23.4, ""), (0, 23.4, ""),
])  # fmt: skip
def test_a_few_gpus_of_a_board_of_nvswitches_far_below_all(gpus: int, busbw: float, due: str, tmp_path: Path) -> None:
    """A tenth of the 235 GB/s of eight A100: without NVLink. Of one GPU, or of unknown ones, nothing is expected."""
    of = [str(gpu.bdf) for gpu in measured(tmp_path, {}, "dgx-a100").gpus[:gpus]] or ["0", "1"]
    box = measured(tmp_path, {"collective all_reduce 4": fact(busbw, devices=[*of], wrong=0)}, "dgx-a100")
    assert said(box, COLLECTIVE) == ({"host all_reduce 4": due} if due else {})


@pytest.mark.parametrize(("last", "due"), [(20.4, {}), (12.0, {}), (8.0, {"host all_reduce 2": "warn"})])
def test_a_figure_at_the_largest_size_far_below_another(last: float, due: dict[str, str]) -> None:
    none: list[Json] = [[], "x", 7, [1 << 20], [1 << 20, 1, "N/A", "N/A"], ["N/A", 1, 1, 1]]
    sizes: list[Json] = [*none, [1 << 27, 6500, 20, 20], [1 << 30, 52500, last, last]]
    box = imported({"collective all_reduce 2": fact(last, sizes=sizes, wrong=0)})
    assert said(box, COLLECTIVE) == due


@pytest.mark.parametrize(
    ("ranks", "sizes", "hosts", "due"),
    [
        (8, (30.0, 5.0), 2, "network of NCCL"),
        (8, (60.0, 5.0), 1, "settings of NCCL"),
        (12, (30.0, 5.0), None, "network of NCCL"),
        (8, (60.0, 5.0), None, "settings of NCCL"),
        ("many", (30.0, 5.0), None, "network of NCCL"),
    ],
)
def test_a_collective_over_several_hosts_is_as_fast_as_their_network(
    ranks: int | str, sizes: tuple[float, float], hosts: int | None, due: str, tmp_path: Path
) -> None:
    """More ranks than the machine has GPUs are of several hosts, though the table has no list of them."""
    table: list[Json] = [[1 << (25 + at), 100, rate, rate] for at, rate in enumerate(sizes)]
    figure = fact(sizes[-1], sizes=table, hosts=hosts)
    told = found(measured(tmp_path, {f"collective all_reduce {ranks}": figure}), COLLECTIVE)
    (finding,) = [each for each in told.values() if each.judgement.fault is Fault.SLOW]
    assert finding.crossed[0].part == due
    assert ("ib_write_bw" in finding.judgement.remedy) == (due == "network of NCCL")


def test_the_figure_of_two_hosts_is_not_held_to_that_of_one(tmp_path: Path) -> None:
    figure = fact(40.0, hosts=2)
    assert said(measured(tmp_path, {"collective all_reduce 8": figure}), COLLECTIVE) == {
        "host all_reduce 8": "skip no-reference"
    }


@pytest.mark.parametrize(("hosts", "why"), [
    (2, "over the network between hosts"), (1, "on another NUMA node, or under other load"),
])  # fmt: skip
def test_why_runs_of_a_collective_differ(hosts: int, why: str) -> None:
    box = imported({"collective all_reduce 2": fact(40, hosts=hosts, runs=[{"value": 40}, {"value": 20}])})
    finding = found(box, COLLECTIVE)["host all_reduce 2"]
    assert finding.judgement.message.endswith(f"runs differ, 20 to 40 GB/s ({why})")


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
    of = measured(tmp_path, {"collective all_reduce 8": fact(busbw)}, base="dgx-h100", profile="dgx-h100")
    assert said(of, COLLECTIVE) == due


@pytest.mark.parametrize(
    ("rings", "due"),
    [((36.1, 36.1), ""), ((20, 20), ""), ((14, 14), "warn"), ((36.1,), ""), ((15,), ""), ((12,), "warn")],
)
def test_rings(rings: tuple[float, ...], due: str, tmp_path: Path) -> None:
    order: list[Json] = [*GPUS]
    facts = {f"ring {n} all": fact(each, order=order, directions=2) for n, each in enumerate(rings)}
    assert said(measured(tmp_path, facts), COLLECTIVE) == ({"host rings": due} if due else {})


@pytest.mark.parametrize("failed", [0, 1])
def test_a_ring_that_failed_counts_more_than_one_not_measured(failed: int) -> None:
    end: list[Json] = [{"skipped": "busy", "detail": "x"}, {"failed": "crashed (SIGSEGV)", "detail": "x"}]
    box = imported({f"ring {place} all": end[place is failed] for place in range(2)})
    assert said(box, COLLECTIVE) == {"host rings": "fail"}


def test_a_ring_of_one_direction_carries_half(tmp_path: Path) -> None:
    facts = {"ring 0 all": fact(18, directions=1), "ring 1 all": fact(18, directions=1)}
    assert said(measured(tmp_path, facts), COLLECTIVE) == {}


def load(mask: int) -> Json:
    return fact(None, "", reasons=mask, sm_clock=1000)


@pytest.mark.parametrize(
    ("value", "clock", "mask", "words"),
    [
        (8.2, 1480, None, None),
        (8.1, None, None, "8.1 TFLOP/s, median 9.1 TFLOP/s; GPUs of this model"),
        (8.1, 1480, None, "8.1 TFLOP/s at 1480 MHz, median 9.1 TFLOP/s; GPUs of this model at equal clocks"),
        (6.1, 1000, None, "6.1 TFLOP/s at 1000 MHz, median 9.1 TFLOP/s; GPUs of this model at 1480 MHz"),
        (6.1, 1000, 0x4, "6.1 TFLOP/s at 1000 MHz, median 9.1 TFLOP/s; GPUs of this model at 1480 MHz;"
                         " clocks held down: power limit reached, which was not lowered"),
        (6.1, 1000, 0x48, "6.1 TFLOP/s at 1000 MHz, median 9.1 TFLOP/s; GPUs of this model at 1480 MHz;"
                          " clocks held down: hardware thermal slowdown"),
    ],
)  # fmt: skip
def test_compute(value: float, clock: int | None, mask: int | None, words: str | None, tmp_path: Path) -> None:
    facts = dgx1_p100() | {f"compute {GPUS[5]}": fact(value, "TFLOP/s", clock_mhz=clock)}
    facts |= {} if mask is None else {f"under-load {GPUS[5]}": load(mask)}
    box = measured(tmp_path, facts)
    assert said(box, COMPUTE) == ({} if words is None else {"GPU5": "warn"})
    assert words is None or found(box, COMPUTE)["GPU5"].judgement.message == words


@pytest.mark.parametrize(("values", "due"), [
    ((9.0, 10, 10), {}), ((8.9, 10, 10), {"GPU0": "warn"}), ((8, 10), {"GPU0": "warn"}),
    ((8,), {"GPU0": "skip no-reference"}),
])  # fmt: skip
@pytest.mark.parametrize("clock", [None, 1000])
def test_a_gpu_slower_than_others_without_a_box(values: list[float], due: dict[str, str], clock: Json) -> None:
    figures = {f"compute {gpu}": fact(each, "TFLOP/s", clock_mhz=1480 if gpu else clock)
               for gpu, each in enumerate(values)}  # fmt: skip
    assert said(imported(figures), COMPUTE) == due


@pytest.mark.parametrize(("power", "due"), [
    (1, ("lowered power limit reached", Fault.POWER_CAPPED)),
    (2, ("power limit reached, which was not lowered", Fault.POWER_REACHED)),
    (Missing(Gap.UNSUPPORTED, ""), ("power limit reached", Fault.POWER_REACHED)),
    (None, ("power limit reached", Fault.POWER_REACHED)),
])  # fmt: skip
def test_a_power_limit_is_called_lowered_where_both_are_known(power: int | Missing | None, due: object) -> None:
    (own, *_) = rows(BOXES[0].snapshot.gpu_power)
    limits = own if power is None else replace(own, enforced_limit_mw=power, default_limit_mw=2)
    assert held_back(POWER_CAP, Missing(Gap.LOST, "") if power is None else limits, can_lock=True) == due


@pytest.mark.parametrize(("most", "words"), [
    (1480, ""), (1479, "; clocks held down: highest clock 1479 MHz, others 1480 MHz"), ({"missing": "unsupported"}, ""),
])  # fmt: skip
def test_a_clock_that_the_vbios_holds_below_those_of_the_others(most: Json, words: str, tmp_path: Path) -> None:
    path = Path(overlay(tmp_path, dgx1_p100() | {f"compute {GPUS[5]}": fact(6.1, "TFLOP/s", clock_mhz=1000)}))
    changed = {"facts": {f"nvml nvmlDeviceGetMaxClockInfo {GPUS[5]} 1": most}}
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changed), encoding="utf-8")
    message = found(of_box(open_source(str(path))), COMPUTE)["GPU5"].judgement.message
    assert message.partition("1480 MHz")[2] == words


@pytest.mark.parametrize(("value", "unit", "due"), [
    (3.18, "TFLOP/s", {"GPU0": "skip no-reference"}), (3.1, "TFLOP/s", {"GPU0": "fail"}),
    (3.1, "GFLOP/s", {"GPU0": "skip no-reference"}),
])  # fmt: skip
def test_far_below_the_peak_of_its_model_fails_without_siblings(
    value: float, unit: str, due: dict[str, str], tmp_path: Path
) -> None:
    """30 % of a P100's 10.6 TFLOP/s."""
    assert said(measured(tmp_path, {f"compute {GPUS[0]}": fact(value, unit)}), COMPUTE) == due


@pytest.mark.parametrize(
    ("value", "clock", "how", "due"),
    [(9.5, 1480, "measured", {}), (4.7, 740, "measured", {}), (9.5, 1, "measured", {}),
     (6.36, 1480, "measured", {}), (6.35, 1480, "measured", {"GPU0": "warn"}), (0.0, 1, "measured", {"GPU0": "fail"}),
     (9.5, 0, "measured", {"GPU0": "skip no-reference"}), (5.5, 1480, "simulated", {"GPU0": "skip no-reference"})],
)  # fmt: skip
def test_one_gpu_is_held_to_the_peak_of_its_model_at_its_clock(
    value: float, clock: int, how: str, due: dict[str, str], tmp_path: Path
) -> None:
    figure = fact(value, "TFLOP/s", clock_mhz=clock, how=how)
    assert said(measured(tmp_path, {f"compute {GPUS[0]}": figure}), COMPUTE) == due


@pytest.mark.parametrize(("virtualization", "due"), [(PASSED_THROUGH, {}), (2, {"GPU0": "skip no-reference"})])
def test_a_guest_is_held_to_the_peak_of_a_whole_gpu(
    virtualization: int, due: dict[str, str], tmp_path: Path
) -> None:
    snapshot = measured(tmp_path, {f"compute {GPUS[0]}": fact(9.5, "TFLOP/s", clock_mhz=1480)}).snapshot
    boards = tuple(replace(each, virtualization=virtualization) for each in rows(snapshot.gpu_board))
    guest = replace(snapshot, host=replace(snapshot.known_host, vm="KVM"), gpu_board=boards)
    assert said(replace(measured(tmp_path, {}), snapshot=guest), COMPUTE) == due


def test_multiprocessors_that_disagree_fail(tmp_path: Path) -> None:
    facts = {f"compute {GPUS[0]}": fact(9.5, "TFLOP/s", clock_mhz=1480, wrong=256, checked=1 << 20)}
    box = measured(tmp_path, facts)
    assert said(box, COMPUTE) == {"GPU0": "fail"}
    assert "256 wrong words" in found(box, COMPUTE)["GPU0"].judgement.message


def test_one_gpu_has_nothing_to_be_compared_with() -> None:
    assert said(imported({"compute 0": fact(9, "TFLOP/s")}), COMPUTE) == {"GPU0": "skip no-reference"}


KINDS = ("host-to-device", "device-to-host", "device-copy", "memory-integrity", "p2p", "p2p-both", "p2p-off",
         "p2p-off-both", "latency", "latency-off", "access", "p2p-integrity", "ring", "collective", "compute",
         "under-load", "cuda", "burn-in", "rdma-write", "x")  # fmt: skip
ENDS = st.sampled_from((GPUS[0], GPUS[1], "0", "1", "2", "all", "", "8", "0000:ff:00.0", "GPU0"))
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
                                              "sizes", "wrong", "order", "directions", "link_gen", "link_width",
                                              "devices", "also", "hosts", "drift", "throttled", "sm_clock", "ended")),
                             JSON, max_size=4),
    ), max_size=12,
)  # fmt: skip
BOXES = [of_box(open_source("dgx-1-p100")), of_box(open_source("k80-x8")), imported({})]


@given(ROWS, st.integers(0, len(BOXES) - 1))
def test_no_measurement_breaks_a_check(measurement: list[Measurement], which: int) -> None:
    box = BOXES[which]
    findings = run(replace(box, snapshot=replace(box.snapshot, measurement=tuple(measurement))), MINE)
    assert not [each for each in findings if each.judgement.fault is Fault.CHECK_FAILED]
    keys = [each.key for each in findings]
    assert len(keys) == len(set(keys))


@given(st.dictionaries(st.tuples(st.sampled_from(KINDS), ENDS, ENDS), FACTS | JSON, max_size=6))
def test_no_recorded_fact_breaks_a_check(facts: dict[tuple[str, str, str], Json]) -> None:
    box = imported({" ".join(filter(None, key)): fact for key, fact in facts.items() if key[1]})
    assert not [each for each in run(box, MINE) if each.judgement.fault is Fault.CHECK_FAILED]
