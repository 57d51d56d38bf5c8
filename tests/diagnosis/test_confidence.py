"""Three words of confidence: read, inferred from kinds of evidence, a guess among components."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hand_made import box_of, finding, gpu_part
from hypothesis import given
from hypothesis import strategies as st
from judging import judged

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
def test_a_kind_of_evidence_that_several_checks_report_counts_once(facts: list[Fact]) -> None:
    confidence = by_agreement(GPU, made(facts))
    assert confidence.kinds == len({*facts})
    assert confidence == by_agreement(GPU, made([*facts, *facts]))
    assert confidence.level == "inferred"


def test_the_same_fault_at_two_devices_is_one_kind_that_they_have_in_common() -> None:
    switch = Component(kind="switch", name="0000:08:00.0", bdf="0000:08:00.0")
    both = [finding(gpu_part(box_of("dgx-1-v100"), number), Fault.GPU_LOST) for number in (2, 3)]
    confidence = by_agreement(switch, both)
    assert (confidence.level, confidence.reason, confidence.kinds) == ("inferred", "in-common", 1)


@pytest.mark.parametrize(
    ("shipped", "text"),
    [
        ("dgx-1-v100-ecc-off", "read directly"),  # a mode
        ("dgx-1-v100-mismatch", "read directly"),  # versions
        ("dgx-1-p100-pages-63", "read directly"),  # a count
        ("dgx-a100-read-request-all", "read directly, of every device"),
        ("k80-x8-numa-two-nodes-one-root", "read directly"),
        ("dgx-1-v100-nvml-disagrees", "inferred from 1 kind of evidence"),  # either reading can be wrong
        ("dgx-1-v100-gpu-lost", "inferred from 1 kind of evidence"),
        ("dgx-1-v100-xid-79", "inferred from 2 kinds of evidence"),  # the driver and the kernel log
        ("dgx-1-v100-switch-dead", "inferred from 4 kinds of evidence: what devices that fail alike or at once have"),
        ("dgx-1-v100-port-module-hot", "a guess among 3: either end of the link"),  # nine events of one module
        ("dgx-1-v100-gpu-x8", "a guess among 3: either end of the link"),
        ("dgx-a100-nvlink-down", "a guess among 2: it can also be NVSwitch 0000:c6:00.0"),
        ("pcie-x8-gpu-slow", "a guess among 3: the slow results also crossed GPU5 0000:85:00.0"),
    ],
)
def test_of_what_ships_the_three_words_mean_one_thing_each(shipped: str, text: str) -> None:
    (cause,) = judged(shipped)[1]["causes"]
    assert cause["confidence"]["text"].startswith(text)
