"""Facts of recordings, read once per process: what an overlay on a shipped box leaves as it is, is that of the box."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sample import BOXES, BY_NAME

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.registry import PROBES
from dgxcheck.facts.record import replace
from dgxcheck.source.protocol import Source
from dgxcheck.source.recording.keys import GroupedFacts
from dgxcheck.source.recording.load import open_source
from dgxcheck.source.recording.replay import RecordedSource
from dgxcheck.survey import Snapshot, survey
from dgxcheck.topology.build import NOTHING_STATED, build
from dgxcheck.topology.model import Topology

SHIPPED = {word for name_and_path in BY_NAME.items() for word in name_and_path}
"""Names and paths of what ships, which no test changes."""


class _Heard(GroupedFacts):
    """A recording's lines that remember which were asked for; None stands for all of them."""

    def __init__(self, lines: GroupedFacts) -> None:
        super().__init__(lines)
        self.asked: set[str | None] = set()

    def get(self, line: str, default: Any = None) -> Any:
        self.asked.add(line)
        return super().get(line, default)

    def items(self) -> Any:
        self.asked.add(None)
        return super().items()


class _Read(NamedTuple):
    """A box that ships: its lines, its facts, and the lines that each probe asked for."""

    lines: GroupedFacts
    facts: Snapshot
    asked: dict[str, set[str | None]]


def box(spec: str) -> Box:
    """A recording or overlay without a reference machine; a shipped one by its name or path is made once."""
    return _shipped_box(spec) if spec in SHIPPED else _box(facts_of(spec))


def wired(facts: Snapshot) -> Topology:
    """How the machine is wired by its own account, whatever another tool states."""
    return build(replace(facts, stated=NOTHING_STATED, gpu_modes=()))


def _box(facts: Snapshot) -> Box:
    topology = wired(facts)
    return Box(snapshot=facts, topology=topology, gpus=topology.gpus)


@lru_cache(maxsize=32)
def _shipped_box(spec: str) -> Box:
    return _box(facts_of(spec))


def facts_of(spec: str) -> Snapshot:
    """All that checks read of a recording or overlay, a shipped one by its name or path."""
    return _read(spec).facts if spec in BOXES else facts_in(open_source(spec))


def facts_in(source: Source, probes: Sequence[str] = PROBES) -> Snapshot:
    """The same of an open source; of these probes at least."""
    base = source.head.get("base") if isinstance(source, RecordedSource) else None
    if not isinstance(source, RecordedSource) or not isinstance(base, str) or base not in SHIPPED:
        return survey(source, probes)
    box = _read(base)
    changed = {line for line in box.lines.keys() | source.lines if box.lines.get(line) != source.lines.get(line)}
    again = [probe for probe in probes if None in box.asked[probe] or not changed.isdisjoint(box.asked[probe])]
    new = survey(source, again)
    return replace(box.facts, **{probe: getattr(new, probe) for probe in again})


@lru_cache(maxsize=32)
def _read(spec: str) -> _Read:
    source = open_source(spec)
    assert isinstance(source, RecordedSource)
    facts, asked = {}, {}
    for probe in PROBES:
        heard = _Heard(source.lines)
        facts[probe] = getattr(survey(RecordedSource(heard, source.origin, head=source.head), (probe,)), probe)
        asked[probe] = heard.asked
    return _Read(source.lines, Snapshot(**facts), asked)
