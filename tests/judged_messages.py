"""Which messages a run renders, by the place in the code that words them; all tests together reach every place."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from checkout import ROOT

from dgxcheck.checks.engine.finding import Judgement

CHECKS = ROOT / "dgxcheck" / "checks"
_REACHED = "dgxcheck_reached"
PASSED_ON = ("finding.py",)
"""Of the engine: they make a judgement of what another place says."""
Place = tuple[str, int]
"""File below ``dgxcheck/checks`` and first line of a call of ``Judgement`` or ``skip``."""


@cache
def _calls(file: str) -> tuple[ast.Call, ...]:
    """The calls of ``Judgement`` and ``skip`` within functions of a file below ``dgxcheck/checks``.

    A judgement that is a constant of the module is made at its import, whoever uses it.
    """
    tree = ast.parse((CHECKS / file).read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.Lambda))
    within = dict.fromkeys(node for function in functions for node in ast.walk(function))
    return tuple(
        node for node in within
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Judgement", "skip")
    )  # fmt: skip


def places() -> dict[Place, str]:
    """All places that word a message, with their source text."""
    files = (path.relative_to(CHECKS).as_posix() for path in CHECKS.rglob("*.py") if path.name not in PASSED_ON)
    return {(file, call.lineno): ast.unparse(call) for file in files for call in _calls(file)}


@contextmanager
def collected() -> Iterator[dict[Place | None, set[str]]]:
    """The messages of all judgements made meanwhile by their place; None is the place of those that tests make."""
    messages: dict[Place | None, set[str]] = defaultdict(set)
    with _noting(lambda place, message: messages[place].add(message)):
        yield messages


@contextmanager
def _noting(note: Callable[[Place | None, str], None]) -> Iterator[None]:
    plain = Judgement.__init__

    def noting(self: Judgement, *given: Any, **values: Any) -> None:
        plain(self, *given, **values)
        note(_place(sys._getframe(1)), self.message)

    Judgement.__init__ = noting  # type: ignore[method-assign]
    try:
        yield
    finally:
        Judgement.__init__ = plain  # type: ignore[method-assign]


def _place(frame: FrameType | None) -> Place | None:
    while frame is not None:
        place = _place_at(frame.f_code.co_filename, frame.f_lineno)
        if place is not None:
            return place
        frame = frame.f_back
    return None


@cache
def _place_at(path: str, line: int) -> Place | None:
    """The innermost call that words a message and spans this line of a file."""
    if not Path(path).is_relative_to(CHECKS) or Path(path).name in PASSED_ON:
        return None
    file = Path(path).relative_to(CHECKS).as_posix()
    within = [call.lineno for call in _calls(file) if call.lineno <= line <= (call.end_lineno or 0)]
    return (file, max(within)) if within else None


class Reached:
    """A plugin for a run of all tests, which fails where a place that words a message was not reached."""

    def __init__(self) -> None:
        self._places: set[Place] = set()
        self._unreached: list[str] = []
        self._run = ExitStack()

    def pytest_sessionstart(self) -> None:
        self._run.enter_context(_noting(lambda place, _: self._places.add(place) if place else None))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """What the processes of xdist reached."""
        self._places |= {(file, line) for file, line in getattr(node, "workeroutput", {}).get(_REACHED, ())}

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._run.close()
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_REACHED] = [*self._places]
            return
        self._unreached = [f"{file}:{line}: {text}" for (file, line), text in places().items()
                           if (file, line) not in self._places]  # fmt: skip
        if self._unreached and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for text in self._unreached:
            terminalreporter.write_line(f"no test reaches the message at {text}", red=True)
