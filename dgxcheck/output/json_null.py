"""Members of JSON documents: a value, or null and the reason beside it."""

from __future__ import annotations

from dgxcheck.facts.missing import Json, Missing
from dgxcheck.facts.record import fields
from dgxcheck.source.protocol import Origin


def either(key: str, value: object) -> dict[str, Json]:
    """``{key: value}``, or ``{key: null, key_reason: why}`` for a gap."""
    if isinstance(value, Missing):
        return {key: None, f"{key}_reason": value.reason}
    return {key: value if isinstance(value, bool | int | float | str) else None}


def source(origin: Origin) -> Json:
    """The member ``source``: where the facts come from, without empty members."""
    return {key: value for key in fields(origin) if (value := getattr(origin, key))}
