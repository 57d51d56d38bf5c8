"""The figure of coverage: of all recorded facts, changed to another plausible value, what no check notices."""

from __future__ import annotations

from collections import Counter

import pytest
from one_fact import Changeable
from plausible import is_seen, plausible, remember
from sample import BOXES, swept

MOST_UNSEEN = 0.03
"""Without a written reason."""
QUICK = ("pcie-x4",)
GUESTS = ("h100", "h200", "vgpu-l40s", "vm-h100-x8")
"""What a virtual machine is given may be other hardware in its next run: inventory and versions are not held to it."""


@pytest.mark.in_ci
@pytest.mark.parametrize(
    "name", swept([name for name in BOXES if name not in GUESTS], QUICK)
)
def test_few_changes_of_a_fact_go_unseen(name: str) -> None:
    box = Changeable(name)
    remember(box)
    found: Counter[tuple[str, str]] = Counter()
    unseen: list[str] = []
    for change in plausible(box):
        outcome = "reason" if change.reason else "seen" if is_seen(box, change) else "unseen"
        found[change.nature, outcome] += 1
        unseen += [change.fact] if outcome == "unseen" else []
    print(f"{name}: {dict(sorted(found.items()))}; unseen: {unseen}")
    assert sum(found.values()) > 250
    assert len(unseen) < MOST_UNSEEN * sum(found.values()), unseen
    assert found["counter", "unseen"] == 0
