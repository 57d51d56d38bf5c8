"""Counting: what repeats is reported once and summed up, what changes is reported, and nothing grows without bound."""

from __future__ import annotations

from pathlib import Path

import pytest
from watched import XID_31, Ring, record

from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.facts.record import replace
from dgxcheck.survey import log_facts
from dgxcheck.watch.event import Event, EventKind, ReportedEvent
from dgxcheck.watch.fold import MOST_CHANGES, MOST_EVENTS, MOST_KEYS, REPEAT_S, Ledger
from dgxcheck.watch.log_events import log_events
from dgxcheck.watch.log_follower import Kmsg

DATE = "2026-11-22T10:00:00Z"


def event(code: str = "31", status: Status = Status.PASS, kind: EventKind = "xid", bdf: str = "0000:06:00.0") -> Event:
    return Event(kind=kind, status=status, bdf=bdf, code=code, text="text")


def test_an_application_xid_that_repeats_does_not_flood() -> None:
    ledger = Ledger()
    reported: list[ReportedEvent] = []
    for second in range(2 * int(REPEAT_S)):
        reported += ledger.take([event()], second, DATE)
        reported += ledger.repeated(second, DATE)
    assert [(each.event.count, each.total) for each in reported] == [(1, 1), (int(REPEAT_S), int(REPEAT_S) + 1)]


def test_what_repeated_is_summed_up_though_it_stopped() -> None:
    ledger = Ledger()
    assert len([*ledger.take([event()] * 10, 0.0, DATE)]) == 1
    assert [*ledger.repeated(REPEAT_S - 1, DATE)] == []
    assert [(each.event.count, each.total) for each in ledger.repeated(REPEAT_S, DATE)] == [(9, 10)]
    assert [*ledger.repeated(9 * REPEAT_S, DATE)] == []


def test_another_gpu_code_or_worse_status_is_told_at_once() -> None:
    ledger = Ledger()
    events = [event(), event(), event(code="13"), event(bdf="0000:07:00.0"), event(status=Status.FAIL), event()]
    reported = [*ledger.take(events, 0.0, DATE)]
    assert [(each.event.code, each.event.bdf[5:7], each.event.status.value) for each in reported] == [
        ("31", "06", "pass"), ("13", "06", "pass"), ("31", "07", "pass"), ("31", "06", "fail"),
    ]  # fmt: skip


def test_what_was_worse_long_ago_hides_nothing_today() -> None:
    ledger = Ledger()
    later = 99 * REPEAT_S
    reported = [*ledger.take([event(status=Status.FAIL)], 0.0, DATE)]
    reported += ledger.take([event()], later, DATE)
    assert ledger.tallies[event().key].worst is Status.PASS  # what an alert of Prometheus sees
    reported += ledger.take([event(), event(status=Status.FAIL), event()], later, DATE)
    assert [(each.event.status.value, each.event.count) for each in reported] == [("fail", 1), ("pass", 1), ("fail", 2)]
    assert [*ledger.take([event(status=Status.FAIL), event()], later + 1, DATE)] == []
    (summed,) = ledger.repeated(later + REPEAT_S, DATE)
    assert (summed.event.status, summed.event.count) == (Status.FAIL, 3)


def test_changes_are_told_each_until_they_flap() -> None:
    ledger = Ledger()
    reported = [*ledger.take([event("mlx5_0/1", Status.WARN, "port")] * 20, 0.0, DATE)]
    assert len(reported) == MOST_CHANGES


def test_what_xid_154_asks_for_is_reported_each_time() -> None:
    ledger = Ledger()
    again = [event("154", status) for status in (Status.FAIL, Status.PASS, Status.FAIL)]
    assert [each.event.status for each in ledger.take(again, 0.0, DATE)] == [each.status for each in again]


def test_two_troubles_of_one_thing_are_both_reported() -> None:
    ledger = Ledger()
    notes = [Event(kind="note", status=Status.WARN, code="state", text=text) for text in ("full", "read-only", "full")]
    assert [each.event.text for each in ledger.take(notes, 0.0, DATE)] == ["full", "read-only"]
    [*ledger.take((replace(notes[0], text=f"{number // 2}") for number in range(4 * MOST_KEYS)), 0.0, DATE)]
    assert len(ledger.tallies) <= MOST_KEYS + 1


def test_keys_and_events_are_bounded() -> None:
    ledger = Ledger()
    reported = 0
    for number in range(3 * MOST_EVENTS):
        reported += len([*ledger.take([event(str(number))], number * REPEAT_S, DATE)])
    assert reported == 3 * MOST_EVENTS
    assert len(ledger.tallies) == MOST_KEYS
    assert len(ledger.recent) == MOST_EVENTS


def test_what_comes_after_many_keeps_its_device_and_the_worst_is_kept() -> None:
    ledger = Ledger()
    [*ledger.take([event("79", Status.FAIL)], 0.0, DATE)]
    [*ledger.take([event(str(number)) for number in range(100, 100 + 2 * MOST_KEYS)], 1.0, DATE)]
    (reported,) = ledger.take([event("48", Status.FAIL)], 2.0, DATE)
    assert (reported.event.bdf, reported.event.code) == (event().bdf, "48")
    assert {event("79").key, event("48").key} <= ledger.tallies.keys()


def test_what_waits_to_be_told_is_not_forgotten() -> None:
    ledger = Ledger()
    waiting = [event(f"{1000 + number}") for number in range(MOST_KEYS)]
    [*ledger.take([*waiting, *waiting], 0.0, DATE)]
    [*ledger.take([event("new")], 1.0, DATE)]
    assert {each.key for each in waiting} <= ledger.tallies.keys()
    assert ledger.tallies["", "xid", "other"].count == 1


def resident() -> int:
    """KiB of this process that are in memory."""
    (line,) = (each for each in Path("/proc/self/status").read_text().splitlines() if each.startswith("VmRSS:"))
    return int(line.split()[1])


def flood(number: int) -> tuple[int, int]:
    """A log of so many Xids, as the loop takes it: how many were reported, KiB of growth after a tenth."""
    log = Kmsg(Ring(record(each, XID_31.format(pid=each), each / 1000) for each in range(1, number + 1)))
    ledger, reported, first, more = Ledger(), 0, 0, True
    while more:
        read = log.records()
        facts = log_facts(["0.0;dgxcheck: log begins", *read.lines])
        assert isinstance(facts, KernelLog)
        reported += len([*ledger.take(log_events(facts, lambda bdf, code: 0), log.sequence / 1000, DATE)])
        first = first or (resident() if log.sequence >= number // 10 else 0)
        more = read.more
    assert sum(tally.count for tally in ledger.tallies.values()) == number
    return reported, resident() - first


@pytest.mark.in_ci
def test_memory_stays_flat() -> None:
    reported, grown = flood(20_000)
    assert reported == 1
    assert grown < 1024


@pytest.mark.exhaustive
def test_memory_stays_flat_over_a_million_events() -> None:
    reported, grown = flood(1_000_000)
    assert reported == 1 + 1_000_000 // 1000 // int(REPEAT_S)
    assert grown < 1024
