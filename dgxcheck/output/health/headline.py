"""A cause in one line: the device as people call it, what is and what should be, and what to do first.

``GPU5 (85:00.0): PCIe x8 instead of x16 -> drain, cold power cycle``. Of a message and of an instruction the line has
what comes before the first semicolon; all of it stands below.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping

from dgxcheck.assessment.result import Assessment
from dgxcheck.components.component import Component
from dgxcheck.diagnosis.action import Action, first_remedy, preparatory
from dgxcheck.diagnosis.model import Cause
from dgxcheck.output.health.finding_lines import component_name
from dgxcheck.output.health.instructions import STEPS, action_text
from dgxcheck.output.health.problem import BUS_ID, first_clause, problem
from dgxcheck.output.plain_text import wording

LONGEST = 100
"""Characters, without the verdict before it."""
_GOOD = 80
"""What is written in full, if the action can be said briefly."""
_LEAST_PROBLEM = 24
_LEAST_ACTION = 11
_NAMED = ("power-cycle", "watch", "check-program", "restart-program", "contact-vendor", "contact-host")
"""Steps whose name says it: their sentences are for who does them."""
_BRIEFLY: Mapping[str, str] = wording("instruction in brief")
"""Of commands that are long, that do harm one by one, or that only look before what is done."""
_ASIDE = re.compile(r" ?\((?![0-9a-f:.]+\))[^()]*\)")
_ONE_GPU = re.compile(r" -i [0-9a-f:.]+")
_SEVERAL_GPUS = re.compile(r" -i [0-9a-f:.]+,[0-9a-f:.,]+")
_CUT = re.compile(r".*(?=, | and | that )")
_CONDITION = re.compile(r"^(?:with the power off |(?:if|unless) this was (?:not )?intended[,:] )")


def headline(assessment: Assessment, cause: Cause, room: int = LONGEST) -> str:
    """Problem and first action; where there is little room without asides, then with the action in fewer words."""
    action = first_remedy(cause.actions)
    command = action_text(action, assessment.found)
    before = "drain, " if action.scope != "none" and "drain" in preparatory(cause.actions) else ""
    texts = dict.fromkeys(_texts(action, command, cause.component))
    actions = [text if text.startswith("drain") else f"{before}{text}" for text in texts]
    for most in (min(room, _GOOD), room):
        for text in actions:
            what = problem(assessment, cause, text)
            plain = _ASIDE.sub("", what)
            for each in (what, BUS_ID.sub("", what), plain, BUS_ID.sub("", plain))[: 2 if most < room else 4]:
                if len(f"{each} -> {text}") <= most:
                    return f"{each} -> {text}"
    last = min(actions, key=len)
    if len(last) > room - _LEAST_PROBLEM - 4:
        last = f"{before}{_named_step(cause, action, last.removeprefix(before), room - len(before))}"
    what = BUS_ID.sub("", problem(assessment, cause, last))
    return f"{shortened(what, max(_LEAST_PROBLEM, room - len(last) - 4))} -> {last}"


def _named_step(cause: Cause, action: Action, text: str, room: int) -> str:
    """The step by its name, with what is to be looked at or set; never a part of a command."""
    if action.step not in ("inspect", "change-setting"):
        return STEPS[action.step]
    if not action.commands:
        return shortened(text, room - _LEAST_PROBLEM - 4)
    return _on(cause.component, "look at" if action.step == "inspect" else "change")


def _on(component: Component, verb: str) -> str:
    return f"{verb} {component.part or component_name(component)}"


def _texts(action: Action, text: str, component: Component) -> Iterator[str]:
    """Longest first: all commands or the first clause, without its aside, what is before its commas."""
    brief = _BRIEFLY.get(action.instruction.code)
    if brief and action.step in ("inspect", "restart-service"):
        yield brief
        return
    if action.commands:
        whole = "; ".join(map(shlex.join, action.commands))
        same = {_ONE_GPU.sub("", shlex.join(command)) for command in action.commands}
        if component.kind == "gpus" and len(same) == 1 < len(action.commands):
            yield same.pop()
        yield whole
        if len(action.commands) > 1 and action.step == "change-setting":  # the first alone would change a part of it
            ports = f"clear ACS redirects at {len(action.commands)} ports"
            yield ports if action.instruction.code == "disable-acs" else _on(component, "change")
            return
        yield brief or _SEVERAL_GPUS.sub(" -i BDF,..", shlex.join(action.commands[0]))
        return
    if action.step not in _NAMED:
        clause = _CONDITION.sub("", first_clause(text))
        clause = clause.partition(f" at {action.instruction.values.get('name')}")[0]
        yield brief or clause
        shorter = _ASIDE.sub("", clause).partition(": ")[0]
        while len(shorter) > _LEAST_ACTION and not brief:
            yield shorter
            shorter = found[0].rstrip(",") if (found := _CUT.match(shorter)) else ""
        return
    yield STEPS[action.step]


def shortened(text: str, room: int) -> str:
    """Without what stands in parentheses, then up to a comma or colon, then to a blank."""
    if len(text) <= room or len(text := _ASIDE.sub("", text)) <= room:
        return text
    begin = text.find(": ") + 2  # of the subject nothing is cut
    end = max(text.rfind(mark, begin, room - 1) for mark in (", ", ": "))
    return f"{text[: end if end > room // 2 else text.rfind(' ', 0, room - 2)].rstrip(',: ')} .."
