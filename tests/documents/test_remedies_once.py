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
    "only a reboot helps", "run after a reboot too", "take effect at the next reboot",
)  # fmt: skip
"""What tells whether the later step is due."""
ACTS = re.compile(
    r"\b(?:ms?t?l?x?fwreset|burn |flash |reboot|replace |reseat|restart|reinstall|install |unload |dcgmi diag|"
    r"power cycle|un?mount |--stop|--create|e2fsck -[fpy]|end jobs|update |systemctl (?:stop|restart))"
)
LATER = (
    "at the next maintenance", "at the next drain", "only a reboot helps", "holds after a reboot",
    "until the next reboot", "once the host is drained", "services that were killed", "continue with the old limit",
)  # fmt: skip
"""What is for another time, or is said of another one."""


def causes() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    for block in GOLDEN.read_text().split("\n\n"):
        head, *rows = block.strip().splitlines() or [""]
        steps = [row[4:].split(": ", 1) for row in rows if row.startswith("  - ")]
        yield head, [(step, text.split(" | ")[0]) for step, text in steps]


def test_what_only_looks_does_nothing() -> None:
    """An inspection that resets, burns, replaces or ends something says what it disturbs, so it follows the drain."""
    rows = [row[4:] for row in GOLDEN.read_text().splitlines() if row.startswith("  - inspect: ")]
    assert len(rows) > 50
    acting = [row for row in rows if " | disturbs none | " in row and ACTS.search(row.split(" | ")[0])]
    assert [row for row in acting if not any(words in row for words in LATER)] == []


def test_no_step_is_named_before_its_turn() -> None:
    twice = [
        f"{head}: {step} says {later}: {text}"
        for head, steps in causes()
        for at, (step, text) in enumerate(steps)
        for later, _ in steps[at + 1 :]
        if later in DOES and step != later and re.search(DOES[later], text)
        and not any(condition in text for condition in CONDITIONS)
    ]  # fmt: skip
    assert twice == []
