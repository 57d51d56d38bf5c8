"""Lines that limit locked memory, in files of ``pam_limits`` and of systemd."""

from __future__ import annotations

import re

from dgxcheck.lazy_pattern import LazyPattern
from probes.parse_scalar import is_decimal

Limits = tuple["int | None", ...]
_UNLIMITED = ("unlimited", "infinity", "-1")
_TYPES = ("soft", "hard", "-")
_KIB = 1024
_UNIT = LazyPattern(
    r"(?:Default)?LimitMEMLOCK\s*=\s*(?P<value>[^\s:]+)(?::(?P<hard>\S+))?\s*", "LimitMEMLOCK", flags=re.ASCII
)
_SIZES = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = LazyPattern(r"(\d{1,18})([BKMGT]?)", flags=re.ASCII)


def of_pam(line: str) -> Limits | None:
    """``* hard memlock 64`` in KiB (limits.conf(5)); None for what sets no memlock."""
    words = line.partition("#")[0].split()
    if len(words) != 4 or words[1] not in _TYPES or words[2] != "memlock":
        return None
    if words[3] in _UNLIMITED:
        return (None,)
    return (int(words[3]) * _KIB,) if is_decimal(words[3]) else None


def of_systemd(line: str) -> Limits | None:
    """``LimitMEMLOCK=8M``, ``DefaultLimitMEMLOCK=64K:infinity`` (systemd.exec(5)); None for what sets no memlock."""
    match = _UNIT.fullmatch(line.strip())
    found = [] if match is None else [_size(match[part]) for part in ("value", "hard") if match[part]]
    return tuple(None if size < 0 else size for size in found if size is not None) or None


def _size(word: str) -> int | None:
    """Bytes, -1 for unlimited; None for what is no size."""
    if word in _UNLIMITED:
        return -1
    match = _SIZE.fullmatch(word)
    return int(match[1]) * _SIZES[match[2]] if match else None
