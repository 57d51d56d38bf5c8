"""Someone new finds every room of the code in ARCHITECTURE.md, and no room that is gone."""

from __future__ import annotations

import re

from checkout import ROOT

PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
NO_CODE = ("completions", "integrations", "schemas")


def test_every_room_is_in_the_table() -> None:
    rooms = {path.parent.name for path in (ROOT / "dgxcheck").glob("*/*.py")} - {*NO_CODE}
    listed = {name for row in PAGE.splitlines() if row.startswith("| `")
              for name in re.findall(r"`(?:dgxcheck/)?(\w+)/`", row.split("|")[1])}  # fmt: skip
    assert listed - {"probes"} == rooms


def test_every_file_that_it_names_is_there() -> None:
    names = re.findall(r"`((?:\w+/)+\w+\.(?:py|txt|toml))`", PAGE)
    assert len(names) > 5
    places = [ROOT, ROOT / "dgxcheck"]
    assert [name for name in names if not any((place / name).exists() for place in places)] == []
