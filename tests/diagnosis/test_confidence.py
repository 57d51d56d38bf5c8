"""Confidence counts independent facts: findings made of one fact agree by themselves."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hand_made import box_of, finding, gpu_part
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.checks.engine.finding import Finding, Witness
from dgxcheck.components.component import Component
from dgxcheck.diagnosis.confidence import by_agreement
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.record import replace

GPU: Component = gpu_part(box_of("dgx-1-v100"), 2)
FAULTS = (Fault.GPU_LOST, Fault.XID, Fault.LINK_NARROW)
WITNESSES: tuple[Witness, ...] = ("state", "log", "measurement")
Fact = tuple[FaultKind, Witness]


def made(facts: Sequence[Fact]) -> list[Finding]:
    """One finding per fact, each of another check."""
    return [replace(finding(GPU, fault, witness=witness), id=f"made.{n}") for n, (fault, witness) in enumerate(facts)]


@given(st.lists(st.tuples(st.sampled_from(FAULTS), st.sampled_from(WITNESSES)), min_size=1, max_size=6))
def test_a_fact_that_several_checks_report_counts_once(facts: list[Fact]) -> None:
    confidence = by_agreement(GPU, made(facts))
    assert confidence.findings == len({*facts})
    assert confidence == by_agreement(GPU, made([*facts, *facts]))
    assert confidence.level == ("high" if len({*facts}) > 1 else "fair")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ([(Fault.GPU_LOST, "state"), (Fault.GPU_LOST, "log")], "several-findings"),
        ([(Fault.GPU_LOST, "state"), (Fault.GPU_LOST, "state")], "one-finding"),
        ([(Fault.GPU_LOST, "state")], "one-finding"),
    ],
)
def test_the_driver_and_the_kernel_log_are_two_witnesses(facts: list[Fact], reason: str) -> None:
    assert by_agreement(GPU, made(facts)).reason == reason


def test_the_same_fault_at_two_devices_is_two_facts() -> None:
    switch = Component(kind="switch", name="0000:08:00.0", bdf="0000:08:00.0")
    both = [finding(gpu_part(box_of("dgx-1-v100"), number), Fault.GPU_LOST) for number in (2, 3)]
    assert (by_agreement(switch, both).findings, by_agreement(switch, [*both, *both]).findings) == (2, 2)
