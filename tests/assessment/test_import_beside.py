"""What a writer says about an output is no part of it that was left."""

from __future__ import annotations

from pathlib import Path

import pytest

from dgxcheck.assessment.importing.unread import beside
from dgxcheck.cli import main

LIST = "GPU 0: Tesla V100-SXM2-16GB (UUID: GPU-00000000-0000-4000-8000-000000000001)"


@pytest.mark.parametrize(
    ("text", "aside"),
    [
        (["Hello, here is my box:", "", LIST, "", "Thanks for any help."], {0, 4}),
        (["my box:", LIST], set()),
        ([LIST, "", "what is this", "", LIST], set()),
        ([LIST, "", "GPU0\t X \tNV1\tNV1\tNODE"], set()),
        ([LIST, "", "ERROR: GPU 1 failed"], set()),
    ],
    ids=["apart", "touching", "within", "a row of a matrix", "an error"],
)
def test_paragraphs_apart_from_every_output(text: list[str], aside: set[int]) -> None:
    read = frozenset(at for at, line in enumerate(text) if line == LIST)
    unread = [at for at, line in enumerate(text) if line and at not in read]
    assert beside(text, unread, [read]) == aside


def test_words_around_an_output_leave_the_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "issue.md"
    file.write_text(f"{LIST}\n\nTotal 5 3 4 5\nTotal 6 7 8\n")
    assert main(["import", "--show", str(file)]) == 0
    assert "beside the outputs: lines 3-4" in capsys.readouterr().out


def test_the_first_lines_of_many_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "long.txt"
    file.write_text("\n".join([LIST, *(f"Total {at} {at}" for at in range(30))]))
    assert main(["import", "-o", str(tmp_path / "box.json"), str(file)]) == 3
    *named, more, _ = capsys.readouterr().err.splitlines()
    assert len(named) == 10
    assert more.endswith("20 more lines not read: see --show")


def test_thousands_of_unread_lines_are_no_words_about_an_output() -> None:
    text = [LIST, *(["", "Total 1 2"] * 10_001)]
    assert beside(text, range(2, len(text), 2), [frozenset([0])]) == frozenset()


def test_nothing_is_beside_an_output_that_is_not_there() -> None:
    assert beside(["hello world"], [0], []) == frozenset()
