"""Every table of words beside the readers is whole: its columns, the faults and outcomes that it names, its tool."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from checkout import ROOT

from dgxcheck.facts.faults import BY_WORD
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers import wording

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
    assert len({tuple(row.values()) for row in found}) == len(found)


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_a_table_has_a_reader(path: Path) -> None:
    name = f'"{path.relative_to(READERS).with_suffix("").as_posix()}"'
    assert any(name in reader.read_text(encoding="utf-8") for reader in READERS.rglob("*.py"))


def test_a_row_is_what_it_stands_for() -> None:
    row = {"topic": "io", "fault": "gpu-lost", "words": "is lost", "text": "it is lost"}
    found = wording.wording(row)
    assert found.words.search("GPU 3 is lost")
    assert (found.topic, found.outcome, found.text, found.tool) == ("io", "warn", "it is lost", "")
    assert found.fault is BY_WORD["gpu-lost"]
    assert wording.fault_of({"fault": ""}) is None
