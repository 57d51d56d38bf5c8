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

from findings_golden import note, of_document
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
    profile = _profile(spec)
    if spec in BY_NAME:
        code, document, _ = _once(spec, profile)
        return code, document
    report = _report(spec, profile)
    document = json.loads(as_json.render(report))
    note(of_document(document))
    return report.exit_code, document


def of_text(text: str, folder: Path) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Of a pasted text severity, faults and first step of each cause, and the document of ``health``."""
    file = folder / "text.txt"
    file.write_text(text, encoding="utf-8")
    _, found = judged(str(file))
    return tuple(f"{each['severity']} {' '.join(each['faults'])} {each['actions'][0]['action']}"
                 for each in found["causes"]), found  # fmt: skip


def briefly(name: str) -> dict[str, Any]:
    """The document of what ships without the findings that do not count: for tests that read those of all faults."""
    return _brief(name, _profile(name))[1]


def printed(name: str) -> tuple[int, str]:
    """Exit code and text of ``health`` of what ships by this name, where nobody names a profile."""
    code, _, shown = _brief(name, "auto")
    return code, shown


def unnamed(name: str) -> dict[str, Any]:
    """The document of what ships, where nobody names a profile."""
    return _once(name, "auto")[1]


def without_reference(name: str) -> dict[str, Any]:
    """The document of what ships, where there is no reference machine."""
    return _once(name, "none")[1]


@lru_cache(maxsize=4)
def _once(name: str, profile: str) -> _Whole:
    return _read(name, profile, ".json")


def _brief(name: str, profile: str) -> _Whole:
    return _read(name, profile, ".brief")


def _read(name: str, profile: str, kind: str) -> _Whole:
    path = None if folder is None else folder / f"{name}.{profile}{kind}"
    if path is not None and path.is_file():
        code, document, shown = json.loads(path.read_text(encoding="utf-8"))
        return code, document, shown
    report = _report(name, profile)
    code, rendered, shown = report.exit_code, as_json.render(report), text.render(report)
    document = json.loads(rendered)
    brief = document | {"findings": [each for each in document["findings"] if each["status"] in BAD]}
    if path is not None:
        _write(path.with_suffix(".json"), f"[{code},{rendered},{json.dumps(shown)}]")
        _write(path.with_suffix(".brief"), json.dumps((code, brief, shown)))
    return code, document if kind == ".json" else brief, shown


def _write(path: Path, content: str) -> None:
    own = path.with_suffix(f".{os.getpid()}")
    own.write_text(content, encoding="utf-8")
    own.replace(path)  # another process may read it at any time


def _profile(spec: str) -> str:
    nameless = NAMELESS in (spec if spec in BY_NAME else Path(spec).read_text(encoding="utf-8"))
    return NAMELESS if nameless else "auto"


def _report(spec: str, profile: str) -> HealthReport:
    assessment = assess(spec, Request(profile=profile))
    return HealthReport(assessment=assessment, exit_code=EXIT_CODES[assessment.verdict])
