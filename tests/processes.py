"""Processes of the system that a test started by way of others."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path


def is_there(pid: int) -> bool:
    """Does a process still run? One that ended, and that nobody has waited for, does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def end_within(seconds: float, pids: Collection[int]) -> bool:
    """Have all ended by then?"""
    until = time.monotonic() + seconds
    while any(map(is_there, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    return not any(map(is_there, pids))
