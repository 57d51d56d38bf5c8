"""A long text is read in part, within one budget: which lines, under which numbers, and what is said of it."""

from __future__ import annotations

import bz2
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dgxcheck.assessment.machine import open_source
from dgxcheck.facts.missing import BadInput
from dgxcheck.limits import READ_CHARACTERS, READ_LINES, UNPACKED_LINES
from dgxcheck.readers.any_text import outputs
from dgxcheck.readers.layout import selection
from dgxcheck.readers.layout.selection import selected
from dgxcheck.readers.layout.undo import undone

MATRIX = ("\tGPU0\tGPU1", "GPU0\t X \tPIX", "GPU1\tPIX\t X ")


@given(st.lists(st.sampled_from(("", " ", "word", "GPU0 failed", "an error")), max_size=50))
def test_a_usual_text_is_read_whole(lines: list[str]) -> None:
    assert selected(lines) == range(len(lines))


def test_lines_that_name_devices_and_errors_come_first() -> None:
    lines = ["line of a program"] * (3 * READ_LINES)
    lines[READ_LINES], lines[2 * READ_LINES] = "NVRM: Xid (PCI:0000:44:00): 79, lost", "mlx5_0 is up"
    kept = selected(lines)
    assert len(kept) == READ_LINES - 4  # as many gaps: each of the two lines, and both ends
    assert {0, READ_LINES, 2 * READ_LINES, len(lines) - 1} <= {*kept}
    assert sorted({*kept}) == [*kept]
    assert sum(len(lines[at]) for at in selected(["x" * 1000] * READ_LINES)) <= READ_CHARACTERS


def test_a_line_that_stands_alone_counts_twice() -> None:
    """Readers take as long for the empty line that parts it from the next one."""
    lines = ["line of a program", "NVRM: Xid (PCI:0000:44:00): 79, lost"] * READ_LINES
    assert selected(lines) == [at for at in range(1, len(lines), 2) if not READ_LINES / 2 < at < 3 * READ_LINES / 2]


@settings(max_examples=20)
@given(st.lists(st.integers(0, 9), min_size=4, max_size=4))
def test_outputs_keep_the_numbers_of_their_lines(gaps: list[int]) -> None:
    """However many empty lines stand between and before them."""
    lines = ("",) * gaps[0] + MATRIX + ("",) * gaps[1] + ("$ date",) + ("",) * gaps[2] + MATRIX + ("",) * gaps[3]
    first, second = gaps[0], gaps[0] + len(MATRIX) + gaps[1] + 1 + gaps[2]
    found = {at for _, part in outputs(undone(lines)) for at in part.understood}
    assert {at + start for at in range(3) for start in (first, second)} <= found
    assert found < {*range(len(lines))}


def test_it_is_said_how_much_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = READ_LINES // 10
    monkeypatch.setattr(selection, "READ_LINES", most)
    path = tmp_path / "syslog"
    path.write_text("a program says hello\n" * (2 * most) + "\n".join(MATRIX) + "\n" * 5_000)
    assert "2997 of 11003 lines were read" in open_source(str(path)).origin.unread
    path.write_text("hello\n" * (2 * most))
    with pytest.raises(BadInput, match="no output of a known tool; 2998 of 6001 lines were read"):
        open_source(str(path))


def test_packed_newlines_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.log.bz2"
    path.write_bytes(bz2.compress(b"\n" * (UNPACKED_LINES + 1)))
    with pytest.raises(BadInput, match=r"^\S+: unpacks to more than 4000000 lines"):
        open_source(str(path))
