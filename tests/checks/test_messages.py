"""What checks say: every message keeps simple rules, and every place that words one is reached."""

from __future__ import annotations

import re

import pytest
from checkout import ROOT
from judging import judged
from sample import BOXES
from together import for_each, holds_for_each
from wording_rules import LONGEST, TOO_LONG, broken_rules

from dgxcheck.checks.engine.check import _phrase, own_remedy, remedy_of
from dgxcheck.checks.gpu.presence import _RECOVERY
from dgxcheck.checks.kernel_log.software import _LIMITS
from dgxcheck.checks.network.port_counters import _PARTICULAR
from dgxcheck.checks.registry import CHECKS
from dgxcheck.facts.faults import EVERY_FAULT
from dgxcheck.facts.infiniband import RECEIVER
from dgxcheck.facts.nvml.gpu import FABRIC_CONFIGURATIONS
from dgxcheck.package_files import table


def messages_keep_the_rules(name: str) -> None:
    messages = {finding["message"] for finding in judged(name)[1]["findings"]}
    assert messages
    assert {message: broken for message in messages if (broken := broken_rules(message))} == {}


@for_each("name", BOXES)
def test_messages_of_boxes_keep_the_rules(name: str) -> None:
    messages_keep_the_rules(name)


def causes_and_actions_keep_the_rules(name: str) -> None:
    causes = judged(name)[1]["causes"]
    texts = {text for cause in causes for text in (cause["message"], cause["confidence"]["text"])}
    texts |= {action["text"] for cause in causes for action in cause["actions"]}
    broken = {text: {*broken_rules(text)} - {TOO_LONG} for text in texts}
    assert {text: rules for text, rules in broken.items() if rules} == {}


def test_texts_of_checks_keep_the_rules() -> None:
    def keeps_them(text: str) -> None:
        assert {*broken_rules(text)} - {TOO_LONG, "capital at the start"} == set()

    holds_for_each([text for check in CHECKS for text in (check.source, check.remedy)], keeps_them)


def test_every_check_says_its_rule_its_source_and_a_remedy() -> None:
    assert [check.id for check in CHECKS if not (check.rule and check.source and check.remedy)] == []
    assert [check.id for check in CHECKS if not check.rule.endswith(".") or "Source:" in check.rule] == []


BY_NUMBER_OR_WORD: dict[str, tuple[set[str], set[str]]] = {
    "driver.fabric-health": ({*map(str, FABRIC_CONFIGURATIONS), "no domain"}, set()),
    "gpu.reset-required": ({*map(str, _RECOVERY), "unknown"}, {"1", "5", "6"}),
    "kernel.machine-check": ({"uncorrected", "PCI"}, {"uncorrected"}),
    "kernel.out-of-memory": ({*_LIMITS, "service"}, set()),
    "network.transport-errors": ({*_PARTICULAR}, {"fabric", RECEIVER}),
}  # fmt: skip
"""Checks whose code has their cases from a table of their own: all, and those that the step of the check or the fault
serves."""


@pytest.mark.parametrize("check", BY_NUMBER_OR_WORD)
def test_each_case_of_a_table_has_its_own_remedy_or_is_known_to_need_none(check: str) -> None:
    cases, served = BY_NUMBER_OR_WORD[check]
    rows = {row["case"] for row in table("checks/remedies.tsv") if row["check"] == check and row["case"]}
    assert rows == cases - served
    assert {case: own_remedy(check, case) for case in served} == dict.fromkeys(served, "")


def test_a_phrase_that_is_misspelt_is_an_error() -> None:
    with pytest.raises(KeyError):
        _phrase("wacth")
    assert [_phrase(name) for name in ("", "0", "node")] == ["{}", "{0}", "{node}"]


def test_a_case_without_a_remedy_is_an_error() -> None:
    with pytest.raises(KeyError):
        remedy_of("kernel.out-of-memory", "no such case")
    assert remedy_of("no.such-check") == ""


def test_each_case_of_a_remedy_is_asked_for() -> None:
    """What is asked for has a row, and each row is that of a check, or a case that some code names."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "dgxcheck" / "checks").rglob("*.py"))]
    text = "\n".join(texts)
    asked = {(call[1], call[2] or "") for call in re.finditer(r'remedy_of\("([^"]+)"(?:, "([^"]+)")?\)', text)}
    rows = {(row["check"], row["case"]) for row in table("checks/remedies.tsv") if row["check"]}
    assert asked - rows == set()
    assert {check for check, case in rows if not case} == {check.id for check in CHECKS}
    named = {(check, case) for check, case in rows for text in texts if f'"{check}"' in text and f'"{case}"' in text}
    assert {row for row in rows - named if row[1] and row[0] not in BY_NUMBER_OR_WORD} == set()


def test_meanings_of_faults_keep_the_rules() -> None:
    broken = {fault.word: broken_rules(fault.meaning) for fault in EVERY_FAULT}
    assert {word: rules for word, rules in broken.items() if rules} == {}


@pytest.mark.parametrize(
    ("message", "broken"),
    [
        ("1 errors since boot", "plural after 1"),
        ("1 of 1 sockets", "plural of one"),
        ("CPUs 11 are offline", "plural of one"),
        ("two  blanks", "a blank too many"),
        ("failed: ", "a blank too many"),
        ("failed,; twice", "a doubled mark"),
        ("The link is down", "capital at the start"),
        ("the link is down.", "full stop at the end"),
        ("85 C", "degrees without the sign"),
        ("90% of it", "a unit without a blank"),
        ("12 GB/s of 100 Gbit/s", "bytes and bits in one message"),
        ("Missing(gap) here", "something unformatted"),
        ("for want of power", "a word of our own"),
        ("a (half", "parentheses without their other half"),
        ("x" * (LONGEST + 1), TOO_LONG),
    ],
)
def test_rules_can_fail(message: str, broken: str) -> None:
    assert broken in broken_rules(message)


@pytest.mark.parametrize(
    "message",
    ["1 error, 2 errors", "link 1 has no peer", "Xid 79: GPU has fallen off the bus", "0000:0c:00.0 is at 85 °C (88 %)",
     "1 process is running", "10 Gbit/s, expected 100 Gbit/s", "Linux 5.15.0"],
)  # fmt: skip
def test_rules_let_pass(message: str) -> None:
    assert broken_rules(message) == []
