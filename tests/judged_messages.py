"""Which messages a run renders, by the place in the code that words them.

As a plugin (``pytest -p judged_messages``) it writes the places that the run reached to the file that the variable
``DGXCHECK_REACHED`` names.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

from checkout import ROOT

from dgxcheck.checks.engine.finding import Judgement

CHECKS = ROOT / "dgxcheck" / "checks"
REACHED = "DGXCHECK_REACHED"
PASSED_ON = ("finding.py", "wording.py")
"""Of the engine: they make a judgement of what another place says."""
Place = tuple[str, int]
"""File below ``dgxcheck/checks`` and first line of a call of ``Judgement`` or ``skip``."""


@cache
def _calls(file: str) -> tuple[ast.Call, ...]:
    """The calls of ``Judgement`` and ``skip`` in a file below ``dgxcheck/checks``."""
    tree = ast.parse((CHECKS / file).read_text(encoding="utf-8"))
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    return tuple(call for call in calls if call.func.id in ("Judgement", "skip"))  # type: ignore[attr-defined]


def places() -> dict[Place, str]:
    """All places that word a message, with their source text."""
    files = (path.relative_to(CHECKS).as_posix() for path in CHECKS.rglob("*.py") if path.name not in PASSED_ON)
    return {(file, call.lineno): ast.unparse(call) for file in files for call in _calls(file)}


@contextmanager
def collected() -> Iterator[dict[Place | None, set[str]]]:
    """The messages of all judgements made meanwhile by their place; None is the place of those that tests make."""
    messages: dict[Place | None, set[str]] = defaultdict(set)
    plain = Judgement.__init__

    def noting(self: Judgement, *given: Any, **values: Any) -> None:
        plain(self, *given, **values)
        messages[_place(sys._getframe(1))].add(self.message)

    Judgement.__init__ = noting  # type: ignore[method-assign]
    try:
        yield messages
    finally:
        Judgement.__init__ = plain  # type: ignore[method-assign]


def _place(frame: FrameType | None) -> Place | None:
    while frame is not None:
        file = _below_checks(frame.f_code.co_filename)
        within = [call.lineno for call in _calls(file) if call.lineno <= frame.f_lineno <= (call.end_lineno or 0)]
        if within:
            return file, max(within)
        frame = frame.f_back
    return None


@cache
def _below_checks(path: str) -> str:
    """The file below ``dgxcheck/checks``; ``__init__.py``, which has no calls, for any other."""
    inside = Path(path).is_relative_to(CHECKS) and Path(path).name not in PASSED_ON
    return Path(path).relative_to(CHECKS).as_posix() if inside else "__init__.py"


_run = ExitStack()


def pytest_configure() -> None:
    messages = _run.enter_context(collected())
    _run.callback(lambda: _write([place for place in messages if place]))


def pytest_unconfigure() -> None:
    _run.close()


def _write(reached: list[Place]) -> None:
    if path := os.environ.get(REACHED):
        Path(path).write_text(json.dumps(reached), encoding="utf-8")
