"""The tables of Xids and SXids, and which follow from which."""

from __future__ import annotations

from typing import get_args

import pytest
from together import for_each

from dgxcheck.assessment.xid_explanation import explain, explain_all
from dgxcheck.facts.missing import BadInput
from dgxcheck.xid.relations import places, recovery_of, relations
from dgxcheck.xid.table import (
    BOARDS,
    FIRST_SXID,
    NAMES,
    REMEDIES,
    UNUSED,
    Fatality,
    Part,
    Response,
    Severity,
    XidEntry,
    architecture_of,
    before_ampere,
    from_ampere,
    meaning,
    sxids,
)

VOLTA, AMPERE = NAMES["volta"], NAMES["ampere"]
ACTIONS = {
    "RESTART_APP", "IGNORE", "RESET_GPU", "RESTART_BM", "RESTART_VM", "CONTACT_SUPPORT", "CHECK_MECHANICALS",
    "CHECK_UVM", "UPDATE_SWFW", "WORKFLOW_XID_45", "WORKFLOW_XID_48", "WORKFLOW_NVLINK_ERR", "WORKFLOW_NVLINK5_ERR",
    "XID_154", "",
}  # fmt: skip
"""Resolution buckets of NVIDIA's catalogue; it has none for 162 to 172."""
TO_HARDWARE = {"reseat", "replace", "field-diagnostic", "reset-gpu", "reboot", "power-cycle", "contact-vendor"}
Rows = list[XidEntry]
EVERY: Rows = [*from_ampere().values(), *before_ampere().values()]


def test_every_row_has_known_words_and_its_own_number() -> None:
    for entry in EVERY:
        assert entry.severity in get_args(Severity)
        assert entry.response in get_args(Response)
        assert entry.about in get_args(Part)
        assert entry.text
        assert entry.action in ACTIONS
    for number, sxid in sxids().items():
        assert number >= FIRST_SXID
        assert sxid.fatality in get_args(Fatality)
        assert sxid.severity in get_args(Severity)
    assert {*REMEDIES} == {*get_args(Response)}
    assert [*REMEDIES] == [*get_args(Response)]


def test_the_lists_are_whole() -> None:
    assert {*from_ampere()} == {*range(1, 177), 185}
    unused_before = {5, 10, 14, 15, 17, 23, 39, 40, 41, 49, 50, 51, 52, 53, 55, 87, 90, 91, 94, 95, 108, 121}
    beyond = {*range(126, 137), 138, 139, 141, 142}
    assert {*before_ampere()} == {*range(1, 144)} - unused_before - beyond
    assert len(sxids()) == 93


@pytest.mark.parametrize(
    "numbers",
    [
        "8 11 13 25 31 32 39 40 41 60 68 69 70 71 72 75 76 77 80 82 83 84 85 86 88 89 96 105 126 135 139",
        "43 45 137",
    ],
)
def test_what_nvidia_answers_with_a_restart_of_the_program_never_leads_to_hardware(numbers: str) -> None:
    for number in map(int, numbers.split()):
        (known,) = explain(number, "a100")
        assert known.entry.severity == "application"
        assert known.entry.action in ("RESTART_APP", "IGNORE", "WORKFLOW_XID_45")
        assert not TO_HARDWARE & {*known.steps}


FIRST: dict[str, set[str | None]] = {
    "RESET_GPU": {"reset-gpu"}, "IGNORE": {"watch", "check-program", None},
    "RESTART_APP": {"check-program", "restart-program"}, "RESTART_BM": {"reboot"}, "RESTART_VM": {"inspect"},
    "UPDATE_SWFW": {"inspect"}, "CONTACT_SUPPORT": {"watch"}, "CHECK_MECHANICALS": {"inspect"}, "CHECK_UVM": {"watch"},
    "WORKFLOW_XID_45": {"check-program"}, "WORKFLOW_XID_48": {"reset-gpu"}, "WORKFLOW_NVLINK_ERR": {"reset-gpu"},
    "WORKFLOW_NVLINK5_ERR": {"reset-gpu"}, "XID_154": {"inspect"},
}  # fmt: skip
"""Our first steps by NVIDIA's immediate action, from Ampere on; None: no step."""


def test_the_first_step_follows_from_the_action_of_nvidia() -> None:
    for known in explain_all("h100"):
        if known.entry.number == 160:  # works on, and the next reset repairs
            assert known.steps[0] == "reset-gpu"
        elif known.entry.action:
            assert (known.steps[0] if known.steps else None) in FIRST[known.entry.action], known


@pytest.mark.parametrize(
    ("number", "before", "later"),
    [
        (32, ("warn", "pcie"), ("application", "program")),
        (63, ("warn", "watch"), ("information", "none")),
        (64, ("fail", "field-diagnostic"), ("fail", "reset")),
        (57, ("fail", "memory"), ("warn", "report")),
        (58, ("fail", "memory"), ("warn", "report")),
        (48, ("fail", "memory"), ("fail", "memory")),
        (94, ("warn", "contained"), ("warn", "contained")),
        (5, ("warn", "report"), ("warn", "report")),
        (999, ("warn", "report"), ("warn", "report")),
    ],
)
def test_classes_depend_on_the_architecture(number: int, before: tuple[str, str], later: tuple[str, str]) -> None:
    for architecture, due in ((VOLTA, before), (AMPERE, later)):
        known = meaning(number, architecture)
        assert (known.severity, known.response) == due


def test_without_an_architecture_the_worse_meaning_counts() -> None:
    order = get_args(Severity)
    for number in from_ampere():
        known = [meaning(number, each) for each in (VOLTA, AMPERE)]
        unused = from_ampere()[number].text == UNUSED
        used = known[:1] if unused and number in before_ampere() else known
        assert meaning(number, None).severity == min((each.severity for each in used), key=order.index)
        assert all(each.text in meaning(number, None).text for each in used)


@pytest.mark.parametrize(
    ("name", "due"),
    [("v100", "volta"), ("V100", "volta"), ("Tesla V100-SXM2-16GB", "volta"), ("NVIDIA A100-SXM4-80GB", "ampere"),
     ("hopper", "hopper"), ("NVIDIA H100 80GB HBM3", "hopper"), ("gb200", "blackwell"), ("Tesla K80", "kepler")],
)  # fmt: skip
def test_boards_have_an_architecture(name: str, due: str) -> None:
    assert architecture_of(name) == (due, NAMES[due])
    assert {*BOARDS.values()} <= {*NAMES}


def test_an_unknown_board_is_refused_with_the_nearest() -> None:
    with pytest.raises(BadInput, match="did you mean v100"):
        architecture_of("v1000")


@for_each(
    ("effect", "cause", "due"),
    [
        (74, 79, ("nvlink-peer", "same-gpu")), (74, 62, ("nvlink-peer", "same-gpu")), (74, 74, ("nvlink-peer",)),
        (74, 48, ("nvlink-peer", "same-gpu")), (149, 119, ("nvlink-peer", "same-gpu")), (145, 149, ("nvlink-peer",)),
        (149, 145, ()), (74, 13, ()), (74, 63, ()), (24007, 79, ("gpu-to-nvswitch",)), (22003, 79, ()),
        (74, 20034, ("nvswitch-to-gpu",)), (74, 11012, ()), (45, 48, ("any-gpu",)), (45, 45, ()), (45, 154, ()),
        (154, 48, ("same-gpu",)), (154, 154, ()), (171, 48, ("same-gpu",)), (63, 48, ("same-gpu",)),
        (20034, 79, ("gpu-to-nvswitch",)), (19084, 20034, ("same-nvswitch",)), (79, 74, ()), (48, 63, ()),
    ],
)  # fmt: skip
def test_what_follows_from_what(effect: int, cause: int, due: tuple[str, ...]) -> None:
    assert places(effect, cause) == due


def test_relations_name_known_numbers_and_no_circle_but_those_of_the_two_ends_of_a_link() -> None:
    known = {*from_ampere(), *sxids()}
    pairs = {(relation.effect, cause) for relation in relations() for cause in relation.causes}
    assert {number for pair in pairs for number in pair} <= known
    of_links = {entry.number for entry in EVERY if entry.response == "nvlink"}
    assert {74, 144, 150} <= of_links
    circles = {number for effect, cause in pairs if (cause, effect) in pairs for number in (effect, cause)}
    assert circles == of_links


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)", "gpu-reset"),
        ("GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)", "none"),
        ("GPU recovery action changed from 0x0 (None) to 0x4 (Drain and Reset)", "drain-and-reset"),
        ("GPU recovery action changed from 0x0 (None) to 0x7 (Something Else)", "other"),
        ("", "other"),
    ],
)
def test_the_recovery_is_the_one_that_the_action_changed_to(text: str, due: str) -> None:
    assert recovery_of(text) == due


def test_every_meaning_has_a_first_step_in_words_and_steps_unless_none_is_needed() -> None:
    for known in explain_all(None):
        assert known.remedy
        assert bool(known.steps) == (known.fault is not None)
        assert known.entry.severity != "information" or not known.steps


@pytest.mark.parametrize(("number", "words"), [(56, "display engine error"), (58, "video memory interface")])
def test_a_number_that_is_logged_is_not_unused(number: int, words: str) -> None:
    """The catalogue is of data-center GPUs: a GeForce with a display logs Xid 56."""
    entry = meaning(number, AMPERE)
    assert words in entry.text
    assert (entry.severity, entry.action) == ("warn", "CONTACT_SUPPORT")
    assert meaning(51, AMPERE).text == UNUSED  # nobody says what it means
