"""Recordings that ship, by name; for tests that look at each finding's form, boxes and one fault of each kind."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest

from dgxcheck.source.recording.load import shipped

BY_NAME = dict(shipped())
FAULTS = {name: path for name, path in BY_NAME.items() if "faults" in Path(path).parts}
BOXES = [name for name in BY_NAME if name not in FAULTS]
SAMPLE = [
    *BOXES, "dgx-1-v100-container", "dgx-1-v100-disk-missing", "dgx-1-v100-ecc-aggregate", "dgx-1-v100-edac-corrected",
    "dgx-1-v100-gpu-lost", "dgx-1-v100-gpu-x8", "dgx-1-v100-hot", "dgx-1-v100-mismatch", "dgx-1-v100-no-nvml",
    "dgx-1-v100-nvlink-down", "dgx-1-v100-port-down", "dgx-1-v100-switch-aer", "dgx-1-v100-xid-48",
    "k80-x8-driver-hangs",
]  # fmt: skip
"""Findings of GPUs, pairs, ports, HCAs, bridges, disks, memory controllers and the host; every status."""


def expected(fault: str) -> dict[str, Any]:
    """What the overlay of a fault says that is found."""
    expect: dict[str, Any] = json.loads(Path(FAULTS[fault]).read_text(encoding="utf-8"))["expect"]
    return expect


FOUND_BY: dict[tuple[str, str], str] = {}
"""For each check and status the first fault that it finds."""
for _fault in FAULTS:
    for _finding in expected(_fault)["findings"]:
        FOUND_BY.setdefault((_finding["id"], _finding["status"]), _fault)


def swept(
    cases: Iterable[Any], few: Collection[Any] | int, first: int = 0,
    others: pytest.MarkDecorator = pytest.mark.exhaustive,
) -> list[Any]:
    """All of these for ``make test-all``; ``make test`` takes few: those named, or each ``few``-th from ``first`` on.

    Sweeps over boxes begin at different ones, so that together they run on all. A case that is a tuple is one of
    several arguments. ``others`` marks those that ``make test`` leaves out: ``in_ci`` where CI is to run them, too.
    Without any case, as where recordings are not there, pytest skips the test.
    """
    found = [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            marks=() if (number % few == first if isinstance(few, int) else case in few) else others,
        )
        for number, case in enumerate(cases)
    ]
    assert not found or not all(each.marks for each in found), "make test runs none of these"
    return found
