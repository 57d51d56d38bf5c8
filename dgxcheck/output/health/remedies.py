"""What to do about each finding, in one voice: what its cause asks for, else the remedy of its check."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.checks.engine.finding import Finding
from dgxcheck.diagnosis.action import Action, first_remedy
from dgxcheck.diagnosis.causes import Diagnosis
from dgxcheck.output.health.instructions import STEPS, action_text


def remedies(diagnosis: Diagnosis, findings: Sequence[Finding]) -> Mapping[str, str]:
    """By key of the finding: the first action of its cause that can help; without a cause the remedy of the check."""
    own = {finding.key: finding.remedy for finding in findings}
    explained: dict[str, str] = {}
    for cause in diagnosis.causes:
        action = first_remedy(cause.actions)
        explained |= dict.fromkeys(cause.explains, _text(action, own))
    return own | explained


_VERBS = ("change-setting", "inspect", "reseat", "replace")
"""Steps whose sentences say themselves what is done."""


def _text(action: Action, own: Mapping[str, str]) -> str:
    step, text = STEPS[action.step], action_text(action, own)
    plain = text == step or (action.step in _VERBS and not action.commands)
    return text if plain or action.remedy_of else f"{step}: {text}"
