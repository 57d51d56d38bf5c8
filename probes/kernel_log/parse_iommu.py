"""Accesses to memory that an IOMMU refused (Linux drivers/iommu/amd/iommu.c, intel/dmar.c)."""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import PATTERN, as_bdf, is_bdf

_SHORT = r"(?P<at>(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])"
_REFUSED = (
    re.compile(rf"[^ :]{{1,64}} (?P<bdf>{PATTERN}): AMD-Vi: Event logged \[IO_PAGE_FAULT "),
    re.compile(rf"AMD-Vi: Event logged \[IO_PAGE_FAULT device={_SHORT} "),
    re.compile(rf"DMAR: \[DMA (?:Read|Write)[A-Z_ ]{{0,20}}\] Request device \[{_SHORT}\] "),
)


def refused(message: str) -> str | None:
    """``nvidia 0000:07:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT ..]``: whose access it was."""
    match = next((match for form in _REFUSED if (match := form.match(message))), None)
    if match is None:
        return None
    parts = match.groupdict()
    if "bdf" in parts:
        return parts["bdf"] if is_bdf(parts["bdf"]) else None
    return as_bdf(parts["at"] if parts["at"].count(":") > 1 else f"0000:{parts['at']}")
