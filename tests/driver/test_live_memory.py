"""A health check of a whole machine takes little memory: the command and each of its workers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from live_box import CHILD, Box
from used import used

MOST_KIB = 40_000


@pytest.mark.in_ci
@pytest.mark.parametrize("name", ["dgx-a100", "dgx-2"])
def test_a_default_run_stays_below_40_mb(served: Callable[[str], Box], standin: Path, name: str) -> None:
    box = served(name)
    command = [sys.executable, "-c", CHILD, str(box.tree), "health"]
    assert 10_000 < used(command, box.environment(standin)).peak_kib < MOST_KIB
