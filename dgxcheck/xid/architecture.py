"""GPU architectures by the names of their boards."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dgxcheck.facts.missing import BadInput
from dgxcheck.suggestion import did_you_mean

AMPERE = 7
"""``nvmlDeviceArchitecture_t``"""
NAMES: Mapping[str, int] = {
    "kepler": 2, "maxwell": 3, "pascal": 4, "volta": 5, "turing": 6, "ampere": 7, "ada": 8, "hopper": 9,
    "blackwell": 10,
}  # fmt: skip
"""``nvmlDeviceArchitecture_t`` by name."""
BOARDS: Mapping[str, str] = {
    "k40": "kepler", "k80": "kepler", "m40": "maxwell", "m60": "maxwell", "p4": "pascal", "p40": "pascal",
    "p100": "pascal", "v100": "volta", "v100s": "volta", "t4": "turing", "a2": "ampere", "a10": "ampere",
    "a16": "ampere", "a30": "ampere", "a40": "ampere", "a100": "ampere", "a800": "ampere", "l4": "ada", "l40": "ada",
    "l40s": "ada", "h20": "hopper", "h100": "hopper", "h200": "hopper", "h800": "hopper", "gh200": "hopper",
    "b100": "blackwell", "b200": "blackwell", "b300": "blackwell", "gb200": "blackwell", "gb300": "blackwell",
}  # fmt: skip


def architecture_of(name: str) -> tuple[str, int]:
    """Name and ``nvmlDeviceArchitecture_t`` of a board or architecture: ``v100``, ``hopper``.

    Product names (``NVIDIA A100-SXM4-80GB``) are searched for a board. Raises BadInput for a name that is neither.
    """
    for word in re.split(r"[^a-z0-9]+", name.lower()):
        known = BOARDS.get(word, word)
        if known in NAMES:
            return known, NAMES[known]
    hint = did_you_mean(name.lower(), (*BOARDS, *NAMES), f"give a board or architecture: {', '.join(NAMES)}")
    raise BadInput(f"--gpu {name}: unknown GPU; {hint}")
