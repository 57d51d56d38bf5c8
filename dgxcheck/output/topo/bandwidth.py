"""Expected bandwidths as text and JSON."""

from __future__ import annotations

from math import isinf

from dgxcheck.bandwidth.expected import Expected
from dgxcheck.bandwidth.rate import Direction, Limit, Rate
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.output.json_null import either
from dgxcheck.output.plain_text import visible

_WAYS: tuple[Direction, ...] = ("read", "write")


def text(expected: Expected) -> list[str]:
    """The figure of each direction, the parts that limit it, the unknown parts, sources and notes."""
    totals = (expected.read, expected.write)
    if all(isinstance(total.rate.most, Missing) for total in totals):
        gap = expected.read.rate.most
        where = f"{gap.where}: " if isinstance(gap, Missing) else ""
        return [f"Expected bandwidth unknown: {visible(f'{where}{gap}')}", *_notes(expected)]
    rates = [f"{total.rate} {way}" for total, way in zip(totals, _WAYS, strict=True)]
    lines = [f"Expected {', '.join(rates)}, one direction at a time"]
    limits = dict.fromkeys(limit for total in totals for limit in total.limited_by)
    for basis in dict.fromkeys(limit.basis for limit in limits):
        names = ", ".join(limit.name for limit in limits if limit.basis == basis)
        lines.append(f"  limited by {visible(names)}{f': {visible(basis)}' if basis else ''}")
    gaps = dict.fromkeys((limit.name, way, str(limit.rate(way).least)) for total, way in zip(totals, _WAYS, strict=True)
                         for limit in total.unknown)  # fmt: skip
    lines += [f"  unknown for a {way}: {visible(name)}, {visible(why)}" for name, way, why in gaps]
    lines += [f"  {visible(source)}" for source in dict.fromkeys(limit.source for limit in expected.limits) if source]
    return [*lines, *_notes(expected)]


def _notes(expected: Expected) -> list[str]:
    return [f"  {visible(note)}" for note in expected.notes]


def as_json(expected: Expected) -> dict[str, Json]:
    """The members of the document: figures, bounds, and every part of the path."""
    members = either("line_gb_per_second", expected.line_gbs)
    for way, total in zip(_WAYS, (expected.read, expected.write), strict=True):
        members |= bounds(total.rate, f"{way}_")
        members[f"{way}_limited_by"] = [limit.name for limit in total.limited_by]
    return members | {"limits": [_limit(limit) for limit in expected.limits], "notes": list(expected.notes)}


def bounds(rate: Rate, prefix: str = "") -> dict[str, Json]:
    """``expected``, which is null unless the figure is known, with ``at_least`` and ``at_most``."""
    figure = rate.most if rate.is_known else rate.least if isinstance(rate.least, Missing) else _BETWEEN
    named = {"expected": figure, "at_least": rate.least, "at_most": rate.most}
    members: dict[str, Json] = {}
    for word, value in named.items():
        unlimited = isinstance(value, float) and isinf(value)
        members |= either(f"{word}_{prefix}gb_per_second", _UNLIMITED if unlimited else value)
    return members


_BETWEEN = Missing(Gap.UNSUPPORTED, "bandwidth", "known between two bounds")
_UNLIMITED = Missing(Gap.UNSUPPORTED, "bandwidth", "carries what the other parts of the path do")


def _limit(limit: Limit) -> Json:
    members: dict[str, Json] = {"name": limit.name, "basis": limit.basis, "source": limit.source}
    return members | bounds(limit.read, "read_") | bounds(limit.write, "write_")
