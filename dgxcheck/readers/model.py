"""What a reader of another tool's output gives back."""

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
    """One tool's part of a pasted text. The text may hold several tools' outputs, cut, in any order."""

    tool: str
    """With its version where the output says it: ``nvbandwidth v0.8``, ``p2pBandwidthLatencyTest``."""
    facts: Mapping[str, Json]
    """By key, as a recording has them: ``measure KIND A [B]`` with the tool's own decimal indexes as subjects, or
    ``nvml FUNCTION BDF ..`` where it gives bus ids."""
    understood: frozenset[int]
    """Numbers, from 0, of all lines that the reader can account for: data, headings, separators, known chatter."""
