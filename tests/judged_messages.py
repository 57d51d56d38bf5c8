"""Which messages a run renders, by the place in the code that words them."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from checkout import ROOT

from dgxcheck.checks.engine.finding import Judgement

CHECKS = ROOT / "dgxcheck" / "checks"
PASSED_ON = ("finding.py", "wording.py")
"""Of the engine: they make a judgement of what another place says."""
Site = tuple[str, int]
"""File below ``dgxcheck/checks`` and the line of a call of ``Judgement`` or ``skip``."""


@cache
def calls(file: str) -> tuple[tuple[int, int], ...]:
    """First and last line of each call of ``Judgement`` or ``skip`` in a file below ``dgxcheck/checks``."""
    tree = ast.parse((CHECKS / file).read_text(encoding="utf-8"))
    return tuple(
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Judgement", "skip")
    )


def sites() -> set[Site]:
    """All places that word a message."""
    files = (path.relative_to(CHECKS).as_posix() for path in CHECKS.rglob("*.py") if path.name not in PASSED_ON)
    return {(file, first) for file in files for first, _ in calls(file)}


@contextmanager
def collected() -> Iterator[dict[Site, set[str]]]:
    """The messages of all judgements made meanwhile, by their place."""
    messages: dict[Site, set[str]] = defaultdict(set)
    plain = Judgement.__init__

    def noting(self: Judgement, *given: Any, **values: Any) -> None:
        plain(self, *given, **values)
        frame = sys._getframe(1)
        while frame is not None:
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(CHECKS) and path.name not in PASSED_ON:
                file = path.relative_to(CHECKS).as_posix()
                within = [first for first, last in calls(file) if first <= frame.f_lineno <= last]
                if within:
                    messages[file, max(within)].add(self.message)
                    return
            frame = frame.f_back

    Judgement.__init__ = noting  # type: ignore[method-assign]
    try:
        yield messages
    finally:
        Judgement.__init__ = plain  # type: ignore[method-assign]
