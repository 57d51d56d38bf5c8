"""What a burn-in showed is judged, GPU by GPU."""

from __future__ import annotations

from typing import Any

import pytest
from test_health_checks import box

from dgxcheck.assessment.load import as_facts
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.measurement import checks
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.settings import Settings

CHECKS = [check for check in checks.CHECKS if check.id == "measure.burn-in"]
BOX = box("dgx-1-v100")
GPUS = [str(gpu.bdf) for gpu in BOX.gpus]
GPU, OTHER = GPUS[2], GPUS[3]
CALM: dict[str, Json] = {
    "value": 600.0, "unit": "s", "cycles": 85, "peer": OTHER, "wrong": 0, "wrong_in": {}, "dbe": 0,
    "sm_clock": {"min": 1300, "median": 1400}, "throttled": {"power cap": 1.0}, "temperature_max": 70,
    "power_max": 299.0, "drift": {"p2p": [24.0, 23.9]}, "ended": None, "turn_ended": None, "with_peer": None,
}  # fmt: skip
WHOLE: dict[str, Json] = {
    "value": 600.0, "unit": "s", "asked": 600.0, "stopped": None, "gpu": None, "detail": "", "events": [],
}  # fmt: skip


def burnt(whole: dict[str, Json] | None = None, **rows: dict[str, Json]) -> Box:
    """All GPUs calm, but for ``gpu`` and ``other``."""
    own: dict[str, dict[str, Json]] = {GPU: rows.get("gpu", {}), OTHER: rows.get("other", {})}
    facts: dict[str, Json] = {}
    for bdf in GPUS:
        row = own.get(bdf, {})
        alone = any(name in row for name in ("skipped", "failed", "missing"))
        facts[f"measure burn-in {bdf}"] = row if alone else {**CALM, **row}
    facts["measure burn-in all"] = {**WHOLE, **(whole or {})}
    return replace(BOX, snapshot=replace(BOX.snapshot, measurement=as_facts(facts)))


def found(made: Box) -> dict[str | None, Finding]:
    return {each.subject.bdf: each for each in run(made, CHECKS)}


def word(finding: Finding) -> str:
    return " ".join(filter(None, (finding.status.value, finding.judgement.reason)))


def test_without_a_burn_in_there_is_nothing_to_say() -> None:
    assert run(BOX, CHECKS) == ()


def test_a_calm_burn_in_passes() -> None:
    said = found(burnt())
    assert {bdf: each.status.value for bdf, each in said.items()} == dict.fromkeys([*GPUS, None], "pass")
    assert (said[GPU].judgement.measured, said[GPU].judgement.expected) == (0, 0)
    assert said[GPU].judgement.message == (
        "10 minutes under load, no wrong words in 85 cycles, at most 70 °C, 299 W, SM clock 1400 MHz"
    )


@pytest.mark.parametrize(
    ("row", "due", "text"),
    [
        ({"wrong": 3, "wrong_in": {"memory": 3}}, "fail", "3 wrong words under load, in turn memory"),
        ({"wrong": 3, "wrong_in": {"peer": 3}}, "fail", "in turn peer (with GPU3)"),
        ({"dbe": 1}, "fail", "1 uncorrected memory error under load"),
        ({"dbe": None}, "pass", "no wrong words"),
        ({"throttled": {"power brake": 0.005}}, "pass", "no wrong words"),
        ({"throttled": {"power brake": 0.01}}, "pass", "no wrong words"),
        ({"throttled": {"power brake": 0.05}, "looks": 59}, "pass", "no wrong words"),  # of two samples
        ({"throttled": {"power brake": 0.05}, "looks": 60}, "warn", "power brake 5 % of the time"),
        ({"throttled": {"hardware thermal slowdown": 0.2}}, "warn", "hardware thermal slowdown 20 % of the time"),
        ({"throttled": {"power brake": 0.05, "hardware slowdown": 0.05}}, "warn", "power brake 5 % of the time"),
        ({"throttled": {"hardware thermal slowdown": 0.5}}, "fail", "hardware thermal slowdown 50 % of the time"),
        ({"throttled": {"software thermal slowdown": 0.5}}, "warn", "software thermal slowdown 50 % of the time"),
        ({"drift": {"p2p": [24.0, 21.7]}}, "pass", "no wrong words"),
        ({"drift": {"p2p": [24.0, 21.5]}}, "warn", "p2p bandwidth fell from 24 to 21.5 GB/s under load"),
        ({"drift": {"host-to-device": [48.9, 41.9], "device-to-host": [50.0, 52.0]}}, "pass", "no wrong words"),
        ({"drift": {"host-to-device": [50.0, 30.0], "device-to-host": [50.0, 44.0]}}, "warn",
         "host bandwidth fell from 100 to 74 GB/s under load"),
        ({"wrong": 12, "wrong_in": {"power": 12}}, "fail", "12 wrong words under load, in turn power"),
        ({"drift": {"p2p": [24.0, 30.0], "compute": [14.0, 7.0]}}, "pass", "no wrong words"),
        ({"drift": {"p2p": [0.0, 3.0]}}, "pass", "no wrong words"),
        ({"drift": {"host-to-device": [50.0, 37.5], "device-to-host": [50.0, 37.5]}}, "pass", "no wrong words"),
        ({"drift": {"p2p": [24.0, "x"], "peer": ["x", 12.0], "host-to-device": [24.0, 12.0, 1.0]}}, "pass",
         "no wrong words in 85 cycles"),
        ({"cycles": 1}, "pass", "no wrong words in 1 cycle, at most"),
        ({"drift": {"p2p": ["x"], "host-to-device": None}}, "pass", "no wrong words"),
        ({"sm_clock": {"min": 700, "median": 1190}}, "pass", "no wrong words"),
        ({"sm_clock": {"min": 1100, "median": 1189}}, "warn",
         "SM clock 1189 MHz under load, median for this model 1400 MHz"),
        ({"sm_clock": None}, "pass", "no wrong words"),
        ({"ended": "hung: no answer for 120 s in turn host", "turn_ended": "host"}, "fail", "load ended: hung"),
        ({"with_peer": "died: SIGSEGV in turn peer"}, "fail", "traffic with GPU3 ended: died: SIGSEGV"),
        ({"cycles": 0}, "unknown", "no cycle of load ended"),
        ({"skipped": "busy", "detail": "a job"}, "skip busy", "a job"),
        ({"skipped": "nonsense", "detail": "a job"}, "skip not-supported", "a job"),
        ({"failed": "CUDA_ERROR_X", "code": 999, "detail": "cuInit"}, "fail", "CUDA_ERROR_X: cuInit"),
        ({"missing": "timeout", "detail": "CUDA did not open"}, "fail", "CUDA did not open"),
        ({"missing": "garbled", "detail": "?"}, "unknown", "?"),
    ],
)
def test_each_trouble_is_told_of_its_gpu(row: dict[str, Json], due: str, text: str) -> None:
    said = found(burnt(gpu=row))
    assert word(said[GPU]) == due
    assert text in said[GPU].judgement.message
    assert {each.status.value for bdf, each in said.items() if bdf != GPU} == {"pass"}


@pytest.mark.parametrize(("others", "due"), [(2, "warn"), (1, "pass")])
def test_a_low_clock_is_one_below_those_of_two_others(others: int, due: str) -> None:
    beside = [bdf for bdf in GPUS if bdf != GPU][:others]
    facts: dict[str, Json] = {f"measure burn-in {bdf}": {**CALM, "sm_clock": None} for bdf in GPUS}
    for bdf in (GPU, *beside):
        facts[f"measure burn-in {bdf}"] = {**CALM, "sm_clock": {"min": 900, "median": 1000 if bdf == GPU else 1400}}
    facts["measure burn-in all"] = WHOLE
    assert word(found(replace(BOX, snapshot=replace(BOX.snapshot, measurement=as_facts(facts))))[GPU]) == due


def test_the_worst_comes_first_and_nothing_is_left_out() -> None:
    said = found(burnt(gpu={"wrong": 3, "wrong_in": {"memory": 3}, "drift": {"p2p": [24.0, 12.0]}}))[GPU]
    assert word(said) == "fail"
    assert said.judgement.message.startswith("3 wrong words under load, in turn memory; p2p bandwidth fell")


def test_wrong_words_are_told_once_where_they_come_from() -> None:
    sent: dict[str, Json] = {"wrong": 3, "wrong_in": {"peer": 3}}
    kept: dict[str, Json] = {"wrong": 5, "wrong_in": {"memory": 5}}
    said = found(burnt(gpu=sent, other=kept))
    assert (word(said[GPU]), word(said[OTHER])) == ("pass", "fail")
    both: dict[str, Json] = {"wrong": 7, "wrong_in": {"peer": 3, "memory": 4}}
    said = found(burnt(gpu=both, other=kept))
    assert "4 wrong words under load, in turn memory" in said[GPU].judgement.message


@pytest.mark.parametrize(
    ("wrong_in", "links"), [({"peer": 3}, True), ({"memory": 3}, False), ({"peer": 1, "memory": 2}, False)]
)
def test_words_that_are_wrong_in_copies_alone_lead_to_the_links(wrong_in: dict[str, Json], links: bool) -> None:
    remedy = found(burnt(gpu={"wrong": 3, "wrong_in": wrong_in}))[GPU].remedy
    assert ("retrained links" in remedy) == links


@pytest.mark.parametrize("other", [{"ended": "x in turn power", "turn_ended": "power"}, {"failed": "died"}])
def test_the_neighbour_of_a_gpu_that_broke_down_is_not_blamed(other: dict[str, Json]) -> None:
    for row in ({"with_peer": "x in turn peer"}, {"ended": "x in turn peer", "turn_ended": "peer"}):
        said = found(burnt(gpu=dict(row), other=other))
        assert (word(said[GPU]), word(said[OTHER])) == ("pass", "fail")


@pytest.mark.parametrize(
    ("whole", "own", "host"),
    [
        ({"stopped": "near-slowdown", "gpu": GPU, "detail": "85 °C"}, "fail", "skip dependency-failed"),
        ({"stopped": "interrupted", "detail": "interrupted"}, "pass", "unknown"),
        ({"stopped": "unwatched", "detail": "no sample"}, "pass", "unknown"),
        ({"stopped": "no-load", "detail": "none"}, "pass", "skip dependency-failed"),
        ({"stopped": "xid", "gpu": "0000:ff:00.0", "detail": "Xid 79"}, "pass", "fail"),
    ],
)
def test_why_it_ended_is_told_once(whole: dict[str, Json], own: str, host: str) -> None:
    said = found(burnt(whole))
    assert (word(said[GPU]), word(said[None])) == (own, host)
    assert {word(each) for bdf, each in said.items() if bdf not in (GPU, None)} == {"pass"}


@pytest.mark.parametrize(("stopped", "cooled"), [("near-slowdown", True), ("slowdown", True), ("memory-error", False)])
def test_of_a_gpu_that_was_slowed_down_the_air_is_looked_at(stopped: str, cooled: bool) -> None:
    ended = found(burnt({"stopped": stopped, "gpu": GPU, "detail": "a reason"}))[GPU]
    assert ("airflow" in ended.judgement.remedy) is cooled


def test_a_gpu_that_was_stopped_before_its_first_cycle_is_not_judged() -> None:
    said = found(burnt({"stopped": "interrupted", "detail": "interrupted"}, gpu={"cycles": 0}))
    assert word(said[GPU]) == "skip dependency-failed"


def test_a_run_that_never_was_is_said_of_the_host_alone() -> None:
    facts: dict[str, Json] = {"measure burn-in all": {"missing": "timeout", "detail": "an earlier worker is stuck"}}
    made = replace(BOX, snapshot=replace(BOX.snapshot, measurement=as_facts(facts)))
    (only,) = run(made, CHECKS)
    assert (word(only), only.subject.bdf) == ("fail", None)


def test_a_site_decides_what_is_too_much() -> None:
    made: Any = burnt(gpu={"drift": {"p2p": [24.0, 21.0]}, "throttled": {"power brake": 0.05}})
    assert word(found(made)[GPU]) == "warn"
    own = Settings(thresholds={"measure.drift": 20, "measure.slowdown-warn": 10})
    assert word(found(replace(made, settings=own))[GPU]) == "pass"


@pytest.mark.parametrize("junk", [[], "x", 3, {"a": []}, True])
def test_nonsense_in_a_recording_stops_no_check(junk: Json) -> None:
    names = ("wrong", "dbe", "wrong_in", "throttled", "drift", "sm_clock", "temperature_max", "power_max", "peer")
    for name in names:
        said = found(burnt(gpu={name: junk}))
        assert Fault.CHECK_FAILED not in [each.judgement.fault for each in said.values()]
