"""Where the checkout stands."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"


def python_script(code: str) -> str:
    """A program of this Python, whose path may be too long or have blanks for a first line: as pip writes them."""
    return f"#!/bin/sh\n'''exec' '{sys.executable}' \"$0\" \"$@\"\n' '''\n{code}"
