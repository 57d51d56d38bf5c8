"""Programs of the system that tests compare with: found, or the test skips; in CI a missing one fails."""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest

STRICT = "DGXCHECK_TEST_STRICT"


def program(name: str) -> str:
    """The path of a program; without it the test skips, or fails where ``DGXCHECK_TEST_STRICT`` is set (CI)."""
    path = shutil.which(name)
    if path is None:
        lacking(f"{name} is not installed here; .ci/run installs what these tests need")
    return path


def lacking(reason: str) -> NoReturn:
    """Skips the test, or fails it where ``DGXCHECK_TEST_STRICT`` is set (CI)."""
    if os.environ.get(STRICT):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
