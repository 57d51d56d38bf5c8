"""Causes: which component, what it explains, and what to do first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import Finding, Judgement
from dgxcheck.components.component import Component
from dgxcheck.diagnosis.action import PREPARATORY, Action, first_remedy, source_of
from dgxcheck.diagnosis.model import Cause
from dgxcheck.diagnosis.preserve import together
from dgxcheck.diagnosis.recurrence import Recurrence
from dgxcheck.facts.bdf import shown
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind, Urgency
from dgxcheck.facts.missing import Json
from dgxcheck.output.health.finding_lines import component_name, sentence
from dgxcheck.output.health.headline import headline
from dgxcheck.output.health.instructions import (
    STEPS,
    URGENCIES,
    action_text,
    confidence_text,
    disturbed,
    preserve_text,
    recurrence_text,
    step_text,
)
from dgxcheck.output.health.problem import problem
from dgxcheck.output.json_values import members
from dgxcheck.output.plain_text import at_most, visible, wrapped

_MOST_FINDINGS = 8


def as_text(assessment: Assessment, verbose: bool, width: int | None, elsewhere: bool = False) -> list[str]:
    """A paragraph for each cause: why it is blamed, what to do in which order, and what was found.

    ``elsewhere``: the machine sent a text, so that commands are for another host than the reader's.
    """
    diagnosis = assessment.diagnosis
    found = assessment.found
    lines = [wrapped(line, width, 2) for line in save_first(diagnosis.causes, elsewhere)]
    lines += [""] if lines else []
    number = 1
    for (severity, time, *support), alike in _alike(diagnosis.causes, found, verbose):
        last = number + len(alike) - 1
        which = f"Cause {number}" if last == number else f"Causes {number} to {last}"
        places = [place(cause.component) for cause in alike]
        head = problem(assessment, alike[0]) if last == number else ", ".join(places)
        suspect = [f"suspect: {places[0]}"] if last == number and places[0] not in head else []
        lines.append(wrapped(visible(f"{which} ({severity}, {time}): {head}"), width, 9))
        lines += [wrapped(f"  {visible(line)}", width, 5) for line in (*suspect, *fru_lines(alike), *support)]
        lines += [wrapped(f"  {visible(line)}", width, 7) for line in _support(alike, found, verbose)]
        lines.append("")
        number = last + 1
    if len(diagnosis.causes) == 1 and not diagnosis.unexplained:
        lines.append(wrapped("No other problems found in the checks that ran.", width, 2))
    return lines


_HARD = ("reseat", "replace", "contact-vendor", "contact-host")
"""Destroy evidence, even where they disturb nothing."""


def save_first(causes: Sequence[Cause], elsewhere: bool = False) -> list[str]:
    """What to save before the steps that destroy it; a line or none."""
    preserved = together(
        evidence for cause in causes if any(each.scope != "none" or each.step in _HARD for each in cause.actions)
        for evidence in cause.preserve
    )  # fmt: skip
    save = [preserve_text(preserve) for preserve in preserved]
    outside = any(action.instruction.values.get("outside") for cause in causes for action in cause.actions)
    at = " on that host" if elsewhere else " on the host of this container" if outside else ""
    return [visible(f"Save first{at}: {'; '.join(save)}")] if save else []


def _alike(
    causes: Sequence[Cause], found: Mapping[str, Finding], verbose: bool
) -> Iterator[tuple[tuple[str, ...], list[Cause]]]:
    """Causes that follow each other and of which the same is said: severity, urgency, confidence and actions."""

    def key_of(cause: Cause) -> tuple[str, ...]:
        notes = [f"confidence: {confidence_text(cause.confidence)}"]
        notes += [recurrence_text(cause.recurrence)] if cause.recurrence is not None else []
        return cause.severity.value, due(cause), *notes, *steps(cause, found, verbose)

    for key, alike in groupby(causes, key_of):
        yield key, [*alike]


def due(cause: Cause) -> str:
    """``due now``"""
    return URGENCIES[cause.actions[0].urgency]


def _support(causes: Sequence[Cause], found: Mapping[str, Finding], verbose: bool) -> list[str]:
    """The findings that the causes explain, the worst of each first; where not all fit, one of each check before more
    of the same."""
    keys = dict.fromkeys(key for cause in causes for key in cause.explains)
    explained = [found[key] for key in keys if key in found]
    if verbose or len(explained) <= _MOST_FINDINGS:
        return [*map(sentence, explained)]
    first = {each.id: each for each in reversed(explained)}
    shown = sorted(explained, key=lambda each: first[each.id] is not each)[: _MOST_FINDINGS - 1]
    return at_most([*map(sentence, sorted(explained, key=lambda each: each not in shown))], len(shown))


_COUNTED = frozenset({
    Fault.PAGES_MANY, Fault.ROWS_LOW, Fault.ECC_CORRECTED, Fault.NVLINK_ERRORS, Fault.PCIE_REPLAYS,
    Fault.AER_CORRECTABLE, Fault.AER_STORM, Fault.TRANSPORT_ERRORS,
})  # fmt: skip
"""Retired pages and totals: what is counted never goes away."""
_LOGGED = frozenset({Fault.GPU_LOST_BEFORE, Fault.XID_NOTICE, Fault.NVSWITCH_WATCHED, Fault.GPU_STARTED_LATE})
"""Events: what is logged stays in the log."""


def again(cause: Cause, findings: Mapping[str, Finding]) -> str:
    """When the steps after the first are due: ``if it grows (limit 63 pages)``; ``findings`` by key."""
    if cause.actions[0].urgency == "watch" and cause.faults and {*cause.faults} <= _LOGGED:
        return "if it comes back"
    if cause.actions[0].urgency != "watch" or not cause.faults or not {*cause.faults} <= _COUNTED:
        return "if the fault persists"
    limits = dict.fromkeys(filter(None, (_limit(findings[key].judgement) for key in cause.explains if key in findings)))
    return f"if it grows (limit {', '.join(limits)})" if limits else "if it grows"


def _limit(judgement: Judgement) -> str:
    """The number that is still to be reached; empty where there is none."""
    measured, limit = judgement.measured, judgement.expected
    ahead = isinstance(measured, (int, float)) and isinstance(limit, (int, float)) and measured < limit
    return f"{limit} {judgement.unit}".strip() if ahead else ""


def steps(cause: Cause, found: Mapping[str, Finding], verbose: bool) -> Iterator[str]:
    """Up to the first that can help, and when those after it are due; ``verbose``: all of them."""
    actions, condition_of_rest = cause.actions, again(cause, found)
    due = actions[0].urgency
    when = conditions(actions, condition_of_rest)
    for number, (action, condition) in enumerate(zip(actions, when, strict=True), 1):
        if verbose or not condition:
            yield f"{number}. {f'{condition}, ' if condition else ''}{_action(action, found, due)}"
            due = action.urgency
    later = [action.step for action, condition in zip(actions, when, strict=True) if condition]
    rest = [STEPS[step] for step in later if step != "stop-jobs"]
    if rest and not verbose:
        yield f"{condition_of_rest}: {', '.join(rest)} (details: -v)"


def conditions(actions: Sequence[Action], again: str) -> list[str]:
    """When each step is due: up to the first that can help at once, those after it only if that did not.

    Draining and stopping jobs cures nothing, and many settings wait for a reset.
    """
    first = 1
    while first < len(actions) and (actions[first].goes_on or _leads_to(actions[first - 1], actions[first:])):
        first += 1
    return [again if number >= first else "" for number in range(len(actions))]


_APPLY = ("reset-gpu", "reboot", "power-cycle")
"""Bring a setting into effect."""


def _leads_to(action: Action, following: Sequence[Action]) -> bool:
    """Does the action help only together with the one that follows? ``following``: one action at least."""
    waits = action.step == "change-setting" and first_remedy(tuple(following)).step in _APPLY
    return waits or action.step in PREPARATORY


def as_json(assessment: Assessment) -> list[Json]:
    """``causes`` of the document of schema ``dgxcheck/health/2``."""
    return [_cause(assessment, cause) for cause in assessment.causes]


def place(component: Component) -> str:
    """The component with its slot, and of a link or switch the devices behind it."""
    shared = component.shared_by if component.kind in ("link", "switch") and len(component.shared_by) > 1 else ()
    by = f", shared by {', '.join(shared)}" if shared else ""
    if component.kind == "nvswitch" and component.shared_by:
        by = f", its NVLinks to {', '.join(component.shared_by)}"
    slot = f", slot {component.slot}" if component.slot and component.kind != "host" else ""
    return f"{component_name(component)}{slot}{by}"


def fru_lines(causes: Sequence[Cause]) -> Iterator[str]:
    """``part GPU2 0000:0a:00.0: slot 4, serial 0324716041513``; none of a unit of which nothing is known."""
    for unit in dict.fromkeys(unit for cause in causes for unit in cause.frus):
        marks = (("slot", unit.slot), ("serial", unit.serial), ("part number", unit.part_number))
        if marked := ", ".join(filter(None, (*(f"{word} {mark}" for word, mark in marks if mark), unit.position))):
            yield f"part {unit.name if unit.bdf in unit.name else f'{unit.name} {unit.bdf}'}: {marked}"


def _action(action: Action, found: Mapping[str, Finding], due: Urgency) -> str:
    """One line; ``due`` is when the step before is due, which is not repeated."""
    notes = [f"disturbs {disturbed(action)}"] if action.scope != "none" else []
    notes += [URGENCIES[action.urgency]] if action.urgency != due else []
    line = step_text(action, found)
    return f"{line} ({'; '.join(notes)})" if notes else line


def _cause(assessment: Assessment, cause: Cause) -> Json:
    confidence, found = cause.confidence, assessment.found
    when = conditions(cause.actions, again(cause, found))
    actions: list[Json] = [
        _action_json(action, condition, cause.faults, found)
        for action, condition in zip(cause.actions, when, strict=True)
    ]
    return {
        "id": cause.component.id, "component": _component(cause.component), "explains": list(cause.explains),
        "faults": [fault.word for fault in cause.faults],
        "severity": cause.severity.value,
        "confidence": {
            **members(confidence, "level reason kinds among"), "unaffected": list(confidence.beside),
            "others": [_component(component) for component in confidence.others], "text": confidence_text(confidence),
        },
        "recurrence": None if cause.recurrence is None else _recurrence(cause.recurrence),
        "headline": headline(assessment, cause),
        "message": place(cause.component),
        "frus": [
            {"name": unit.name, "bdf": shown(unit.bdf), **members(unit, "slot? serial? part_number? position?")}
            for unit in cause.frus
        ],
        "actions": actions,
        "action": actions[cause.actions.index(first_remedy(cause.actions))],
        "save_first": [
            {"command": list(evidence.command), "output": evidence.output or None, "text": preserve_text(evidence)}
            for evidence in cause.preserve
        ],
    }  # fmt: skip


def _action_json(action: Action, condition: str, faults: Sequence[FaultKind], found: Mapping[str, Finding]) -> Json:
    return {
        "action": action.step,
        "condition": condition or None,
        "commands": [list(command) for command in action.commands],
        **members(action, "instruction=instruction.code remedy_of?"),
        "text": action_text(action, found),
        "source": source_of(action, faults, found.get(action.remedy_of)),
        **members(action, "disturbs scope urgency"),
    }


def _recurrence(recurrence: Recurrence) -> Json:
    return {
        **members(recurrence, "xid=number reset reboots last_seen_at=date? skipped"),
        "text": recurrence_text(recurrence),
    }


def _component(component: Component) -> Json:
    return {**members(component, "kind name"), "bdf": shown(component.bdf),
            **members(component, "peer_bdf part? position? slot serial shared_by")}
