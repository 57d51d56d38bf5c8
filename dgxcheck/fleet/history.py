"""What only time shows of a node: every fault over all its results, how often it came back, and after which repair.

Results are put in the order of their dates, whatever files they are in. Of each only its faults, what proves them gone,
and the serial numbers of its parts are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from time import time
from typing import Any

from dgxcheck.checks.engine.finding import counted
from dgxcheck.facts.inventory import Part
from dgxcheck.facts.missing import BadInput, Json, members_of
from dgxcheck.facts.record import Record, replace
from dgxcheck.fleet.document import SharedStrings, parts_of
from dgxcheck.fleet.judge import results_of
from dgxcheck.fleet.node import (
    VERDICTS,
    Identity,
    LikeMachines,
    NodeFault,
    NodeVerdict,
    Result,
    in_order,
    open_after,
    proven,
)  # fmt: skip
from dgxcheck.fleet.part_history import DAY_S, PartHistory, PartsOverTime
from dgxcheck.fleet.reading import Unread, documents
from dgxcheck.fleet.same_name import one_name
from dgxcheck.fleet.trends import Gauges, Trend
from dgxcheck.limits import HISTORY_RESULTS

_NOTHING: Mapping[str, Any] = {}
_AWAY_DAYS = 2.0
"""A node without a result for longer was away."""


class Visit(Record):
    """What is kept of one result."""

    at_s: float
    result: Result
    boot: str
    parts: tuple[Part, ...]
    """Without their gauges."""


class Spell(Record):
    """One time that a fault was there: from the result that found it to the first that shows it gone."""

    fault: NodeFault
    first_s: float
    last_s: float
    results: int
    """That reported it."""
    gone_s: float | None = None
    """None where no result shows it gone."""
    after: tuple[str, ...] = ()
    """What changed between the last result with it and the first without: reboot, another part, a new driver."""


class NodeHistory(Record):
    group: LikeMachines
    first_s: float
    last_s: float
    results: int
    days: int
    """On which it has a result."""
    spells: tuple[Spell, ...]
    """In the order in which they began."""
    newest: NodeVerdict = "pass"
    """Of its last result."""

    @property
    def open(self) -> tuple[Spell, ...]:
        """Faults that no result shows to be gone."""
        return tuple(spell for spell in self.spells if spell.gone_s is None)

    @property
    def verdict(self) -> NodeVerdict:
        """The worst of its last result and of what is open."""
        return min((self.newest, *(spell.fault.status for spell in self.open)), key=VERDICTS.index)


class History(Record):
    nodes: Mapping[str, NodeHistory]
    parts: Mapping[str, PartHistory]
    """By serial number."""
    trends: tuple[Trend, ...]
    unread: tuple[Unread, ...]

    @property
    def results(self) -> int:
        return sum(node.results for node in self.nodes.values())


class _Passed(Collection[str]):
    """Keys that passed, as the few by which they differ from those of a like machine."""

    __slots__ = ("_base", "_more", "_without")

    def __init__(self, all_of: Collection[str], passed: Collection[str]) -> None:
        base = frozenset(all_of)
        self._base, self._without, self._more = base, base.difference(passed), frozenset(passed) - base

    def __contains__(self, key: object) -> bool:
        return key in self._more or (key in self._base and key not in self._without)

    def __iter__(self) -> Iterator[str]:
        yield from self._base - self._without
        yield from self._more

    def __len__(self) -> int:
        return len(self._base) - len(self._without) + len(self._more)


def read(specs: Iterable[str], now_s: float | None = None) -> History:
    """All results of files and folders. Raises BadInput for a name of nothing, or for too many results."""
    now_s = time() if now_s is None else now_s
    shared, gauges = SharedStrings(), Gauges()
    visits: list[Visit] = []
    unread: list[Unread] = []
    recorded = 0
    for where, document, result, _ in results_of(documents(specs, most=HISTORY_RESULTS), unread, now_s):
        if not result.live:
            recorded += 1
        elif len(visits) < HISTORY_RESULTS:
            visits.append(_visit(document, result, shared))
            gauges.add(visits[-1].at_s, parts_of(document))
        else:
            raise BadInput(f"{where}: more than {HISTORY_RESULTS} results; give a shorter time")
    if recorded:
        unread.append(Unread("recordings", f"{counted(recorded, 'result')}: when the machine was so is not known"))
    return history_of(visits, gauges, unread)


def _visit(document: Json, result: Result, shared: SharedStrings) -> Visit:
    """Without what a history does not need; what many have in common is kept once."""
    short = (replace(fault, message="", action="", figure="") for fault in result.faults)
    base = shared.one(result.passed, result.group)
    kept = replace(
        result,
        node=shared.one(result.node),
        group=shared.one(result.group),
        passed=base if base == result.passed else _Passed(base, result.passed),
        skipped=shared.one(result.skipped),
        accepted=shared.one(result.accepted),
        faults=tuple(map(shared.one, short)),
        versions=shared.one(result.versions, tuple(sorted(result.versions.items()))),
        settings=shared.one(result.settings, tuple(sorted(result.settings.items()))),
        nvlinks=_NOTHING, nvlink_domains=(), devices=_NOTHING, score=None, gpus_at=frozenset(),
        identity=Identity(),
    )  # fmt: skip
    bare = tuple(replace(part, gauges={}) for part in parts_of(document))
    parts = shared.one(bare, tuple((part.kind, part.serial, part.at) for part in bare))
    date = datetime.fromisoformat(result.generated_at.removesuffix("Z")).replace(tzinfo=timezone.utc)
    boot = str(members_of(document).get("boot_id") or "")
    return Visit(at_s=date.timestamp(), result=kept, boot=shared.one(boot), parts=parts)


def history_of(visits: Iterable[Visit], gauges: Gauges | None = None, unread: Sequence[Unread] = ()) -> History:
    """Results in the order of time, at one date in that of ``in_order``."""
    nodes: dict[str, _Node] = {}
    parts = PartsOverTime()
    visits = [*visits]
    names = one_name({visit.result.node for visit in visits}, ())
    visits = [replace(visit, result=replace(visit.result, node=names[name])) if (name := visit.result.node) in names
              else visit for visit in visits]  # fmt: skip
    for visit in sorted(visits, key=lambda visit: (visit.at_s, *in_order(visit.result))):
        nodes.setdefault(visit.result.node, _Node(visit)).add(visit)
        parts.add(visit.at_s, visit.result.node, visit.parts, visit.result.faults)
    part_histories, doubtful = parts.histories()
    why = "at several nodes at the same time; not followed"
    return History(
        nodes={name: nodes[name].history() for name in sorted(nodes)},
        parts=part_histories,
        trends=() if gauges is None else gauges.trends(part_histories),
        unread=(*unread, *(Unread(f"serial number {serial}", why) for serial in doubtful)),
    )


class _Node:
    """A node while its results are gone through."""

    def __init__(self, first: Visit) -> None:
        self._first = self._last = first
        self._results, self._days = 0, 0
        self._open: dict[str, _Open] = {}
        self._spells: list[Spell] = []

    def add(self, visit: Visit) -> None:
        self._days += not self._results or visit.at_s // DAY_S != self._last.at_s // DAY_S
        self._results += 1
        for key, state in [*self._open.items()]:
            if proven(state.fault, visit.result):
                after = tuple(_changed(state.last, visit))
                self._spells.append(replace(state.spell(), gone_s=visit.at_s, after=after))
                del self._open[key]
        for fault in visit.result.faults:
            if fault.word and fault.status != "unknown":
                self._open.setdefault(fault.key, _Open(visit, fault)).add(visit, fault)
        self._last = visit

    def history(self) -> NodeHistory:
        """After the last result."""
        spells = [*self._spells, *(state.spell() for state in self._open.values())]
        return NodeHistory(
            group=self._last.result.group, first_s=self._first.at_s, last_s=self._last.at_s,
            results=self._results, days=self._days,
            spells=tuple(sorted(spells, key=lambda spell: (spell.first_s, spell.fault.key))),
            newest=self._last.result.verdict,
        )  # fmt: skip


class _Open:
    """A fault that no result has shown to be gone."""

    def __init__(self, first: Visit, fault: NodeFault) -> None:
        self._first = self.last = first
        self._results = 0
        self.fault = open_after(first.result, fault)

    def add(self, visit: Visit, fault: NodeFault) -> None:
        self.fault = open_after(visit.result, fault, self.fault)
        self.last, self._results = visit, self._results + 1

    def spell(self) -> Spell:
        return Spell(fault=self.fault.fault, first_s=self._first.at_s, last_s=self.last.at_s, results=self._results)


def _changed(last: Visit, now: Visit) -> Iterator[str]:
    """What can have mended it: parts that are others, versions, settings, a boot, time without a result."""
    before = {(part.kind, part.at): part.serial for part in last.parts}
    for part in now.parts:
        old = before.get((part.kind, part.at), part.serial)
        if old != part.serial:
            yield f"{part.kind} {part.at} exchanged: {old} -> {part.serial}"
    earlier = {**last.result.settings, **last.result.versions}
    for name, values in {**now.result.settings, **now.result.versions}.items():
        was = earlier.get(name, values)
        if was != values:
            yield f"{name} {', '.join(was)} -> {', '.join(values)}"
    if last.boot and now.boot and last.boot != now.boot:
        yield "reboot"
    away = (now.at_s - last.at_s) / DAY_S
    if away > _AWAY_DAYS:
        yield f"{away:.0f} d without a result"
