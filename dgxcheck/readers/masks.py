"""Masks of CPUs and NUMA nodes: words of 32 bits in hexadecimal, the highest first."""

from __future__ import annotations

import re

_MASK = re.compile(r"(?:0x)?[0-9a-f]{1,8}(?:,(?:0x)?[0-9a-f]{0,8}){0,255}", re.ASCII | re.IGNORECASE)


def bits(mask: str) -> list[range] | None:
    """The runs of bits that are set; None for what is no mask. hwloc leaves words empty that are 0."""
    if not _MASK.fullmatch(mask):
        return None
    words = [word.lower().removeprefix("0x") for word in mask.split(",")]
    whole = sum(int(word or "0", 16) << 32 * place for place, word in enumerate(reversed(words)))
    runs: list[range] = []
    for bit in range(whole.bit_length()):
        if whole >> bit & 1:
            if runs and runs[-1].stop == bit:
                runs[-1] = range(runs[-1].start, bit + 1)
            else:
                runs.append(range(bit, bit + 1))
    return runs
