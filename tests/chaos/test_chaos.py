"""A sample of the matrix of sick drivers and systems runs with the other tests."""

from __future__ import annotations

import pytest
from programs import program

from chaos.__main__ import run
from chaos.cases import Case, every

ROWS = sorted({case.row for case in every()})


def sample() -> list[Case]:
    """The first, a middle and the last case of each row."""
    cases = {row: [case for case in every() if case.row == row] for row in ROWS}
    return [each[at] for each in cases.values() for at in dict.fromkeys((0, len(each) // 2, len(each) - 1))]


def test_what_holds_holds_in_a_sample_of_the_matrix() -> None:
    program("gcc")
    found = run(sample(), jobs=4)
    assert len(found) >= 2 * len(ROWS)
    assert {str(case): broken for case, broken in found.items() if broken} == {}


@pytest.mark.exhaustive
def test_what_holds_holds_in_every_tenth_case() -> None:
    program("gcc")
    assert {str(case): broken for case, broken in run([*every()][::10], jobs=6).items() if broken} == {}


def test_the_matrix_is_as_large_as_it_says() -> None:
    assert len([*every()]) > 800
    assert len([*every(full=True)]) > 6000
