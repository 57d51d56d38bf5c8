"""What is watched: counts and log lines never go away, so that they do not persist but grow or come back."""

from __future__ import annotations

import pytest
from seam import run

FURTHER = "if the fault persists", "if it grows", "if it comes back"


@pytest.mark.parametrize(
    ("recording", "when"),
    [
        ("pcie-x8-page-double-bit", "if it grows (limit 63 pages): drain, field diagnostic"),
        ("dgx-a100-bank-without-spare-rows", "if it grows: drain, field diagnostic"),
        ("pcie-x8-aer-totals", "if it grows: drain, cold power cycle"),
        ("dgx-a100-xid-149-nonfatal", "if it comes back: contact the vendor"),
        ("dgx-1-v100-port-down", "if the fault persists: reseat"),
        ("dgx-1-v100-xid-62", "if the fault persists: reboot"),
    ],
)
def test_when_the_further_steps_are_due(recording: str, when: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = run(capsys, "health", "--from", recording).out
    (line,) = [line.strip() for line in said.splitlines() if line.strip().startswith(FURTHER)]
    assert line.startswith(when)
