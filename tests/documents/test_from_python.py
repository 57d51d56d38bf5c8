"""PYTHON.md: its example is the file that is type-checked here, and prints what is shown."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from checkout import ROOT

import dgxcheck.assessment
from dgxcheck.assessment import Request
from dgxcheck.facts.record import fields

EXAMPLE = Path(__file__).parent / "from_python.py"
PAGE = (ROOT / "PYTHON.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (output,) = re.findall(r"^```text\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert code == EXAMPLE.read_text(encoding="utf-8")
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert capsys.readouterr() == (output, "")


def test_every_member_that_the_page_names_exists() -> None:
    shown = set(re.findall(r"`([a-z_]+)`", PAGE)) - {"source"}
    assessment = dgxcheck.assessment.Assessment
    assert shown
    assert {word for word in shown if not hasattr(assessment, word)} == set()
    assert {*re.findall(r"Request\((\w+)=", PAGE)} <= {*fields(Request)}


def test_every_public_name_is_there() -> None:
    assert {*dgxcheck.assessment.__all__} <= {*dir(dgxcheck.assessment)}
    for name in dgxcheck.assessment.__all__:
        assert getattr(dgxcheck.assessment, name).__name__ in (name, "Literal")
    mistyped = "asses"
    with pytest.raises(AttributeError, match="has no attribute 'asses'"):
        getattr(dgxcheck.assessment, mistyped)
