"""The type that IOMMU groups have by default, as the kernel logs it at boot."""

from __future__ import annotations

import re
from collections.abc import Iterable

DOMAIN = "stated iommu-domain"
"""Key of that type."""
_DOMAIN = re.compile(r"\] iommu: Default domain type: (Translated|Passthrough)\b")
_TYPES = {"Translated": "DMA", "Passthrough": "identity"}


def default_domain(lines: Iterable[str]) -> str:
    """``DMA`` or ``identity``; empty where the log does not tell."""
    words = {match[1] for line in lines if (match := _DOMAIN.search(line))}
    return _TYPES[words.pop()] if len(words) == 1 else ""
