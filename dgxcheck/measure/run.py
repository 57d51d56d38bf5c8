"""Measure a box: run the plan, and withhold invalid results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.facts.missing import Json, items_of, members_of
from dgxcheck.measure import plan
from dgxcheck.measure.publishable import publishable_facts
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Device, Topology
from dgxcheck.workers.cuda.supervisor import CudaStage, Progress

TWICE = 2
RATES = ("GB/s", "TFLOP/s", "us", "ns")


def measure(
    stage: CudaStage, topology: Topology, gpus: Sequence[Device], facts: Snapshot, progress: Progress,
    long: bool = False,
) -> dict[str, Json]:  # fmt: skip
    """The fact of every step by its key; without a usable CUDA driver only ``measure cuda all``."""
    skipped = plan.skipped_gpus(gpus, facts)
    measurable = [gpu for gpu in gpus if gpu.bdf not in skipped]
    measured = stage.run(plan.steps(topology, measurable, long), progress)
    own = {f"measure {kind} {bdf}": why for bdf, why in skipped.items() for kind in plan.OF_ONE}
    return publishable_facts(measured) | own


def remeasure(
    stage: CudaStage, topology: Topology, gpus: Sequence[Device], keys: Sequence[str], facts: Mapping[str, Json],
    progress: Progress, long: bool = False,
) -> dict[str, Json]:  # fmt: skip
    """Measure the rates of these keys twice more; the best of the three is the value, the others are in ``retries``."""
    steps = plan.steps(topology, gpus, long)
    # other load can worsen a rate or time, and no count of wrong words
    rates = {key for key in keys if members_of(facts.get(key)).get("unit") in RATES}
    repeated = [step for step in steps if step["key"] in rates]
    better = dict(facts)
    for _ in range(TWICE if repeated else 0):
        rerun = stage.fresh().run(repeated, progress)
        for step in repeated:
            key = str(step["key"])
            better[key] = best(better[key], rerun.get(key))
    return better


def best(first: Json, second: Json) -> Json:
    """The better of two facts of one key (higher rate, lower time), the other value in its ``retries``."""
    if not isinstance(first, dict) or not isinstance(second, dict):
        return first
    a, b = first.get("value"), second.get("value")
    if not isinstance(a, int | float) or not isinstance(b, int | float):
        return first
    earlier = items_of(first.get("retries"))
    less_is_better = first.get("unit") in ("us", "ns")
    if (b < a) if less_is_better else (b > a):
        return {**second, "retries": [*earlier, a]}
    return {**first, "retries": [*earlier, b]}
