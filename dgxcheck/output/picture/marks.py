"""Marks in a picture, and the words for what it draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.output.plain_text import shown, visible
from dgxcheck.topology.paths import Hop

MarkTone = Literal["fail", "warn", "way", "better"]
"""``way`` is what was asked about, not trouble."""
_WORST: tuple[MarkTone, ...] = ("fail", "warn", "better", "way")
At = tuple[Literal["box", "ghost", "link", "pair", "node", "between", "nvswitches", "host"], str, str]
"""A bus id or name of a device, switch or host bridge; a missing device by what is above it; a link by its lower end;
two GPUs; a NUMA node; what joins two of them; NVSwitches; the host, for what no part of the picture shows."""


class Mark(Record):
    """One thing that is said of parts of the picture."""

    number: int
    """0 for the way that was asked about."""
    tone: MarkTone
    sign: str
    """``FAIL``, ``WORSE``: how bad it is, in a word; empty for what is not."""
    tag: str
    """A word or two, for the box itself."""
    words: str
    """A sentence, below the picture."""
    at: tuple[At, ...]
    down: int = 0
    """Of a pair: NVLinks that should be up and are not."""


def box(name: str) -> At:
    return "box", name, ""


def ghost(above: str, what: str, number: int) -> At:
    """A missing GPU, HCA or PCIe switch below a switch or root bus; it is drawn where it was."""
    return "ghost", above, f"{what} {number}"


def link(lower: str) -> At:
    return "link", lower, ""


def pair(a: str, b: str) -> At:
    one, other = sorted((a, b))
    return "pair", one, other


def node(number: int) -> At:
    return "node", str(number), ""


def between(a: int, b: int) -> At:
    """What joins two NUMA nodes."""
    return "between", str(min(a, b)), str(max(a, b))


def ghosts(marks: Sequence[Mark]) -> list[At]:
    """What is missing, each once."""
    return [*dict.fromkeys(at for mark in marks for at in mark.at if at[0] == "ghost")]


NVSWITCHES: At = ("nvswitches", "", "")
HOST: At = ("host", "", "")


def of_host(marks: Sequence[Mark]) -> str:
    """``host: 1 memory, 2 governor``; empty where nothing is marked at the host."""
    at_host = ", ".join(f"{mark.number} {mark.tag}" for mark in numbered(marks, HOST))
    return f"host: {visible(at_host)}" if at_host else ""


def numbered(marks: Sequence[Mark], at: At) -> list[Mark]:
    """Those that stand at one place, in their order."""
    return [mark for mark in marks if at in mark.at]


def with_numbers(marks: Sequence[Mark], text: str) -> str:
    """``1,2: PCIe switch``; the text alone where nothing numbered is marked."""
    return ": ".join(filter(None, (",".join(str(mark.number) for mark in marks if mark.number), text)))


def worst(marks: Sequence[Mark]) -> MarkTone | None:
    """The tone of the worst; None without any."""
    return min((mark.tone for mark in marks), key=_WORST.index, default=None)


def link_lines(hop: Hop | None) -> list[str]:
    """``gen3 x16``, and below it what both ends support where it is trained lower."""
    if hop is None or hop.skip_reason:
        return []
    if isinstance(hop.gen, Missing) and isinstance(hop.width, Missing):
        return ["link ?"]
    now = f"gen{shown(hop.gen)} x{shown(hop.width)}"
    below = [f"x{hop.max_width}"] if hop.narrow is True else []
    below = [*([f"gen{hop.max_gen}"] if hop.slow is True else []), *below]
    return [now, f"of {' '.join(below)}"] if below else [now]
