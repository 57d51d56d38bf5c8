"""GPUs that are not measured, figures that others make invalid, and figures that are measured again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from read_box import facts_in, wired

from dgxcheck.facts.missing import Json, rows
from dgxcheck.facts.record import replace
from dgxcheck.measure.plan import MeasureStep, skipped_gpus
from dgxcheck.measure.publishable import publishable_facts
from dgxcheck.measure.run import remeasure
from dgxcheck.source.recording.load import open_source
from dgxcheck.workers.cuda.supervisor import CudaStage

A, B = "0000:06:00.0", "0000:07:00.0"


def test_a_share_of_a_gpu_and_one_that_allows_no_program_are_not_measured() -> None:
    facts = facts_in(open_source("dgx-1-v100"))
    changes: dict[str, Any] = {A: {"mig": True}, B: {"compute_mode": 2}}
    modes = tuple(replace(row, **changes.get(row.bdf, {})) for row in rows(facts.gpu_modes))
    found = skipped_gpus(wired(facts).gpus, replace(facts, gpu_modes=modes))
    assert {bdf: cast("dict[str, Json]", fact)["skipped"] for bdf, fact in found.items()} == {
        A: "not-supported", B: "not-configured",
    }  # fmt: skip
    assert skipped_gpus(wired(facts).gpus, facts) == {}


def words(wrong: int, **more: Json) -> Json:
    return {"value": wrong, "unit": "words", **more}


RATE: Json = {"value": 18.4, "unit": "GB/s"}
SOUND = {f"measure p2p-integrity {A} {B}": words(0), f"measure p2p-integrity {B} {A}": words(0)}


@pytest.mark.parametrize(
    ("facts", "withheld"),
    [
        ({}, {}),
        ({f"measure p2p-integrity {A} {B}": words(3)},
         {f"p2p {A} {B}": "data did not arrive intact", f"p2p-both {A} {B}": "data did not arrive intact"}),
        ({f"measure p2p-integrity {B} {A}": words(3)}, {f"p2p-both {A} {B}": "data did not arrive intact"}),
        ({f"measure p2p-integrity {A} {B}": words(3), f"measure memory-integrity {B}": words(9)},
         {f"p2p-integrity {A} {B}": f"the memory of {B} returns wrong words by itself",
          f"p2p {A} {B}": "data integrity was not tested", f"p2p-both {A} {B}": "data integrity was not tested"}),
        ({f"measure p2p-integrity {A} {B}": words(0, timed_out=True), f"measure p2p-integrity {B} {A}": words(7)},
         {f"p2p-integrity {A} {B}": "timed out because data of the other direction was lost",
          f"p2p {A} {B}": "data integrity was not tested", f"p2p-both {A} {B}": "data integrity was not tested"}),
        ({f"measure p2p-integrity {A} {B}": {"failed": "cuda-error"}},
         {f"p2p {A} {B}": "data integrity was not tested", f"p2p-both {A} {B}": "data integrity was not tested"}),
    ],
)  # fmt: skip
def test_no_figure_of_data_that_was_wrong_and_each_fault_once(
    facts: dict[str, Json], withheld: dict[str, str]
) -> None:
    rates = {f"measure {kind} {A} {B}": RATE for kind in ("p2p", "p2p-both", "p2p-off")}
    told = publishable_facts({**SOUND, **rates, **facts})
    assert {key.removeprefix("measure "): fact["detail"] for key, fact in told.items()
            if isinstance(fact, dict) and fact.get("skipped") == "dependency-failed"} == withheld  # fmt: skip
    assert told[f"measure p2p-off {A} {B}"] == RATE


class Again:
    """A stage that answers in turn: of the rate that is measured again, more and less than at first."""

    def __init__(self, *values: float) -> None:
        self.values, self.asked = [*values], list[Sequence[MeasureStep]]()

    def fresh(self) -> Again:
        return self

    def run(self, steps: Sequence[MeasureStep], _progress: object = None) -> dict[str, Json]:
        self.asked.append(steps)
        value = self.values.pop(0)
        return {str(step["key"]): {"value": value, "unit": "GB/s"} for step in steps}


def test_rates_alone_are_measured_twice_more_and_the_best_counts() -> None:
    topology = wired(facts_in(open_source("dgx-1-v100")))
    gpus = [gpu for gpu in topology.gpus if gpu.bdf in (A, B)]
    facts: dict[str, Json] = {f"measure p2p {A} {B}": {"value": 9.0, "unit": "GB/s"}, f"measure latency {A} {B}": RATE,
                              f"measure p2p-integrity {A} {B}": words(3)}  # fmt: skip
    stage = Again(18.0, 17.0)
    low = [f"measure p2p {A} {B}", f"measure p2p-integrity {A} {B}", f"measure p2p {B} {A}"]
    better = remeasure(cast("CudaStage", stage), topology, gpus, low, facts, lambda key, done: None)
    assert [[step["key"] for step in steps] for steps in stage.asked] == [[low[0]], [low[0]]]
    best: Json = {"value": 18.0, "unit": "GB/s", "retries": [9.0, 17.0]}
    assert better == {**facts, low[0]: best}
