"""Every table of words beside the readers is whole: its columns, the faults and outcomes that it names, its tool."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest
from checkout import ROOT

from dgxcheck.facts.faults import BY_WORD
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers import wording
from dgxcheck.readers.model import _MOST_TEXT

READERS = ROOT / "dgxcheck" / "readers"
TABLES = sorted(READERS.rglob("*.tsv"))
PATTERNS = frozenset(("words", "head", "row", "sensors"))


def rows(path: Path) -> list[dict[str, str]]:
    return [*wording.rows(path.relative_to(READERS).with_suffix("").as_posix())]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_a_table_is_whole(path: Path) -> None:
    found = rows(path)
    for row in found:
        assert row.get("outcome", "warn") in (*get_args(Outcome), "")
        assert {row.get(name, "") for name in ("fault", "unnamed")} <= {*BY_WORD, ""}
        for name in PATTERNS & row.keys():
            assert LazyPattern(row[name]).compiled
        assert not any(row[name].endswith(" ") for name in (PATTERNS & row.keys()) | {[*row][-1]})
    assert len({tuple(row.values()) for row in found}) == len(found)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_a_table_has_a_reader(path: Path) -> None:
    name = f'"{path.relative_to(READERS).with_suffix("").as_posix()}"'
    assert any(name in reader.read_text(encoding="utf-8") for reader in READERS.rglob("*.py"))


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_a_text_is_shown_whole(path: Path) -> None:
    assert [text for row in rows(path) if len(text := row.get("text", "")) > _MOST_TEXT] == []


def test_a_text_in_code_is_shown_whole() -> None:
    texts = []
    for path in READERS.rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        calls = (node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call))
        for call in (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "add"):
            for given in (*call.args[4:], *(each.value for each in call.keywords if each.arg == "text")):
                parts = [each for each in ast.walk(given) if isinstance(each, ast.Constant)]
                texts.append("".join(str(each.value) for each in parts))
                if isinstance(given, ast.Name):
                    texts.append(str(getattr(import_module(name), given.id, "")))
    assert len(texts) > 100
    assert [text for text in texts if len(text) > _MOST_TEXT] == []


def test_a_row_is_what_it_stands_for() -> None:
    row = {"topic": "io", "fault": "gpu-lost", "words": "is lost", "text": "it is lost"}
    found = wording.wording(row)
    assert found.words.search("GPU 3 is lost")
    assert (found.topic, found.outcome, found.text, found.tool) == ("io", "warn", "it is lost", "")
    assert found.fault is BY_WORD["gpu-lost"]
    assert wording.fault_of({"fault": ""}) is None
