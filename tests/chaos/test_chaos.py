"""A sample of the matrix of sick drivers and systems runs with the other tests."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from checkout import ROOT
from programs import program

from chaos.__main__ import run
from chaos.bench import BEHIND
from chaos.cases import Case, every

ROWS = sorted({case.row for case in every()})


def sample(row: str) -> list[Case]:
    """A middle, the first and the last case of a row."""
    cases = [case for case in every() if case.row == row]
    return [cases[at] for at in dict.fromkeys((len(cases) // 2, 0, len(cases) - 1))]


def runs_here(case: Case) -> bool:
    """Only root becomes another user, who may have no way to a clone below root's home."""
    if case.what not in BEHIND:
        return True
    argv = (*BEHIND["ordinary user"].split(), sys.executable, "-c", "import dgxcheck")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(argv, env=environment, cwd="/", capture_output=True, check=False).returncode == 0


def broken(cases: list[Case], jobs: int) -> dict[str, list[str]]:
    program("gcc")
    cases = [case for case in cases if runs_here(case)]
    found = run(cases, jobs=jobs)
    assert len(found) == len(cases)
    return {str(case): rules for case, rules in found.items() if rules}


@pytest.mark.in_ci
def test_what_holds_holds_in_a_case_of_every_other_row() -> None:
    assert broken([sample(row)[0] for row in ROWS[::2]], jobs=4) == {}


@pytest.mark.exhaustive
def test_what_holds_holds_in_a_sample_of_the_matrix() -> None:
    cases = [*[case for row in ROWS for case in sample(row)[row in ROWS[::2] :]], *[*every()][::10]]
    assert broken([*dict.fromkeys(cases)], jobs=6) == {}


def test_the_matrix_is_as_large_as_it_says() -> None:
    assert len([*every()]) > 800
    assert len([*every(full=True)]) > 6000
