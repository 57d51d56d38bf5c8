"""Whose output a text is, where neither a title nor its file's name tells."""

from __future__ import annotations

import re
from collections.abc import Sequence

_LOOKED_AT = 200
_FORMS = (
    ("lspci -t", re.compile(r"-(?:\+-)?\[[0-9a-f]{4}:[0-9a-f]{2}\]-.*"), 1),
    (
        "lspci",
        re.compile(r"(?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] [A-Z][\w /-]{2,60}(?: \[[0-9a-f]{4}\])?: .*"),
        3,
    ),
    ("dmidecode", re.compile(r"# dmidecode \d.*"), 1),
    ("ibstat", re.compile(r"CA '[\w.-]{1,64}'"), 1),
    ("numactl -H", re.compile(r"available: \d+ nodes? \(.*\)"), 1),
    ("lsmod", re.compile(r"Module +Size +Used by"), 1),
    (
        "nvidia-smi",
        re.compile(r"=+NVSMI LOG=+|\| NVIDIA-SMI \d.*|NVIDIA-SMI has failed .*|GPU \d+: .* \(UUID: .*\)"),
        1,
    ),
    ("nvidia-smi topo -m", re.compile(r"[ \t]{1,40}(?:\x1b\[4m)?GPU0\s.{0,2000}"), 1),
    ("dmesg", re.compile(r"(?:<\d{1,5}>)?\[ *\d{1,10}\.\d{6}\] .*"), 3),
)
"""Title, form of a line, and how many lines of it there must be."""


def guessed(lines: Sequence[str]) -> str:
    """The title under which such an output is read; empty where it is not known."""
    first = lines[:_LOOKED_AT]
    return next((title for title, form, least in _FORMS if sum(map(bool, map(form.fullmatch, first))) >= least), "")
