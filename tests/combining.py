"""Two overlays of one box as one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dgxcheck.facts.missing import Json
from dgxcheck.source.recording.keys import GroupedFacts, flatten, insert

LOG = "kmsg "
LOADING = "Nvlink Core is being initialized"
LATER_S = 10_000
"""What the log says of the second fault comes so much later than what it says of the first."""


def combined(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any] | None:
    """None where they are about the same facts, or where the log has the driver loaded again twice."""
    if any(LOADING in line for line in log(b)):  # else it would make the other's lines those of an earlier time
        a, b = b, a
    if any(LOADING in line for line in log(b)) or {*told(a)} & {*told(b)}:
        return None
    last = max((float(line.partition(";")[0]) for line in log(a)), default=0.0)
    lines = [*log(a), *(moved(line, last + LATER_S) for line in log(b))]
    added = {key: fact for each in (a, b) for key, fact in each["add"].items() if not key.startswith(LOG)}
    later = [*a.get("later", []), *b.get("later", [])]
    moment: GroupedFacts = {}
    for key, fact in (two for each in later for two in flatten(each["facts"]).items()):
        insert(moment, key, fact)
    return {
        **a,
        "facts": a["facts"] | b["facts"],
        "add": {**added, **{f"{LOG}{number}": line for number, line in enumerate(lines, 3)}},
        "drop": a["drop"] + b["drop"],
        **({"later": [{"at_s": max(each["at_s"] for each in later), "facts": moment}]} if later else {}),
    }


def log(overlay: dict[str, Any]) -> list[str]:
    """Lines that an overlay adds to the kernel log."""
    numbers = sorted(int(key.removeprefix(LOG)) for key in overlay["add"] if key.startswith(LOG))
    return [overlay["add"][f"{LOG}{number}"] for number in numbers]


def moved(line: str, seconds: float) -> str:
    at, _, text = line.partition(";")
    return f"{float(at) + seconds:.6f};{text}"


def told(overlay: dict[str, Any]) -> Iterator[str]:
    """Keys of facts, and what is dropped."""
    facts: dict[str, Json] = {**overlay["facts"], **overlay["add"]}
    yield from (key for key in facts if not key.startswith(LOG))
    yield from overlay["drop"]
    for each in overlay.get("later", []):
        yield from (f"later {key}" for key in flatten(each["facts"]))
