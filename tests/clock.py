"""Time in tests: what must end is distinguished from what hangs, and from nothing finer."""

from __future__ import annotations

SPARE = 10.0
"""Seconds that a busy test machine may take on top of what a command needs; a wait without a bound lasts for ever."""
