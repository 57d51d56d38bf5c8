"""What the watch compares: counters, devices, judgements, and its own state file."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from watched import Listener

from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.missing import BadInput
from dgxcheck.measure.burn_in.hot_plug import Change
from dgxcheck.source.recording.load import open_source
from dgxcheck.survey import survey
from dgxcheck.watch.counters_child import read_once
from dgxcheck.watch.dispatcher import Dispatcher
from dgxcheck.watch.event import Event
from dgxcheck.watch.loop import hot_plug
from dgxcheck.watch.memory import BadFinding, LastJudgement, Memory, compared, load, save
from dgxcheck.watch.readings import (
    PROBES,
    Readings,
    changes,
    gone,
    is_blind,
    is_reading,
    merged,
    readings,
    unlisted,
    watched,
)

GPU = "0000:06:00.0"
PORT = "mlx5_0/1 0000:05:00.0"


def of_box(name: str) -> Readings:
    return readings(survey(open_source(name), PROBES))


def test_a_box_has_links_ports_and_counters() -> None:
    found = of_box("dgx-1-v100")
    assert len(watched(found)) == 12
    assert found[f"width {GPU}"] == 16
    counters = {f"port {name} {PORT}" for name in ("state", "symbol_error", "link_downed")}
    assert counters | {f"aer fatal {GPU}"} <= {*found}
    assert changes(found, of_box("dgx-1-v100")) == []


@pytest.mark.parametrize(
    ("name", "old", "new", "due"),
    [
        (f"aer fatal {GPU}", 0, 1, ("counter", GPU, "fail", "aer fatal", 1)),
        (f"aer correctable {GPU}", 5, 12, ("counter", GPU, "pass", "aer correctable", 7)),
        (f"port link_downed {PORT}", 1, 2, ("counter", "0000:05:00.0", "warn", "port link_downed mlx5_0/1", 1)),
        (f"port symbol_error {PORT}", 1, 2, ("counter", "0000:05:00.0", "pass", "port symbol_error mlx5_0/1", 1)),
        ("port symbol_error rxe0/1", 1, 2, ("counter", "", "pass", "port symbol_error rxe0/1", 1)),
        ("edac uncorrected mc0", 0, 1, ("counter", "", "fail", "edac uncorrected mc0", 1)),
        (f"width {GPU}", 16, 8, ("link", GPU, "warn", "width", 1)),
        (f"width {GPU}", 8, 16, ("link", GPU, "pass", "width", 1)),
        (f"port state {PORT}", 4, 1, ("port", "0000:05:00.0", "warn", "mlx5_0/1", 1)),
        (f"port state {PORT}", 1, 2, ("port", "0000:05:00.0", "pass", "mlx5_0/1", 1)),
        (f"port state {PORT}", 4, 2, ("port", "0000:05:00.0", "warn", "mlx5_0/1", 1)),
        (f"port state {PORT}", 4, 5, ("port", "0000:05:00.0", "warn", "mlx5_0/1", 1)),
        (f"port state {PORT}", 1, 4, ("port", "0000:05:00.0", "pass", "mlx5_0/1", 1)),
    ],
)  # fmt: skip
def test_what_grew_or_changed(name: str, old: int, new: int, due: tuple[object, ...]) -> None:
    (event,) = changes({name: old}, {name: new})
    assert (event.kind, event.bdf, event.status.value, event.code, event.count) == due


def test_two_watches_with_one_state_are_told(tmp_path: Path) -> None:
    told = []
    kept = []
    for _ in range(2):
        listener = Listener()
        kept.append(Dispatcher(str(tmp_path / "watch.json"), [listener]))
        kept[-1].begin("boot")
        told.append([event.text for event in listener.events("note")])
    assert told == [[], [f"{tmp_path}: another watch keeps its state there; give each its own folder"]]


def test_what_is_no_news() -> None:
    assert changes({f"aer fatal {GPU}": 7}, {f"aer fatal {GPU}": 0}) == []  # reset
    assert changes({}, {f"aer fatal {GPU}": 7}) == []  # not read before
    assert changes({f"aer fatal {GPU}": 7}, {}) == []  # not read now
    grown = ({f"aer fatal {GPU}": 1}, {f"aer fatal {GPU}": 2})
    assert changes(*grown, logged={(GPU, "fatal"): 1}) == []
    assert len(changes(*grown, logged={(GPU, "corrected"): 1, ("0000:07:00.0", "fatal"): 1})) == 1
    assert len(changes({f"aer fatal {GPU}": 1}, {f"aer fatal {GPU}": 3}, logged={(GPU, "fatal"): 1})) == 1


def test_a_counter_that_could_not_be_read_once_grows_all_the_same() -> None:
    known = merged({f"aer fatal {GPU}": 1}, {})
    assert [event.count for event in changes(known, {f"aer fatal {GPU}": 3})] == [2]


def test_a_device_is_gone_when_the_kernel_lists_others_without_it() -> None:
    others = {"function 0000:00:02.0": 1}
    known = {f"function {GPU}": 1, f"width {GPU}": 16, f"aer fatal {GPU}": 1} | others
    assert gone(known, others) == {GPU}
    assert gone(known, {f"function {GPU}": 1} | others) == set()  # whose link could not be read
    assert gone(known, {}) == set()  # nothing could be read
    assert gone(known, {f"function {GPU}": 1}) == set()  # no GPU, no NVSwitch, no adapter
    left = unlisted(known, {GPU})
    assert gone(left, others) == set()  # told once
    back = {f"function {GPU}": 1, f"width {GPU}": 8} | others
    assert [event.text for event in changes(left, back)] == ["PCIe link x8, was x16"]


def test_a_reading_of_nothing_is_no_news_and_is_said() -> None:
    known = {f"function {GPU}": 1, f"width {GPU}": 16}
    assert [is_blind(known, new) for new in ({}, {"edac corrected mc0": 1}, {f"function {GPU}": 1})] == [
        True, False, False,
    ]  # fmt: skip
    assert not is_blind({}, {})


def test_months_of_readings_leave_nothing_open(tmp_path: Path) -> None:
    """Names of devices are looked up in a file of the tree."""
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    (tmp_path / "usr/share/misc").mkdir(parents=True)
    (tmp_path / "usr/share/misc/pci.ids").write_text("10de  NVIDIA Corporation\n")
    gc.disable()
    try:
        opened = []
        for _ in range(20):
            assert read_once(str(tmp_path)) == {}
            opened.append(len(os.listdir("/proc/self/fd")))
    finally:
        gc.enable()
    assert opened[-1] == opened[0]


@pytest.mark.parametrize(
    ("action", "subsystem", "name", "path", "known", "due"),
    [
        ("remove", "pci", "0000:0a:00.0", "/devices/pci0000:00/0000:00:02.0/0000:0a:00.0", True,
         ("0000:0a:00.0", "warn", "PCI function 0000:0a:00.0 removed")),
        ("remove", "pci", "0000:0a:00.0", "/devices/pci0000:00/0000:00:02.0/0000:0a:00.0", False,
         ("0000:0a:00.0", "pass", "PCI function 0000:0a:00.0 removed")),
        ("add", "pci", "0000:0a:00.0", "/devices/pci0000:00/0000:0a:00.0", True,
         ("0000:0a:00.0", "pass", "PCI function 0000:0a:00.0 added")),
        ("remove", "infiniband", "mlx5_0", "/devices/pci0000:00/0000:05:00.0/infiniband/mlx5_0", True,
         ("0000:05:00.0", "pass", "infiniband device mlx5_0 removed")),
        ("add", "drm", "card1", "/devices/virtual/drm/card1", True, ("", "pass", "drm device card1 added")),
    ],
)  # fmt: skip
def test_devices_that_come_and_go(
    action: str, subsystem: str, name: str, path: str, known: bool, due: tuple[str, str, str]
) -> None:
    event = hot_plug(Change(action, subsystem, name, path), {"0000:0a:00.0"} if known else ())
    assert (event.bdf, event.status.value, event.text) == due


def judgement(verdict: str, *bad: str, passed: Sequence[str] = (), unjudged: Sequence[str] = ()) -> dict[str, object]:
    said = {"status": "fail", "bdf": GPU, "text": "x8 of x16"}
    return {
        "verdict": verdict, "findings": {key: {**said, "log": key.startswith("kernel")} for key in bad},
        "passed": [*passed], "acknowledged": [], "unjudged": [*unjudged], "persistence": True,
    }  # fmt: skip


def test_judgements_are_compared() -> None:
    width = f"pcie.width/{GPU}"
    first, reported = compared(LastJudgement(), judgement("fail", width, f"kernel.xid/{GPU}"))
    assert [(event.kind, event.code) for event in reported] == [("finding", width), ("verdict", "")]
    second, reported = compared(first, judgement("fail", width))
    assert reported == []
    third, reported = compared(second, judgement("unknown", unjudged=(width,)))
    assert [event.kind for event in reported] == ["verdict"]  # not judged is not cured
    fourth, reported = compared(third, judgement("pass", passed=(width,)))
    assert [(event.kind, event.status) for event in reported] == [("cleared", Status.PASS), ("verdict", Status.PASS)]
    assert fourth == LastJudgement(verdict="pass", findings={})


def filled() -> Memory:
    memory = Memory()
    memory.of_boot("b1")
    memory.sequence, memory.lost, memory.readings, memory.uuids = 42, 3, {f"aer fatal {GPU}": 1}, {GPU: "GPU-a"}
    bad = {"a.b": BadFinding("warn", GPU, "text")}
    memory.judged = LastJudgement(verdict="warn", date="2026-11-22T10:00:00Z", findings=bad)
    event = Event(kind="xid", status=Status.FAIL, bdf=GPU, code="79", text="gone")
    assert len([*memory.ledger.take([event], 5.0, "2026-11-22T10:00:00Z")]) == 1
    return memory


def test_the_state_file_keeps_all(tmp_path: Path) -> None:
    path = str(tmp_path / "watch.json")
    assert load(path) is None
    save(path, filled())
    found = load(path)
    assert found is not None
    again = str(tmp_path / "again.json")
    save(again, found)
    assert Path(again).read_text() == Path(path).read_text()
    event = Event(kind="xid", status=Status.FAIL, bdf=GPU, code="79", text="gone")
    assert [*found.ledger.take([event], 6.0, "")] == []  # reported before the restart


def test_another_boot_begins_anew_but_keeps_counts(tmp_path: Path) -> None:
    memory = filled()
    memory.of_boot("b2")
    assert (memory.sequence, memory.readings, memory.lost) == (-1, {}, 3)
    assert (memory.judged.verdict, memory.judged.date) == ("", "")
    event = Event(kind="xid", status=Status.FAIL, bdf=GPU, code="79", text="gone")
    assert [reported.total for reported in memory.ledger.take([event], 6.0, "")] == [2]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema": "dgxcheck/recording/1"}', "[" * 9999], ids=range(5),
)  # fmt: skip
def test_a_state_file_that_is_something_else_is_said_and_replaced(text: str, tmp_path: Path) -> None:
    path = tmp_path / "watch.json"
    path.write_text(text)
    with pytest.raises(BadInput, match="not a state file"):
        load(str(path))
    listener = Listener()
    dispatcher = Dispatcher(str(path), [listener])
    dispatcher.begin("b1")
    assert [event.text.endswith("; starting without it") for event in listener.events("note")] == [True]
    dispatcher.save(now=True)
    assert load(str(path)) is not None


DATE = "2026-11-22T10:00:00Z"
DAMAGED: tuple[tuple[str, object], ...] = (
    ("tallies", [1]),
    ("tallies", ["xid", "fail", "0000:0\x7f:00.0", "79", "gone", 1, DATE, DATE, "fail", 0, None, 0]),
    ("tallies", ["xid", "fail", GPU, "79", "gone", -1, DATE, DATE, "fail", 0, None, 0]),
    ("tallies", ["xid", "fail", GPU, "79", "gone", 1, "yesterday", DATE, "fail", 0, None, 0]),
    ("tallies", ["xid", "fail", GPU, "79", "\ud800", 1, DATE, DATE, "fail", 0, None, 0]),
    ("tallies", ["xid", "fail", GPU, "79", "gone", 1, DATE, DATE, "fail", 0, float("nan"), 0]),
    ("tallies", ["xid", "fail", GPU, "79", "gone", 1, DATE, "", "fail", 0, None, 0]),
    ("events", "text"),
    ("events", {"event": "xid", "status": "fail", "bdf": "../../etc", "at": DATE}),
    ("events", {"event": "coffee", "status": "fail", "at": DATE}),
    ("events", {"event": "xid", "status": "fail", "text": ["deep"], "at": DATE}),
    ("readings", ("aer fatal", "many")),
    ("readings", (f"width {GPU}", 33)),
    ("readings", ("width 0000:0z:00.0", 16)),
    ("readings", (f"aer worse {GPU}", 1)),
    ("readings", ("port state mlx5_0/1", 33)),
    ("readings", ("port coffee mlx5_0/1", 1)),
    ("readings", ("port state mlx5_0/1 0000:0z:00.0", 4)),
    ("readings", ("edac other mc0", 1)),
    ("findings", ("c.d", ["fail", "0000:0z:00.0", "text"])),
    ("findings", ("c.d", ["coffee", GPU, "text"])),
    ("findings", ("c.d", 7)),
)


def test_the_widest_link_and_the_highest_state_are_readings() -> None:
    assert is_reading(f"width {GPU}", 32)
    assert is_reading("port state mlx5_0/1", 32)


@pytest.mark.parametrize(("member", "entry"), DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_entry_is_dropped_and_said_and_the_others_stay(member: str, entry: object, tmp_path: Path) -> None:
    path = tmp_path / "watch.json"
    save(str(path), filled())
    document = json.loads(path.read_text())
    if isinstance(document[member], list):
        document[member].insert(0, entry)
    else:
        document[member] = dict([entry, *document[member].items()])  # type: ignore[list-item]
    damaged = tmp_path / "damaged.json"
    damaged.write_text(json.dumps(document))
    listener = Listener()
    dispatcher = Dispatcher(str(damaged), [listener])
    dispatcher.begin("b1")
    assert [event.text for event in listener.events("note")] == [f"{damaged}: 1 damaged entry dropped"]
    assert [tally.event.code for tally in dispatcher.memory.ledger.tallies.values()] == ["79", "state"]
    assert (len(dispatcher.memory.judged.findings), len(dispatcher.memory.readings)) == (1, 1)
    save(str(damaged), dispatcher.memory)
    again = load(str(damaged))
    assert again is not None
    assert again.damaged == 0


def test_a_state_file_that_cannot_be_written_is_said_once_and_stops_nothing() -> None:
    listener = Listener()
    dispatcher = Dispatcher("/proc/watch/state.json", [listener])  # nobody can write there
    dispatcher.begin("b1")
    event = Event(kind="xid", status=Status.FAIL, bdf=GPU, code="79", text="gone")
    for _ in range(3):
        dispatcher.tell([event])
        dispatcher.save(now=True)
    assert len(listener.events("xid")) == 1
    (said,) = listener.events("note")
    assert "cannot be written" in said.text
