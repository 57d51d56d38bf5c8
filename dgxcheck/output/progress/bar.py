"""Parts of every progress: a bar, a time, the host."""

from __future__ import annotations

from collections.abc import Iterable

from dgxcheck.assessment.progress import HostNow

_WIDE = 20
_GIB = 1 << 30


def bar(share: float) -> str:
    """``[#####---------------]``"""
    full = round(_WIDE * min(1.0, max(0.0, share)))
    return f"[{'#' * full}{'-' * (_WIDE - full)}]"


def clock(seconds: float) -> str:
    """``1:29:05``, ``4:07``"""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def host_line(now: HostNow | None) -> list[str]:
    """How busy the host is; empty before the first look."""
    if now is None:
        return []
    memory = f"{now.memory_available / _GIB:.1f} of {now.memory_total / _GIB:.1f} GiB memory available"
    return [f"host  CPUs {now.cpu_percent:.0f} % busy, load average {now.load:.1f}, {memory}"]


def fitted(lines: Iterable[str], width: int) -> list[str]:
    """Lines cut to the width of the terminal."""
    return [line if len(line) <= width else f"{line[: max(0, width - 1)]}…" for line in lines]
