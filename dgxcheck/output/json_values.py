"""Values of JSON documents: a fact or its reason, the origin, and the text of the document."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from functools import cache
from typing import Any

from dgxcheck import __version__
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.facts.record import Record, fields
from dgxcheck.source.protocol import Origin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgxcheck.facts.inventory import Part


def either(key: str, value: object) -> dict[str, Json]:
    """``{key: value}``, or ``{key: null, key_reason: why}`` for a gap."""
    if isinstance(value, Missing):
        return {key: None, f"{key}_reason": value.reason}
    return {key: value if isinstance(value, bool | int | float | str) else None}


def members(record: Record, names: str) -> dict[str, Json]:
    """Fields of a record under their own names, or another before ``=``: ``fault=fault.word``, null without a fault;
    one that may be empty, and is null then, has ``?`` behind its name. A gap is null with its reason.
    """
    found: dict[str, Json] = {}
    for name, steps, may_be_empty in _parsed(names):
        value: Any = record
        for step in steps:
            value = None if value is None else getattr(value, step)
        if isinstance(value, Missing):
            found |= either(name, value)
        else:
            found[name] = None if may_be_empty and not value else [*value] if isinstance(value, tuple) else value
    return found


@cache
def _parsed(names: str) -> tuple[tuple[str, tuple[str, ...], bool], ...]:
    """Of each: its name, the fields that lead to it, and whether it may be empty."""
    words = ((word.rstrip("?").partition("="), word.endswith("?")) for word in names.split())
    return tuple((name, tuple((path or name).split(".")), may_be_empty) for (name, _, path), may_be_empty in words)


def head(schema: str, dated: bool = True) -> dict[str, Json]:
    """How a document begins."""
    opening: dict[str, Json] = {"schema": schema, "tool_version": __version__}
    return opening | ({"generated_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())} if dated else {})


def source(origin: Origin) -> Json:
    """The member ``source``: where the facts come from, without empty members."""
    return {key: value for key in fields(origin) if (value := getattr(origin, key))}


def part(part: Part) -> Json:
    """A member of ``parts``; gauges of 0 are left out, for most counters of a fleet are 0 for years."""
    gauges: dict[str, Json] = {name: [*values] for name, values in part.gauges.items() if values[0]}
    return {**members(part, "kind serial at model"), "gauges": gauges}


def compact(document: Mapping[str, Json]) -> str:
    """One line. ``indent`` would leave json's encoder in C for the one in Python, ten times slower."""
    return json.dumps(document) + "\n"


def indented(text: str) -> str:
    """The same document with a member on each line."""
    return json.dumps(json.loads(text), indent=1) + "\n"
