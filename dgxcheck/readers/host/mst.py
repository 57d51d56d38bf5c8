"""``mst status -v``: the PCI function of each adapter's RDMA device."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.missing import Json

PCI_OF = "stated pci-function"
_ROW = re.compile(
    r"\S+\(rev:\w{1,4}\)\s+\S+\s+(?P<bdf>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\s+(?P<name>\w{1,64})(?:\s.*)?",
    re.ASCII,
)


def read(lines: Sequence[str]) -> dict[str, Json]:
    """``stated pci-function NAME`` for every row that names both."""
    rows = [row for line in lines if (row := _ROW.fullmatch(line.strip()))]
    found = {row["name"]: as_bdf(row["bdf"] if row["bdf"].count(":") == 2 else f"0000:{row['bdf']}") for row in rows}
    return {f"{PCI_OF} {name}": bdf for name, bdf in found.items() if bdf is not None}
