"""The result of a reader of another tool's output."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Reader: TypeAlias = "Callable[[tuple[str, ...]], tuple[Imported, ...]]"
else:
    Reader = object


class Imported(Record):
    """One tool's part of a text, which may contain outputs of several tools, truncated, in any order."""

    tool: str
    """With its version if the output has it: ``nvbandwidth v0.8``, ``p2pBandwidthLatencyTest``."""
    facts: Mapping[str, Json]
    """By key, as in a recording: ``measure KIND A [B]`` with the tool's own decimal indexes as subjects, or
    ``nvml FUNCTION BDF ..`` where the output has bus ids."""
    understood: frozenset[int]
    """Line numbers, from 0, of all lines that the reader recognises: data, headings, separators, status messages."""
    host: str = ""
    """Whose lines they are, where an output that several hosts write into names the writer."""
