"""Causes: which component, what it explains, and what to do first."""

from __future__ import annotations

from dgxcheck.diagnosis.causes import Cause, Diagnosis
from dgxcheck.diagnosis.component import Component
from dgxcheck.output.plain import visible
from dgxcheck.reading import Json

SAVE_FIRST = ("dgxcheck record BOX.json", "nvidia-bug-report.sh", "dmesg > dmesg.txt")
"""What a reset or reboot destroys, and a vendor asks for."""


def as_text(found: Diagnosis) -> list[str]:
    """Two lines for each cause, and how many findings none of them explains."""
    told = []
    for number, cause in enumerate(found.causes, 1):
        first = cause.actions[0]
        told.append(visible(f"Cause {number}: {message(cause)}"))
        told.append(visible(f"         {first.action}: {first.command}{_disturbs(first.disturbs)}"))
    if found.unexplained:
        told.append(f"Unexplained: {', '.join(map(visible, found.unexplained))}")
    if any(step.disturbs for cause in found.causes for step in cause.actions[:1]):
        told.append(f"Save first: {'; '.join(SAVE_FIRST)}")
    return told


def as_json(found: Diagnosis) -> dict[str, Json]:
    """Members of the document of schema ``dgxcheck/health/1``."""
    return {"causes": [_cause(cause) for cause in found.causes], "unexplained": list(found.unexplained)}


def message(cause: Cause) -> str:
    """``PCIe link 0000:00:03.0 - 0000:08:00.0, shared by GPU2, GPU3: explains 3 findings``"""
    component = cause.component
    shared = component.shared_by if component.kind == "link" and len(component.shared_by) > 1 else ()
    by = f", shared by {', '.join(shared)}" if shared else ""
    where = f", slot {component.slot}" if component.slot else ""
    number = len(cause.explains)
    again = f"; {cause.again}" if cause.again else ""
    return f"{component}{where}{by}: explains {number} finding{'s' if number > 1 else ''}{again}"


def _disturbs(what: tuple[str, ...]) -> str:
    return f" (disturbs {', '.join(what)})" if what else ""


def _cause(cause: Cause) -> Json:
    steps: list[Json] = [
        {"action": step.action, "disturbs": list(step.disturbs), "command": step.command} for step in cause.actions
    ]
    return {
        "id": "/".join(filter(None, cause.component.key)),
        "component": _component(cause.component),
        "explains": list(cause.explains),
        "severity": cause.severity.value,
        "confidence": cause.confidence,
        "again": cause.again or None,
        "message": message(cause),
        "actions": steps,
        "action": steps[0],
        "save_first": list(SAVE_FIRST),
    }


def _component(component: Component) -> Json:
    return {
        "kind": component.kind,
        "name": component.name,
        "bdf": component.bdf,
        "part": component.part or None,
        "slot": component.slot,
        "serial": component.serial,
        "shared_by": list(component.shared_by),
    }
