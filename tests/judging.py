"""``health`` of a recording or overlay in this process; what ships is judged once in a whole run of the tests.

A document takes up two megabytes: a process holds few, which is enough as ``conftest.py`` puts the tests of a fault
one after the other.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from pathlib import Path
from typing import Any

from sample import BY_NAME

from dgxcheck.assessment import Request, assess
from dgxcheck.checks.engine.run import EXIT_CODES
from dgxcheck.output.health import text
from dgxcheck.output.health.for_programs import as_json
from dgxcheck.output.report import HealthReport

Judged = tuple[int, dict[str, Any]]
"""Exit code and JSON document."""
BAD = ("warn", "fail", "unknown")
"""Statuses of findings that count."""
NAMELESS = "k80-x8"
"""Its firmware names no product, so that its profile is named."""
_Whole = tuple[int, dict[str, Any], str]
"""The same, and the text."""
folder: Path | None = None
"""Where the processes of one run keep what they judged, for each other; ``conftest.py`` sets it."""


def judged(spec: str) -> Judged:
    """Exit code and document of ``health``: of what ships by its name, else of a file."""
    if spec in BY_NAME:
        code, document, _ = _once(spec)
        return code, document
    return _document(_report(spec, _profile(spec)))


def printed(name: str) -> tuple[int, str]:
    """Exit code and text of ``health`` of what ships by this name."""
    code, _, shown = _unnamed(name)
    return code, shown


def unnamed(name: str) -> dict[str, Any]:
    """The document of what ships, where nobody names a profile."""
    return _unnamed(name)[1]


def without_reference(name: str) -> dict[str, Any]:
    """The document of what ships, where there is no reference machine."""
    return _document(_report(name, "none"))[1]


def _unnamed(name: str) -> _Whole:
    return _judged(name, "auto") if name.startswith(NAMELESS) else _once(name)


@lru_cache(maxsize=4)
def _once(name: str) -> _Whole:
    if folder is None:
        return _judged(name, _profile(name))
    path = folder / f"{name}.json"
    if not path.is_file():
        own = folder / f"{name}.{os.getpid()}"
        own.write_text(json.dumps(_judged(name, _profile(name))), encoding="utf-8")
        own.replace(path)  # another process may read it at any time
    code, document, shown = json.loads(path.read_text(encoding="utf-8"))
    return code, document, shown


def _profile(spec: str) -> str:
    nameless = NAMELESS in (spec if spec in BY_NAME else Path(spec).read_text(encoding="utf-8"))
    return NAMELESS if nameless else "auto"


def _judged(spec: str, profile: str) -> _Whole:
    report = _report(spec, profile)
    return *_document(report), text.render(report)


def _report(spec: str, profile: str) -> HealthReport:
    assessment = assess(spec, Request(profile=profile))
    return HealthReport(assessment=assessment, exit_code=EXIT_CODES[assessment.verdict])


def _document(report: HealthReport) -> Judged:
    return report.exit_code, json.loads(as_json.render(report))
