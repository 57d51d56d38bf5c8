"""Every table that ships has a head, and whole rows below it that differ from one another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checkout import ROOT

from dgxcheck import package_files

FOLDER = ROOT / "dgxcheck"
PLACES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.tsv"))


@pytest.mark.parametrize("place", PLACES)
def test_a_table_has_a_head_and_whole_rows(place: str) -> None:
    rows = [*package_files.table(place)]
    assert len(rows) > 1
    assert all(re.fullmatch("[a-z][a-z_]*", name) for name in rows[0])
    assert len({tuple(row.values()) for row in rows}) == len(rows)


@pytest.mark.parametrize("row", ["1\tone", "1\tone\tI\t"])
def test_a_row_has_a_cell_for_each_column(row: str, tmp_path: Path) -> None:
    path = tmp_path / "numbers.tsv"
    path.write_text(f"# Numbers\nnumber\tword\troman\n2\ttwo\tII\n# odd\n3\tthree\t\n{row}\n", "utf-8")
    rows = package_files.table(str(path))
    assert next(rows) == {"number": "2", "word": "two", "roman": "II"}
    assert next(rows) == {"number": "3", "word": "three", "roman": ""}
    with pytest.raises(ValueError, match="zip"):
        next(rows)
