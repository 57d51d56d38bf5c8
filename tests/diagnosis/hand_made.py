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
from dgxcheck.source.recording.shipped import open_source


@cache
def box_of(name: str) -> Box:
    """A recording that ships."""
    return of_box(open_source(name), "k80-x8" if name.startswith("k80") else "auto")


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
