"""``health`` of a recording or overlay in this process; what ships is judged once in a whole run of the tests."""

from __future__ import annotations

import json
import os
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

from sample import BY_NAME

from dgxcheck.cli import main

Judged = tuple[int, dict[str, Any]]
"""Exit code and JSON document."""
BAD = ("warn", "fail", "unknown")
"""Statuses of findings that count."""
NAMELESS = "k80-x8"
"""Its firmware names no product, so that its profile is named."""
folder: Path | None = None
"""Where the processes of one run keep what they judged, for each other; ``conftest.py`` sets it."""


def judged(spec: str) -> Judged:
    """Exit code and document of ``health``: of what ships by its name, else of a file."""
    return _once(spec) if spec in BY_NAME else _judged(spec, _profile(spec))


def unnamed(name: str) -> dict[str, Any]:
    """The document of what ships, where nobody names a profile."""
    return (_judged(name, ()) if name.startswith(NAMELESS) else _once(name))[1]


@cache
def _once(name: str) -> Judged:
    if folder is None:
        return _judged(name, _profile(name))
    path = folder / f"{name}.json"
    if not path.is_file():
        code, document = _judged(name, _profile(name))
        own = folder / f"{name}.{os.getpid()}"
        own.write_text(json.dumps([code, document]), encoding="utf-8")
        own.replace(path)  # another process may read it at any time
    code, document = json.loads(path.read_text(encoding="utf-8"))
    return code, document


def _profile(spec: str) -> tuple[str, ...]:
    nameless = NAMELESS in (spec if spec in BY_NAME else Path(spec).read_text(encoding="utf-8"))
    return ("--profile", NAMELESS) if nameless else ()


def _judged(spec: str, named: tuple[str, ...]) -> Judged:
    with redirect_stdout(StringIO()) as out:
        code = main(["health", "--format", "json", "--from", spec, *named])
    document: dict[str, Any] = json.loads(out.getvalue())
    return code, document
