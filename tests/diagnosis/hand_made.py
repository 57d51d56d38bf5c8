"""Findings made by hand on the boxes that ship, for what follows from component and fault alone."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from measured_box import of_box

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Finding, Judgement, Status, Subject, Witness
from dgxcheck.components.component import Component
from dgxcheck.components.locate import device_part
from dgxcheck.diagnosis.action import Action
from dgxcheck.diagnosis.actions import actions
from dgxcheck.facts.faults.kind import FaultKind, Step
from dgxcheck.facts.host import Host, Unit
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.source.protocol import Origin
from dgxcheck.source.recording.load import load, open_source, recording, shipped
from dgxcheck.source.recording.overlay import applied
from dgxcheck.source.recording.replay import RecordedSource
from probes.host.software import SERVICES

ALL = tuple(f"GPU{number}" for number in range(8))
PATHS = dict(shipped())


@cache
def box_of(name: str) -> Box:
    """A recording that ships."""
    return of_box(open_source(name), "k80-x8" if name.startswith("k80") else "auto")


def in_place(name: str, **facts: str | None) -> Box:
    """The box, whose host is elsewhere: in a container, in a virtual machine, under another name."""
    box = box_of(name)
    host = box.snapshot.host
    assert isinstance(host, Host)
    return replace(box, snapshot=replace(box.snapshot, host=replace(host, **facts)))


def gpu_part(box: Box, number: int, part: str = "") -> Component:
    return device_part(box, box.topology.gpus[number], part)


def finding(
    component: Component, fault: FaultKind | None, status: Status = Status.FAIL, witness: Witness = "state"
) -> Finding:
    """One that blames the component."""
    subject = Subject(kind="host" if component.bdf is None else "gpu", name=component.name, bdf=component.bdf)
    judgement = Judgement(status, "a message", fault=fault)
    return Finding(
        id=f"made.{fault.word if fault else 'unread'}", subject=subject, judgement=judgement, source="a test",
        remedy="the remedy of the finding", blames=(component,), witness=witness,
    )  # fmt: skip


def planned(
    box: Box, component: Component, *faults: FaultKind, status: Status = Status.FAIL, dead: Iterable[str] = ()
) -> tuple[Action, ...]:
    """What is to be done about the component with these faults."""
    found = [finding(component, fault, status) for fault in faults]
    return actions(box, component, found, frozenset(dead))[0]


def steps(acts: Iterable[Action]) -> list[Step]:
    return [action.step for action in acts]


def with_facts(base: str, facts: dict[str, Json]) -> Box:
    """The box with other answers."""
    changed = applied({"base": base, "facts": facts}, base, lambda name: recording(load(PATHS[name]), name))
    return of_box(RecordedSource(changed.lines, Origin("recording"), changed.later, head=changed.head))


def step(acts: tuple[Action, ...], name: str) -> Action:
    (only,) = [action for action in acts if action.step == name]
    return only


def stopped(acts: tuple[Action, ...]) -> tuple[str, ...]:
    """The services that a plan names to be stopped."""
    named = step(acts, "stop-jobs").instruction.values["services"]
    assert isinstance(named, tuple)
    return named


def with_units(base: str, *running: str) -> Box:
    """The box, on which of the units that are asked for just these run."""
    box = box_of(base)
    units = tuple(Unit(name=name, running=name in running, enabled=False) for name in SERVICES)
    return replace(box, snapshot=replace(box.snapshot, units=units))


def ecc(current: int, pending: int) -> Box:
    return with_facts("dgx-1-v100", {"nvml nvmlDeviceGetEccMode 0000:0a:00.0": [current, pending]})
