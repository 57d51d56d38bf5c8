"""``mst status -v``: the PCI function of each adapter's RDMA device."""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.missing import Json
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bounded

TOOL = "mst"
PCI_OF = "stated pci-function"
_ROW = re.compile(
    r"\S{1,80}\(rev:\w{1,4}\)\s+\S{1,80}\s+(?P<bdf>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
    r"\s+(?P<name>\w{1,64})(?:\s.*)?",
    re.ASCII,
)
_HEAD = re.compile(r"(?:MST modules|PCI devices):|-{4,40}|MST PCI(?: configuration)? module (?:is not )?loaded"
                   r"|DEVICE_TYPE\s+MST\s+PCI\s.*", re.ASCII)  # fmt: skip


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """``stated pci-function NAME`` for every row that names both."""
    facts: dict[str, Json] = {}
    understood: set[int] = set()
    chatter: set[int] = set()
    for number, raw in enumerate(bounded(lines)):
        line = raw.strip()
        if row := _ROW.fullmatch(line):
            bdf = as_bdf(row["bdf"] if row["bdf"].count(":") == 2 else f"0000:{row['bdf']}")
            facts |= {f"{PCI_OF} {row['name']}": bdf} if bdf is not None else {}
            understood.add(number)
        elif _HEAD.fullmatch(line):
            chatter.add(number)
    return (Imported(tool=TOOL, facts=facts, understood=frozenset(understood | chatter)),) if facts else ()
