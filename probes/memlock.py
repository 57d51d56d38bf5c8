"""How much memory the process that asks may lock."""

from __future__ import annotations

from dgxcheck.facts.memlock import Memlock
from dgxcheck.reading import Gap, Missing
from dgxcheck.source.protocol import Source
from probes.asking import ask
from probes.plain_text import garbled, is_decimal

_LIMITS = "/proc/self/limits"
_LABEL = "Max locked memory "


def probe(source: Source) -> Memlock | Missing:
    """``/proc/self/limits``."""
    return ask(source, _LIMITS, max_locked_memory)


def max_locked_memory(text: str, where: str) -> Memlock | Missing:
    """``Max locked memory         8388608              unlimited            bytes``."""
    line = next((line for line in text.splitlines() if line.startswith(_LABEL)), None)
    if line is None:
        return Missing(Gap.GARBLED, where, "no line of locked memory")
    words = line[len(_LABEL) :].split()
    if len(words) != 3 or words[2] != "bytes":
        return garbled(line, where)
    return Memlock(soft=_bytes(words[0], where), hard=_bytes(words[1], where))


def _bytes(word: str, where: str) -> int | Missing | None:
    if word == "unlimited":
        return None
    return int(word) if is_decimal(word) else garbled(word, where)
