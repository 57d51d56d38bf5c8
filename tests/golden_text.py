"""Compare a whole output with its golden file; ``make golden`` accepts what is printed now."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"
UPDATE = "DGXCHECK_UPDATE_GOLDEN"


def agrees(name: str, text: str) -> None:
    """``text`` is what ``golden/<name>.txt`` holds; one diff shows every consequence of a change."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get(UPDATE):
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"{path.name} is missing: run 'make golden' and look at what it adds"
    assert text == path.read_text(encoding="utf-8")
