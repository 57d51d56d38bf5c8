"""Probes know facts and the questions that can be asked, and nothing else of the tool."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkout import ROOT

FILES = sorted((ROOT / "probes").rglob("*.py"))
KNOWN = (
    "dgxcheck.facts.", "dgxcheck.kernel_messages.", "dgxcheck.lazy_pattern.", "dgxcheck.limits.",
    "dgxcheck.source.protocol.",
)  # fmt: skip


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_probe_imports_nothing_of_a_machine(path: Path) -> None:
    """The contract in pyproject.toml names what is forbidden; here is what is allowed, for modules yet to come."""
    names = imported(ast.parse(path.read_text(encoding="utf-8")))
    assert [name for name in names if name.startswith("dgxcheck") and not name.startswith(KNOWN)] == []
