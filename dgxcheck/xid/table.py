"""The tables of Xids and SXids, one row a number.

``from_ampere.tsv``: NVIDIA's catalogue for Ampere and later,
https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html (its release 610, 172 numbers); 173 to 176 by
nverror.h of NVIDIA's open-gpu-kernel-modules, 185 by the release notes of driver 620; of these NVIDIA publishes no
action. ``before_ampere.tsv``: NVIDIA's older list,
https://docs.nvidia.com/deploy/archive/r555/xid-errors/index.html, which names possible causes and no actions, without
the numbers that it marks unused or reserved. ``sxids.tsv``: appendix D of NVIDIA's Fabric Manager guide (DU-09883).
Severity, part and response are dgxcheck's own reading of them. They are read when an Xid is first looked up.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cache
from typing import cast, get_args

from dgxcheck.facts.record import replace
from dgxcheck.package_files import FOLDER, read
from dgxcheck.xid.architecture import AMPERE
from dgxcheck.xid.entry import Fatality, Part, Response, Severity, SXidEntry, XidEntry

_FOLDER = os.path.join(FOLDER, "xid")
_SEVERITIES: tuple[Severity, ...] = get_args(Severity)
UNUSED = "unused"
"""Text of a number that NVIDIA reserves and says no driver logs."""
FIRST_SXID = 10000
"""Numbers of SXids begin here; those of Xids are far below."""


def table_rows(file: str) -> Iterator[list[str]]:
    for line in read(os.path.join(_FOLDER, file)).decode("utf-8").split("\n"):
        if line and not line.startswith("#"):
            yield line.split("\t")


def _xids(file: str, *, actions: bool) -> dict[int, XidEntry]:
    table = {}
    for number, mnemonic, text, severity, response, about, *more in table_rows(file):
        table[int(number)] = XidEntry(
            int(number), mnemonic, text, cast(Severity, severity), cast(Response, response), cast(Part, about),
            action=more[0] if actions else "", investigation=more[1] if actions else "",
            products=tuple(more[2].split()) if actions else (), causes=() if actions else tuple(more[0].split()),
        )  # fmt: skip
    return table


@cache
def from_ampere() -> Mapping[int, XidEntry]:
    """NVIDIA's catalogue for Ampere and later, by number."""
    return _xids("from_ampere.tsv", actions=True)


@cache
def before_ampere() -> Mapping[int, XidEntry]:
    """NVIDIA's older list, by number."""
    return _xids("before_ampere.tsv", actions=False)


@cache
def sxids() -> Mapping[int, SXidEntry]:
    """The SXids of NVIDIA's Fabric Manager guide, by number."""
    return {
        int(number): SXidEntry(
            int(number), text, cast(Fatality, fatality), cast(Severity, severity), cast(Response, response)
        )
        for number, text, fatality, severity, response in table_rows("sxids.tsv")
    }


def is_listed(number: int) -> bool:
    """Does one of NVIDIA's lists have the Xid?"""
    return number in from_ampere() or number in before_ampere()


def meaning(number: int, architecture: int | None) -> XidEntry:
    """What an Xid means on a GPU of this ``nvmlDeviceArchitecture_t``.

    Where the architecture is not known, the worse of its two meanings, with the texts of both.
    """
    before, later = before_ampere().get(number), from_ampere().get(number)
    if before is None or later is None:
        return before or later or XidEntry(number, "", "not in the catalogue", "warn", "report", "")
    if architecture is not None:
        return later if architecture >= AMPERE else before
    if before.text == later.text or later.text == UNUSED:
        return before
    worse = min(later, before, key=lambda entry: _SEVERITIES.index(entry.severity))
    return replace(worse, text=f"{before.text} or {later.text}")
