"""The paragraphs of dgxcheck-health(1) about each check, made from what ``--explain`` prints.

``python tests/check_paragraphs.py`` writes them into the page.
"""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import fill

from dgxcheck.checks.engine.box import DEFAULTS
from dgxcheck.checks.registry import CHECKS
from dgxcheck.output.health.explanation import rule

PAGE = Path(__file__).parent.parent / "man" / "dgxcheck-health.1"
PLACE = re.compile(r"(?<=^\.Sh CHECKS\n).*?(?=^\.Sh )", re.DOTALL | re.MULTILINE)


def paragraphs() -> str:
    """The body of the section CHECKS."""
    parts = ["Each has a stable name.", ".Bl -tag -width Ds"]
    for check in CHECKS:
        said = (rule(check, DEFAULTS), f"Source: {check.source}.", f"Remedy: {check.remedy}.")
        sentences = [sentence for text in said for sentence in re.split(r"(?<=\.) (?=[A-Z])", text)]
        parts += [f".It Cm {check.id}", *map(_filled, sentences)]
    return "\n".join([*parts, ".El", ""])


def _filled(sentence: str) -> str:
    """Lines of at most 80 bytes for mandoc, which reads a degree sign as ``\\[u00B0]``."""
    return fill(sentence, 80 - 7 * sum(not char.isascii() for char in sentence), break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(PLACE.sub(lambda _: paragraphs(), PAGE.read_text(encoding="utf-8"), count=1), encoding="utf-8")
