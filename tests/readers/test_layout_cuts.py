"""Rows below ``[...]`` and its like: read on where they count on from those above it, left where they do not; and how
much there must be of a layout."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dgxcheck.assessment.importing.recording import read
from dgxcheck.assessment.importing.texts import text_of
from dgxcheck.readers.layout import selection
from dgxcheck.readers.layout.lines import is_cut, is_prose, plain, unwrapped, without_remark
from dgxcheck.readers.layout.markdown import without_column, without_tables
from dgxcheck.readers.layout.prefixes import without_hosts, without_numbers, without_ranks
from dgxcheck.readers.layout.prompts import prompt
from dgxcheck.readers.layout.selection import selected
from dgxcheck.readers.layout.undo import undone

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
    counted, left = states("\t Link 5: Replay Errors: 0", mark, "\t Link 3: CRC Errors: 4")
    assert counted.keys() == {"stated nvlink-errors GPU2 5 0"}
    assert left == (3,)
    again, left = states("\t Link 5: 26.562 GB/s", mark, "\t Link 5: 26.562 GB/s", "\t Link 6: 26.562 GB/s")
    assert again.keys() == {"stated nvlink GPU2 5", "stated nvlink GPU2 6"}
    assert left == ()


@pytest.mark.parametrize("line", ["", "..", "[0]", "cut", "snip", "Link 0: ...", "[   12.345678] ...", "more", "----"])
def test_other_lines_are_no_marks(line: str) -> None:
    assert not is_cut(line)


@pytest.mark.parametrize(("line", "shown"), [("abcd\rwxyz", "wxyz"), ("abcd\rxyz", "abcdxyz"), ("abcd\r", "abcd")])
def test_what_a_program_overwrote_is_not_seen(line: str, shown: str) -> None:
    assert plain(line) == shown


@pytest.mark.parametrize(("line", "is_sentence"), [
    ("\u8bf7\u770b\u8fd9\u91cc", True), ("\u8bf7\u770b\u8fd9", False), ("\u8bf7\u770b\u8fd9\u91cc GPU", False),
    ("please see this page", True), ("please see this", False), ("Wiring of both:", True), ("a: b:", False),
])  # fmt: skip
def test_four_words_are_a_sentence(line: str, is_sentence: bool) -> None:
    assert is_prose(line) == is_sentence


@pytest.mark.parametrize(("first", "rest", "is_one"), [(40, 200, True), (39, 200, False), (40, 201, False)])
def test_halves_of_a_row_are_joined(first: int, rest: int, is_one: bool) -> None:
    lines = ("|" + "a" * (first - 1), "b" * (rest - 1) + "|")
    found, joined = unwrapped(lines)
    assert (found, joined) == (["".join(lines), ""] if is_one else [*lines], {1: 0} if is_one else {})
    layout = undone(lines)
    assert layout.accounted(frozenset({0})) == ({0, 1} if is_one else {0})
    assert layout.accounted(frozenset()) == set()


def test_a_row_is_broken_once() -> None:
    """What was joined to a row begins none."""
    lines = ("|" + "a" * 39, " |" + "b" * 60 + "|", "c" * 10 + "|")
    assert unwrapped(lines) == ([lines[0] + lines[1], "", lines[2]], {1: 0})


@pytest.mark.parametrize(("line", "left"), [
    ("mlx5_0: up   # the good one", "mlx5_0: up"), ("  3   # of GPUs", "  3   # of GPUs"), ("up # x", "up # x"),
    ("  # a   # b", "  # a   # b"),
])  # fmt: skip
def test_remarks_stand_behind_a_value(line: str, left: str) -> None:
    assert without_remark(line) == left


@pytest.mark.parametrize(("line", "host"), [
    ("==== node-a ====", "node-a"), ("==== node.a ====", "node.a"), ("==== node1 ====", "node1"),
    ("==== topology ====", None), ("==== 1.20 ====", None), ("host: node-a", "node-a"), ("host: all", None),
])  # fmt: skip
def test_the_name_of_a_host_has_more_than_letters(line: str, host: str | None) -> None:
    found = prompt(line)
    assert (None if found is None else found.host) == host


def test_a_row_of_a_table_in_markdown_has_two_bars() -> None:
    lines = ["| a |", "|---|", "| 1 |", "1 | 2", "| 3 |"]
    assert without_tables(lines)[0][2:4] == ["1", "1 | 2"]
    assert without_tables(["a", "|---|---|", "| 1 | 2 |"]) == (["a", "|---|---|", "| 1 | 2 |"], set())
    two = ["a | b |", "|---|---|", "| 1 | 2 |", "|---|---|", "| 3 | 4 |"]
    assert without_tables(two) == (["a\tb", "", "1\t2", "", "3\t4"], {1, 3})


@pytest.mark.parametrize(("cells", "is_undone"), [
    ([*["text"] * 9, "a | b"], True), ([*["text"] * 8, *["a | b"] * 2], False), (["text"] * 3, True),
    (["text"] * 2, False), (["-[0000:00]---00.0"] * 3, True), (["a --- b"] * 3, False),
    (["+----+", *["| a  |"] * 6, *["text"] * 3], True),
    (["+----+", *["| a  |"] * 5, *["text"] * 4], False), ([*["| a  |"] * 7, *["text"] * 3], False),
])  # fmt: skip
def test_a_table_of_one_column(cells: list[str], is_undone: bool) -> None:
    lines = [f"| {cell:8} |" for cell in cells]
    assert without_column(lines) == ([f"{cell:8} " for cell in cells] if is_undone else lines)


@pytest.mark.parametrize(("lines", "undo", "is_undone"), [
    ([f"box: link {n} up" for n in range(12)], lambda lines: without_hosts(lines)[0], True),
    ([f"box: link {n} up" for n in range(11)], lambda lines: without_hosts(lines)[0], False),
    ([f"box{n}: link up" for n in range(2)], lambda lines: without_hosts(lines)[0], True),
    ([*[f"0: link {n} up" for n in range(8)], "more", "0: end"], without_ranks, True),
    ([*[f"0: link {n} up" for n in range(7)], "more", "0: end"], without_ranks, False),
    ([f"{n}: link" for n in range(1, 5)], without_numbers, True),
    ([f"{n}: link" for n in range(1, 4)], without_numbers, False),
    ([f"{n}: [    1.000000] NVRM: Xid (PCI:0000:0f:00): 79, x" for n in range(1, 3)], without_numbers, True),
    ([f"{n}: link" for n in (1, 2, 3, 5)], without_numbers, False),
    ([f"{n}: link" for n in range(4)], without_numbers, False),
])  # fmt: skip
def test_a_prefix_of_several_lines(lines: list[str], undo: Callable[[list[str]], list[str]], is_undone: bool) -> None:
    """Nearly all lines have it."""
    assert undo(lines) == ([line.partition(": ")[2] or line for line in lines] if is_undone else lines)


@pytest.mark.parametrize(("most", "kept"), [(12, [0, 1, 2]), (11, [0, 2]), (8, [0, 2]), (7, [0]), (3, [])])
def test_characters_of_a_long_text(most: int, kept: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "READ_CHARACTERS", most)
    assert [*selected(["aaaa"] * 3)] == kept
