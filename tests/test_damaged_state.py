"""Whatever stands at any place of a file that earlier runs left, it is dropped with a word: no error, no trust."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from fuzz.seeds import COUNTERS, RESULT, WATCH
from fuzz.targets import TARGETS, tried
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.assessment.last_run import Present, counts, last_run
from dgxcheck.assessment.machine import topology_of
from dgxcheck.checks.by_nature.last_run import CHECKS as LAST_RUN
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.engine.run import run
from dgxcheck.checks.pcie.aer import CHECKS as AER
from dgxcheck.checks.registry import PROBES
from dgxcheck.facts.missing import BadInput, Json
from dgxcheck.source import state_file
from dgxcheck.source.recording.load import open_source
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.survey import Snapshot, survey
from dgxcheck.watch import memory
from dgxcheck.watch.event import Event
from dgxcheck.watch.fold import Ledger
from dgxcheck.watch.log_follower import LogFollower

ODD: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=30)
    | st.sampled_from(("0000:06:00.0", "2026-99-99T00:00:00Z", "9999-12-31T23:59:59Z", 10**30, 1e300, "\x7f")),
    lambda one: st.lists(one, max_size=12) | st.dictionaries(st.text(max_size=8) | st.just("missing"), one, max_size=3),
    max_leaves=12,
)  # fmt: skip


def places(value: Json, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield at
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, member in members:
        yield from places(member, (*at, name))


def put(value: Json, at: tuple[str | int, ...], new: Json) -> Json:
    if not at:
        return new
    items = value.items() if isinstance(value, dict) else enumerate(value)  # type: ignore[arg-type]
    members = {name: put(member, at[1:], new) if name == at[0] else member for name, member in items}
    return [*members.values()] if isinstance(value, list) else members  # type: ignore[return-value]


def damaged(data: st.DataObject, whole: Any) -> Any:
    for _ in range(data.draw(st.integers(1, 3))):
        whole = put(whole, data.draw(st.sampled_from([*places(whole)])), data.draw(ODD))
    return whole


READING = "width 0000:06:00.0"
LIVE = RESULT | {"source": {"kind": "live"}}


@pytest.mark.in_ci
@pytest.mark.parametrize(
    ("name", "whole"), [("counters", COUNTERS), ("watch_state", WATCH), ("results", RESULT), ("history", LIVE)]
)
@given(st.data())
def test_any_value_at_any_place(name: str, whole: object, data: st.DataObject) -> None:
    tried(TARGETS[name], json.dumps(damaged(data, whole)).encode())


@cache
def box() -> tuple[RecordedSource, Snapshot, Box]:
    source = open_source("dgx-1-v100")
    assert isinstance(source, RecordedSource)
    facts = survey(source, PROBES)
    topology = topology_of(facts)
    return source, facts, Box(snapshot=facts, topology=topology, gpus=topology.gpus, present=counts(facts, topology))


@pytest.mark.in_ci
@given(data=st.data())
def test_health_goes_on_from_any_state(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    source, facts, machine = box()
    file = tmp_path_factory.getbasetemp() / "counters.json"
    present = Present(counts=machine.present, accepted=False)
    file.unlink(missing_ok=True)
    last_run(source, facts, str(file), present)
    whole = json.loads(file.read_text())
    whole["state"]["at_s"] -= 60
    file.write_text(json.dumps(whole | {"state": damaged(data, whole["state"])}))
    try:
        last = last_run(source, facts, str(file), present)
    except BadInput:
        return
    judged = Box(
        snapshot=facts, topology=machine.topology, gpus=machine.gpus, present=machine.present, growth=last.growth,
        inventory=last.inventory, kept=last.kept, state_trouble=last.trouble,
    )  # fmt: skip
    found = run(judged, (*LAST_RUN, *AER))
    assert not [each.judgement.message for each in found if "internal error" in each.judgement.message]
    assert last_run(source, facts, str(file), present).trouble == ""


@pytest.mark.parametrize(
    ("member", "value"),
    [("xids", [5]), ("xids", ["no date"]), ("xids", {}), ("inventory", {"mark": {"GPU": [-1, "2026-11-22"]}}),
     ("inventory", {"mark": {"GPU": [8, "today"]}}), ("inventory", {"mark": 8}), ("kept", "x"),
     ("kept", {"mark": "m", "date": "then", "changed": "", "values": {}}),
     ("kept", {"mark": "m", "date": "2026-11-22T10:00:00Z", "changed": "", "values": {"Gpu x": {"vbios": {"a": 1}}}})],
)  # fmt: skip
def test_a_damaged_entry_of_health_is_counted(member: str, value: Json, tmp_path: Path) -> None:
    file = tmp_path / "counters.json"
    state: dict[str, Json] = {**COUNTERS["state"]}  # type: ignore[dict-item]
    file.write_text(json.dumps(COUNTERS | {"state": state | {member: value}}))
    found = state_file.read(str(file))
    assert found is not None
    assert found.damaged == (0 if not value else 1)


@pytest.mark.parametrize("state", [{"at_s": -1}, {"at_s": True}, {"at_s": "1"}, {"date": "yesterday"}, {"boot_id": 5}])
def test_a_state_without_a_time_counts_for_nothing(state: dict[str, Json], tmp_path: Path) -> None:
    file = tmp_path / "counters.json"
    file.write_text(json.dumps(COUNTERS | {"state": {**COUNTERS["state"], **state}}))  # type: ignore[dict-item]
    with pytest.raises(BadInput, match="not a state file of dgxcheck health"):
        state_file.read(str(file))


def test_a_damaged_entry_of_the_watch_is_counted(tmp_path: Path) -> None:
    file = tmp_path / "watch.json"
    file.write_text(json.dumps(WATCH | {"readings": {"width 0000:07:00.0": 16, READING: "y"}, "events": [5]}))
    found = memory.load(str(file))
    assert found is not None
    assert (found.damaged, found.readings) == (2, {"width 0000:07:00.0": 16})


@pytest.mark.parametrize("name", sorted({*WATCH} - {"schema"}))
@pytest.mark.parametrize("value", [None, 5, "x", [], {}, True])
def test_a_damaged_member_of_the_watch_costs_no_other(name: str, value: Json, tmp_path: Path) -> None:
    file = tmp_path / "watch.json"
    document = {**WATCH, "readings": {READING: 16}, "lost": 7, "boot_id": "b", "sequence": 9, "verdict": "pass"}
    without = {key: each for key, each in document.items() if key != name}
    for damaged_one in (without, without | {name: value}):
        file.write_text(json.dumps(damaged_one))
        found, whole = memory.load(str(file)), memory.load(str(_written(tmp_path / "whole.json", document)))
        assert found is not None
        assert whole is not None
        for other in sorted({"readings", "lost", "boot_id", "sequence"} - {name}):
            assert getattr(found, other) == getattr(whole, other)
        if name != "tallies":
            assert found.ledger.tallies.keys() == whole.ledger.tallies.keys()


@pytest.mark.parametrize(
    "text",
    [json.dumps({**WATCH, "verdict": "skip"}), json.dumps({**WATCH, "readings": {READING: 33}}),
     json.dumps({**WATCH, "tallies": [[*WATCH["tallies"][0][:8], "skip", *WATCH["tallies"][0][9:]]]}),  # type: ignore[index]
     json.dumps(WATCH).replace('"lost"', '"lost": 3, "lost"', 1)],
)  # fmt: skip
def test_what_no_watch_writes_is_damaged(text: str, tmp_path: Path) -> None:
    file = tmp_path / "watch.json"
    file.write_text(text)
    found = memory.load(str(file))
    assert found is not None
    assert found.damaged == 1


def _written(path: Path, document: object) -> Path:
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("began", [1e12, float("inf")])
def test_a_period_that_begins_in_the_future_silences_nothing(began: float) -> None:
    ledger = Ledger()
    event = Event(kind="xid", status=Status.FAIL, bdf="0000:06:00.0", code="79", text="x")
    assert len([*ledger.take([event], 100.0, "")]) == 1
    ledger.tallies[event.key].began = began
    assert len([*ledger.take([event], 200.0, "")]) == 1
    assert [*ledger.take([event], 210.0, "")] == []


def test_a_place_in_the_log_that_is_still_to_come_hides_no_record(tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    log.write_text("4,8,70000000,-;NVRM: Xid (PCI:0000:06:00): 79, pid=1, GPU has fallen off the bus.\n")
    for sequence, told in ((-1, True), (7, True), (8, False), (10**12, True)):
        follower = LogFollower(os.open(log, os.O_RDONLY), sequence, lambda bdf, number: 0)
        assert ["xid" in {event.kind for event in [*follower.events()]}] == [told], sequence
        assert follower.sequence == 8
        follower.close()
