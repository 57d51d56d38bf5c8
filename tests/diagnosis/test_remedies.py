"""What is done about any shipped fault: each step with its source, in an order that does no harm."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from judging import briefly
from remedy_list import GOLDEN, text
from sample import FAULTS

from dgxcheck.diagnosis.action import SOURCES
from dgxcheck.output.health.sentences import SENTENCES

LADDER = ("reset-gpu", "reboot", "power-cycle", "field-diagnostic", "reseat", "replace", "contact-vendor")
"""The order of steps for hardware; what is reseated before a diagnostic is judged by ``GPU``."""
GPU = ("gpu", "board", "nvlink")
DISTURBING = ("jobs", "traffic", "host", "device")
BY_HAND = re.compile(r"\b(replace|reseat|swap)\b")

Cause = dict[str, Any]
pytestmark = pytest.mark.of_all_faults


def causes() -> Iterator[tuple[Cause, dict[str, Any], str]]:
    for fault in FAULTS:
        document = briefly(fault)
        yield from ((cause, document, f"{fault} {cause['id']}") for cause in document["causes"])


def test_every_instruction_has_a_source() -> None:
    assert {*SOURCES} == {*SENTENCES} - {"finding-remedy"}
    assert all(SOURCES.values())


def test_the_list_of_remedies_is_what_is_printed() -> None:
    assert text() == GOLDEN.read_text(encoding="utf-8"), "run 'make golden' and read what changed"


def test_no_remedy_does_harm() -> None:
    """One test for all, for nothing that it needs is known before what ships was judged."""
    for cause, document, where in causes():
        no_harm(cause, document, where)


def no_harm(cause: Cause, document: dict[str, Any], where: str) -> None:
    actions = cause["actions"]
    steps = [action["action"] for action in actions]
    warns = cause["severity"] == "warn"
    assert all(action["source"] for action in actions), where
    # drained before the first step that stops jobs or traffic
    first = next((n for n, action in enumerate(actions) if action["scope"] in DISTURBING), None)
    if first is not None and steps != ["stop-jobs"] and actions[first]["scope"] != "device":
        assert "drain" in steps[:first], where
    # nothing of a GPU is replaced before a field diagnostic, nothing at all for a warning but a disk
    if "replace" in steps:
        assert not warns or cause["component"]["kind"] == "disk", where
        if cause["component"]["kind"] in GPU and cause["component"]["part"] != "power supply":
            assert "field-diagnostic" in steps[: steps.index("replace")], where
    # the least disruptive first
    ranks = [LADDER.index(step) for step in steps if step in LADDER and step != "reseat"]
    assert ranks == sorted(ranks), where
    # a reset takes what NVLinks join before Ampere, and is preceded by what keeps the GPU open
    if "reset-gpu" in steps:
        assert "stop-jobs" in steps[: steps.index("reset-gpu")], where
    # the findings say what the cause says
    for finding in document["findings"]:
        if finding["key"] in cause["explains"] and cause["action"]["remedy_of"] is None:
            assert not BY_HAND.search(finding["remedy"]) or cause["action"]["action"] in ("reseat", "replace"), where


def test_no_program_leads_to_hardware_by_repetition() -> None:
    hardware = {"reset-gpu", "reboot", "power-cycle", "field-diagnostic", "reseat", "replace", "contact-vendor"}
    found = [cause for cause, *_ in causes() if cause["faults"] == ["xid-application"]]
    assert found
    assert not [cause["id"] for cause in found if hardware & {action["action"] for action in cause["actions"]}]


@pytest.mark.parametrize(
    ("fault", "asks"), [("dgx-1-v100-port-init", "mlx5_0"), ("dgx-1-v100-port-no-sm", "mlx5_0"),
                        ("dgx-a100-no-subnet-manager", "")],
)  # fmt: skip
def test_only_a_port_that_knows_a_subnet_manager_asks_for_it_before_any_restart(fault: str, asks: str) -> None:
    (cause,) = briefly(fault)["causes"]
    inspect, restart = cause["actions"]
    assert [action["action"] for action in (inspect, restart)] == ["inspect", "restart-service"]
    assert [command[2] for command in inspect["commands"] if command[0] == "sminfo"] == [asks] * bool(asks)
    assert restart["commands"] == []
