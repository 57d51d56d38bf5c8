"""The thresholds in dgxcheck-config(5), made from the table in the code.

``python tests/threshold_list.py`` writes them into the page.
"""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import fill

from dgxcheck.settings import THRESHOLDS

PAGE = Path(__file__).parent.parent / "man" / "dgxcheck-config.5"
MARK = '.\\" thresholds: written by tests/threshold_list.py\n'
PLACE = re.compile(rf"(?<=^{re.escape(MARK)}).*?(?=^\.El$)", re.DOTALL | re.MULTILINE)


def listed() -> str:
    """The items of the list, by name."""
    items = []
    for name, limit in sorted(THRESHOLDS.items()):
        numbers = f"{limit.value:g} {limit.unit}; from {limit.low:g} to {limit.high:g}."
        source = fill(f"Source of the default: {limit.source}.", 80, break_on_hyphens=False)
        items.append(f".It Cm {name}\n{numbers}\n{source}\n")
    return "".join(items)


def in_page() -> str:
    """What the page has in their place."""
    found = PLACE.search(PAGE.read_text(encoding="utf-8"))
    return found[0] if found else ""


if __name__ == "__main__":
    PAGE.write_text(PLACE.sub(lambda _: listed(), PAGE.read_text(encoding="utf-8"), count=1), encoding="utf-8")
