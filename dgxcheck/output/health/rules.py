"""The rule of a check in words, with its thresholds as numbers: what ``--explain`` prints."""

from __future__ import annotations

import re

from dgxcheck.checks.engine.check import Check
from dgxcheck.output.plain_text import lines
from dgxcheck.settings import THRESHOLDS, Settings

_NUMBER = re.compile(r"\{([a-z0-9.-]+)\}")
"""The name of a threshold in the text of a rule."""
DEFAULTS = Settings()


def explained(check: Check, settings: Settings) -> str:
    """What ``--explain`` prints."""
    told = [check.id, f"  Rule:   {rule(check, settings)}", f"  Source: {check.source}"]
    for name in _NUMBER.findall(check.rule):
        at_site = f"{settings.path}; default {_number(name, DEFAULTS)}" if name in settings.thresholds else ""
        told.append(f"  {name}: {_number(name, settings)} ({at_site or THRESHOLDS[name].source})")
    return lines([*told, f"  Remedy: {check.remedy}."])


def rule(check: Check, settings: Settings) -> str:
    """The rule of a check with its thresholds as numbers."""
    return _NUMBER.sub(lambda name: _number(name[1], settings), check.rule)


def _number(name: str, settings: Settings) -> str:
    return f"{settings.limit(name):g} {THRESHOLDS[name].unit}"
