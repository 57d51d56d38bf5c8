"""Rows below ``[...]`` and its like: read on where they count on from those above it, left where they do not."""

from __future__ import annotations

import pytest

from dgxcheck.assessment.importing.recording import read
from dgxcheck.assessment.importing.texts import text_of
from dgxcheck.readers.layout.lines import is_cut

MARKS = ("[...]", "         [snip]", "<cut>", "...", "\u2026", "(truncated)", "--- snip ---", "12 more lines")
HEAD = "GPU 2: NVIDIA H100 80GB HBM3 (UUID: GPU-01234567-89ab-cdef-0123-456789abcdef)"


def states(*rows: str) -> tuple[dict[str, object], tuple[int, ...]]:
    """NVLinks by key, and the lines that nothing read."""
    reading = read([text_of("t", (HEAD, *rows))])
    facts = reading.combined.facts
    return {key: fact for key, fact in facts.items() if key.startswith("stated nvlink")}, reading.unread["t"]


@pytest.mark.parametrize("mark", MARKS)
def test_links_that_count_on_are_of_the_same_gpu(mark: str) -> None:
    found, left = states("\t Link 0: 26.562 GB/s", mark, "\t Link 17: <inactive>")
    assert found == {"stated nvlink GPU2 0": "26.562 GB/s", "stated nvlink GPU2 17": "<inactive>"}
    assert left == ()
    counted, left = states("\t Link 0: Replay Errors: 0", mark, "\t Link 17: CRC Errors: 4")
    assert counted["stated nvlink-errors GPU2 17 2"] == 4
    assert left == ()


@pytest.mark.parametrize("mark", MARKS)
def test_links_that_begin_again_are_of_a_gpu_that_is_not_named(mark: str) -> None:
    found, left = states("\t Link 4: 26.562 GB/s", "\t Link 5: 26.562 GB/s", mark, "\t Link 3: <inactive>")
    assert found.keys() == {"stated nvlink GPU2 4", "stated nvlink GPU2 5"}
    assert left == (4,)


@pytest.mark.parametrize("line", ["", "..", "[0]", "cut", "snip", "Link 0: ...", "[   12.345678] ...", "more", "----"])
def test_other_lines_are_no_marks(line: str) -> None:
    assert not is_cut(line)
