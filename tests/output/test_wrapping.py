"""What is too long for a terminal: sentences and last columns are wrapped, tables and trees keep their form."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.assessment import examine
from dgxcheck.facts.missing import did_you_mean
from dgxcheck.output.plain_text import columns, fit_columns, fitted, wrap_sentences
from dgxcheck.output.topo.matrix import matrix

WRAPPED = [
    ("one two three four five\n", 12, "one two\n  three four\n  five\n"),
    ("  Rule:   one two three four\n", 20, "  Rule:   one two\n          three four\n"),
    ("GPU0  X     NV1   NV1   NV2\n", 20, "GPU0  X     NV1   NV1   NV2\n"),
    ("├─ 0000:00:02.0 one two three\n", 20, "├─ 0000:00:02.0 one\n│    two three\n"),
    ("│  └─ 0000:00:02.0  one  two\n", 24, "│  └─ 0000:00:02.0  one\n│       two\n"),
    ("a          b          c          d e\n", 20, "a          b          c          d e\n"),
    ("a          b  c d e f g\n", 20, "a          b  c d e\n              f g\n"),
    ("run nvidia-bug-report.sh again\n", 24, "run nvidia-bug-report.sh\n  again\n"),
    ("GPU0 to GPU1: 96 GB/s, 67 % of 144\n", 17, "GPU0 to GPU1:\n  96 GB/s, 67 %\n  of 144\n"),
    ("a  0123456789012345678901234567890\n", 12, "a  0123456789012345678901234567890\n"),
]


@pytest.mark.parametrize(("text", "width", "wrapped"), WRAPPED)
def test_lines_that_are_too_long(text: str, width: int, wrapped: str) -> None:
    assert wrap_sentences(text, width) == wrapped


@given(st.text(alphabet="ab -├\n", max_size=80), st.integers(1, 40))
def test_no_word_is_lost(text: str, width: int) -> None:
    assert wrap_sentences(text, width).split() == text.split()


@pytest.mark.parametrize(("word", "hint"), [("lost", "gpu.lost"), ("bar2", "bar1"), ("gpu.lsot", "gpu.lost")])
def test_a_part_of_a_name_is_a_better_guess_than_a_name_like_it(word: str, hint: str) -> None:
    assert did_you_mean(word, ["host", "gpu.lost", "bar1"], "list them") == f"did you mean {hint}?"


@pytest.mark.parametrize(
    ("box", "width", "heads"),
    [
        ("dgx-2", 120, ["GPU0 .. GPU15", "mlx5_0 .. NUMA Affinity"]),
        ("dgx-2", 90, ["GPU0 .. GPU14", "GPU15 .. mlx5_9", "mlx5_10 .. NUMA Affinity"]),
        ("dgx-a100", 120, ["GPU0 .. mlx5_9", "mlx5_10 .. NUMA Affinity"]),
    ],
)
def test_a_block_ends_where_the_gpus_end_unless_that_costs_a_block_or_the_affinity(
    box: str, width: int, heads: list[str]
) -> None:
    text = matrix(examine(box).topology, False, "soc", width, []).partition("Legend")[0]
    assert max(map(len, text.splitlines())) <= width
    shown = [re.split(r"\s+(?!Affinity)", line.strip()) for line in text.splitlines() if line.startswith("   ")]
    assert [f"{line[0]} .. {line[-1]}" for line in shown] == heads


def test_wide_characters_take_two_columns() -> None:
    assert columns([["漢字", "x"], ["abcd", "y"]]) == ["漢字  x", "abcd  y"]
    assert fitted(["漢字漢字", "abcdefgh", "漢字", "漢"], 5) == ["漢字…", "abcd…", "漢字", "漢"]
    assert fitted(["漢", "ab", ""], 1) == ["…", "…", ""]
    blocks, _ = fit_columns(["", "GPU0"], [["漢字", "X"], ["b", "Y"]], [], 9)
    assert blocks == ["     漢字", "GPU0 X", "", "     b", "GPU0 Y"]
