"""No step says what a later step of the same cause does: it would be done twice, or too early."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

GOLDEN = Path(__file__).parents[1] / "golden" / "remedies.txt"
DOES = {
    "reboot": r"\breboot\b", "reset-gpu": r"\breset (?:the|all) GPUs?\b|nvidia-smi -r\b",
    "field-diagnostic": r"dcgmi diag", "power-cycle": r"\bcold power cycle\b",
    "drain": r"\bdrain the (?:node|GPU|host)\b", "contact-vendor": r"\bcall the vendor\b",
    "restart-service": r"systemctl (?:enable --now|restart)",
}  # fmt: skip
CONDITIONS = (
    "only a reboot helps", "run after a reboot too", "after an oops the kernel is unreliable",
    "if they do not explain it, run a field diagnostic", "take effect at the next reboot",
)  # fmt: skip
"""What tells whether the later step is due."""
ALLOWED = frozenset({"hca: hca-identity (fail)", "hca: hca-identity (warn)"})
"""A firmware is active after the power cycle."""


def causes() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for block in GOLDEN.read_text().split("\n\n"):
        head, *rows = block.strip().splitlines() or [""]
        steps = [row[4:].split(": ", 1) for row in rows if row.startswith("  - ")]
        yield head, [(step, text.split(" | ")[0]) for step, text in steps]


def test_no_step_is_named_before_its_turn() -> None:
    twice = [
        f"{head}: {step} says {later}: {text}"
        for head, steps in causes() if head not in ALLOWED
        for at, (step, text) in enumerate(steps)
        for later, _ in steps[at + 1 :]
        if later in DOES and step != later and re.search(DOES[later], text)
        and not any(condition in text for condition in CONDITIONS)
    ]  # fmt: skip
    assert twice == []
