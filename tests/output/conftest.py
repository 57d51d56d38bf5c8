"""A box that ships is judged once for all tests of what is printed of it."""

from __future__ import annotations

import pytest
from seam import judge_once


@pytest.fixture(autouse=True)
def boxes_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judge_once(monkeypatch)
