"""What survives a restart: the place in the kernel log, counts, the last events, counters and the last judgement."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import inf, isnan
from typing import Any, TypeVar, get_args

from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.missing import BadInput, Json
from dgxcheck.facts.record import Record, replace
from dgxcheck.input_file import read_input
from dgxcheck.limits import WATCH_BYTES
from dgxcheck.source import state_file
from dgxcheck.source.recording.save import replace_file
from dgxcheck.watch.event import TEXT_CHARACTERS, Event, EventKind
from dgxcheck.watch.fold import MOST_KEYS, RANK, Ledger, Tally
from dgxcheck.watch.readings import MOST, Readings, is_reading

MOST_FINDINGS = 512
KEY_CHARACTERS = 200


class BadFinding(Record, kw_only=False):
    """One bad finding."""

    status: str
    bdf: str
    text: str


class LastJudgement(Record):
    """The last judgement."""

    verdict: str = ""
    """Empty before the first of a boot."""
    date: str = ""
    """UTC."""
    findings: Mapping[str, BadFinding] = {}
    """By key, without those of the kernel log that a record of this device says, for it is an event itself."""


def compared(old: LastJudgement, document: Mapping[str, Any]) -> tuple[LastJudgement, list[Event]]:
    """The new judgement by what the worker answered, without its date, and what is news: new or worse, right again,
    another verdict.

    A finding that is not judged now stays as it was; one whose device is gone is dropped without a word.
    """
    found = {key: old.findings[key] for key in document["unjudged"]}
    found |= {key: BadFinding(each["status"], each["bdf"], each["text"][:TEXT_CHARACTERS])
              for key, each in document["findings"].items() if not each["log"]}
    new = LastJudgement(verdict=document["verdict"], findings=dict([*found.items()][:MOST_FINDINGS]))
    events = [_event("finding", key, each, Status(each.status), "") for key, each in new.findings.items()
              if key not in old.findings or old.findings[key].status != each.status]
    events += [_event("cleared", key, old.findings[key], Status.PASS,
                      "acknowledged: " if key in document["acknowledged"] else "no longer: ")
               for key in document["passed"]]
    if new.verdict != old.verdict:
        was = f", was {old.verdict}" if old.verdict else ""
        events.append(Event(kind="verdict", status=Status(new.verdict), text=f"verdict {new.verdict}{was}"))
    return new, events


def _event(kind: EventKind, key: str, bad: BadFinding, status: Status, before: str) -> Event:
    text = f"{before}{key.partition('/')[0]}: {bad.text}"
    return Event(kind=kind, status=status, bdf=bad.bdf, code=key[:KEY_CHARACTERS], text=text[:TEXT_CHARACTERS])


SCHEMA = "dgxcheck/watch-state/1"
NAME = "watch.json"
COUNTERS = "watch-counters.json"
"""The counters that judgements of the watch compare with; ``health`` has its own."""
_KINDS: tuple[EventKind, ...] = get_args(EventKind)
_DAMAGED = (ValueError, OverflowError, TypeError, KeyError, AttributeError)
_T = TypeVar("_T")


class Memory:
    """All that the watch knows."""

    def __init__(self) -> None:
        self.boot_id = ""
        self.sequence = -1
        """Of the last record of the kernel log in that boot; -1: none was read."""
        self.lost = 0
        """Records that were overwritten before they were read, ever."""
        self.ledger = Ledger()
        self.readings: Readings = {}
        self.uuids: dict[str, str] = {}
        """Of GPUs by bus id, as far as known."""
        self.judged = LastJudgement()
        self.damaged = 0
        """Entries of the state file that were none, and are gone."""

    def of_boot(self, boot_id: str) -> None:
        """Another boot: sequence numbers, counters and times since boot start from zero."""
        if boot_id == self.boot_id:
            return
        self.boot_id, self.sequence, self.readings = boot_id, -1, {}
        self.judged = replace(self.judged, verdict="", date="")
        for tally in self.ledger.tallies.values():
            tally.began, tally.reported, tally.waiting = -inf, 0, 0

    def of_gpus(self, uuids: Mapping[str, str]) -> None:
        """GPUs that the driver lists: an Xid of one that was replaced is no earlier one of the GPU in its slot."""
        replaced = {bdf for bdf, uuid in uuids.items() if self.uuids.get(bdf, uuid) != uuid}
        for tally in self.ledger.tallies.values():
            if tally.event.kind == "xid" and tally.event.bdf in replaced:
                tally.count = tally.waiting
        self.uuids |= uuids


def load(path: str) -> Memory | None:
    """What an earlier run left; None where there is no file. BadInput for a file that is something else."""
    try:
        raw = read_input(path, WATCH_BYTES)
    except BadInput as error:
        if isinstance(error.__context__, FileNotFoundError):
            return None
        raise
    twice = 0

    def members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        nonlocal twice
        found = dict(pairs)
        twice += len(pairs) - len(found)
        return found

    try:
        memory = _memory(json.loads(raw, object_pairs_hook=members))
        memory.damaged += twice
        return memory
    except (*_DAMAGED, RecursionError):
        raise BadInput(f"{path}: not a state file of dgxcheck watch") from None


def save(path: str, memory: Memory) -> None:
    """Write beside, fsync, rename; anyone may read it. OSError where it cannot be written."""
    replace_file(path, f"{json.dumps(_document(memory))}\n", 0o644, exactly=True, regular=True)


def _document(memory: Memory) -> dict[str, Json]:
    return {
        "schema": SCHEMA, "boot_id": memory.boot_id, "sequence": memory.sequence, "lost": memory.lost,
        "tallies": [_row(tally) for tally in memory.ledger.tallies.values()],
        "events": [*memory.ledger.recent], "readings": {**memory.readings}, "uuids": {**memory.uuids},
        "verdict": memory.judged.verdict, "judged": memory.judged.date,
        "findings": {key: [bad.status, bad.bdf, bad.text] for key, bad in memory.judged.findings.items()},
    }  # fmt: skip


def _row(tally: Tally) -> Json:
    event = tally.event
    began = None if tally.began == -inf else tally.began
    return [
        event.kind, event.status.value, event.bdf, event.code, event.text, tally.count, tally.first, tally.last,
        tally.worst.value, tally.waiting, began, tally.reported,
    ]  # fmt: skip


def _memory(document: Any) -> Memory:
    """Each entry by itself, like input from a stranger: one that is damaged is dropped and counted."""
    if document["schema"] != SCHEMA:
        raise ValueError(document["schema"])
    memory = Memory()

    def member(name: str, made: Callable[[Any], _T], instead: _T) -> _T:
        return next(_good(memory, [document.get(name)], made), instead)

    memory.boot_id, memory.sequence = member("boot_id", _text, ""), member("sequence", _sequence, -1)
    memory.lost = member("lost", _count, 0)
    none: list[Any] = []
    tallies, events = member("tallies", _list, none), member("events", _list, none)
    readings, findings = member("readings", _items, none), member("findings", _items, none)
    counted = _good(memory, tallies[: MOST_KEYS + len(_KINDS)], lambda row: _tally(*row))
    memory.ledger.tallies = {tally.event.key: tally for tally in counted}
    memory.ledger.recent.extend(_good(memory, events, _recent))
    memory.readings = dict(_good(memory, readings[:MOST], lambda item: _reading(*item)))
    gpus = member("uuids", lambda value: none if value is None else _items(value), none)
    memory.uuids = dict(_good(memory, gpus[:MOST_FINDINGS], lambda item: (_address(item[0]), _text(item[1]))))
    found = dict(_good(memory, findings[:MOST_FINDINGS], lambda item: (_text(item[0]), _finding(*item[1]))))
    verdict = member("verdict", lambda word: word and _status(word).value, "")
    date = member("judged", lambda date: date and _date(date), "")
    memory.judged = LastJudgement(verdict=verdict, date=date, findings=found)
    return memory


def _good(memory: Memory, entries: Iterable[Any], made: Callable[[Any], _T]) -> Iterator[_T]:
    for entry in entries:
        try:
            yield made(entry)
        except _DAMAGED:
            memory.damaged += 1


def _finding(status: str, bdf: str, text: str) -> BadFinding:
    return BadFinding(_status(status).value, _address(bdf), _text(text))


def _sure(value: _T, good: bool) -> _T:
    if not good:
        raise ValueError(value)
    return value


def _recent(event: Any) -> dict[str, Json]:
    """An event as ``as_json`` words it, which is shown as it is."""
    _status(event["status"]), _address(event.get("bdf", "")), _date(event["at"])
    plain = isinstance(event, dict) and all(isinstance(value, str | int | float) for value in event.values())
    found: dict[str, Json] = _sure(event, plain and event["event"] in _KINDS)
    return found


def _tally(
    kind: str, status: str, bdf: str, code: str, text: str, count: int, first: str, last: str, worst: str, waiting: int,
    began: float | None, reported: int,
) -> Tally:  # fmt: skip
    kinds: dict[str, EventKind] = {each: each for each in _KINDS}
    event = Event(kind=kinds[kind], status=_status(status), bdf=_address(bdf), code=_text(code), text=_text(text))
    tally = Tally(event, _date(first))
    tally.count, tally.last, tally.worst, tally.waiting = _count(count), _date(last), _status(worst), _count(waiting)
    tally.began, tally.reported = -inf if began is None else float(began), _count(reported)
    return _sure(tally, not isnan(tally.began))


def _status(value: Any) -> Status:
    return RANK[RANK.index(Status(value))]  # a check that was skipped is no event


def _text(value: Any) -> str:
    _sure(value, isinstance(value, str)).encode()  # a lone surrogate is no text
    return str(value)


def _address(value: Any) -> str:
    return _sure(_text(value), not value or as_bdf(value) == value)


def _date(value: Any) -> str:
    return _sure(_text(value), state_file.is_date(value))


def _list(value: Any) -> list[Any]:
    return [*_sure(value, isinstance(value, list))]


def _items(value: Any) -> list[Any]:
    return [*value.items()]


def _reading(name: str, value: Any) -> tuple[str, int]:
    return _sure((name, value), is_reading(name, _count(value)))


def _sequence(value: Any) -> int:
    return -1 if value == -1 else _count(value)


def _count(value: Any) -> int:
    return _sure(int(value), type(value) is int and value >= 0)
