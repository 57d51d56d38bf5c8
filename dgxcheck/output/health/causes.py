"""Causes: which component, what it explains, and what to do first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from dgxcheck.components.component import Component
from dgxcheck.diagnosis.actions import Action
from dgxcheck.diagnosis.causes import Cause, Diagnosis
from dgxcheck.facts.missing import Json
from dgxcheck.output.health.component_name import component_name
from dgxcheck.output.plain_text import visible


def as_text(found: Diagnosis, verbose: bool) -> list[str]:
    """A paragraph for each cause, and the findings that none of them explains."""
    told = []
    for number, cause in enumerate(found.causes, 1):
        told.append(f"Cause {number}: {headline(cause)}")
        told.append(f"         confidence {cause.confidence.level}")
        told += _actions(cause.actions, verbose)
    if len(found.causes) == 1 and not found.unexplained:
        told.append("Nothing else is wrong of what was judged.")
    if found.unexplained:
        told.append(f"Unexplained: {', '.join(found.unexplained)}")
    disturbing = [cause for cause in found.causes if any(step.disturbs for step in cause.actions)]
    if disturbing:
        save = dict.fromkeys(command for cause in disturbing for command in cause.preserve)
        told.append(f"Save first: {'; '.join(save)}")
    return [visible(line) for line in told]


def _actions(steps: Sequence[Action], verbose: bool) -> Iterator[str]:
    """Up to the first that can help, for ended jobs cure nothing and many settings wait for a reset; then the rest."""
    now = 1
    while now < len(steps) and (
        steps[now - 1].action == "stop job"
        or (steps[now - 1].action == "change setting" and steps[now].action in _TAKE)
    ):
        now += 1
    for number, step in enumerate(steps if verbose else steps[:now]):
        yield f"         {'if it stays, ' if number >= now else 'then ' if number else ''}{_action(step)}"
    if not verbose and steps[now:]:
        yield f"         if it stays: {', '.join(step.action for step in steps[now:])}; -v says how"


_TAKE = ("reset GPU", "reboot", "power-cycle cold")
"""Bring a setting into use."""


def as_json(found: Diagnosis) -> dict[str, Json]:
    """Members of the document of schema ``dgxcheck/health/1``."""
    return {"causes": [_cause(cause) for cause in found.causes], "unexplained": list(found.unexplained)}


def headline(cause: Cause) -> str:
    """``PCIe link 0000:00:03.0 - 0000:08:00.0, shared by GPU2, GPU3: explains pcie.path, pcie.aer x 2``"""
    times = Counter(key.partition("/")[0] for key in cause.explains)
    return f"{_where(cause.component)}: explains {', '.join(_times(*each) for each in times.items())}"


def _times(check: str, number: int) -> str:
    return check if number == 1 else f"{check} x {number}"


def _where(component: Component) -> str:
    shared = component.shared_by if component.kind in ("link", "switch") and len(component.shared_by) > 1 else ()
    by = f", shared by {', '.join(shared)}" if shared else ""
    return f"{component_name(component)}{f', slot {component.slot}' if component.slot else ''}{by}"


def _action(step: Action) -> str:
    disturbs = f" (disturbs {', '.join(step.disturbs)})" if step.disturbs else ""
    return f"{step.action}: {step.command}{disturbs}"


def _cause(cause: Cause) -> Json:
    steps: list[Json] = [
        {"action": step.action, "disturbs": list(step.disturbs), "command": step.command} for step in cause.actions
    ]
    return {
        "id": "/".join(filter(None, cause.component.key)),
        "component": _component(cause.component),
        "explains": list(cause.explains),
        "severity": cause.severity.value,
        "confidence": cause.confidence.level,
        "again": None,
        "message": f"{_where(cause.component)}",
        "actions": steps,
        "action": steps[0],
        "save_first": list(cause.preserve),
    }


def _component(component: Component) -> Json:
    return {
        "kind": component.kind,
        "name": component.name,
        "bdf": component.bdf,
        "peer_bdf": component.peer_bdf,
        "part": component.part or None,
        "slot": component.slot,
        "serial": component.serial,
        "shared_by": list(component.shared_by),
    }
