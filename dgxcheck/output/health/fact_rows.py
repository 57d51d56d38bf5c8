"""``--explain FACT``: what the row of a fact says, and the values that this box has of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import first_of
from dgxcheck.difference.facts import device_name
from dgxcheck.facts.catalogue import names
from dgxcheck.facts.nature import Fact
from dgxcheck.facts.values import held, is_inside, label, leaves, text
from dgxcheck.output.plain_text import at_most, lines, visible, wording
from dgxcheck.settings import Settings
from dgxcheck.survey import NO_DEVICES

_JUDGED: Mapping[str, str] = wording("nature")
_REASONS = wording("fact row")
_MOST = 24


def explained(rows: Collection[Fact], assessment: Assessment, settings: Settings) -> str:
    """A paragraph per fact, then its values with the devices that have them."""
    text_lines: list[str] = []
    for row in rows:
        text_lines.append(f"{label((row,))} ({names(row)[1]}): {row.nature}")
        text_lines += [*(f"  {line}" for line in _of_row(row, settings)), ""]
    values = [*_values(rows, assessment)]
    shown = (f"  {line}" for line in at_most(values, _MOST, "and {} more values"))
    return lines([*text_lines, "On this box:" if values else "On this box: no such fact", *shown])


def _of_row(row: Fact, settings: Settings) -> Iterator[str]:
    yield f"Judged: {_JUDGED.get(row.nature, row.nature)}"
    if "good" in row.more:
        yield f"Good: {', '.join(text((row,), value) for value in row.more['good'])}"
    if "limit" in row.more:
        limit = row.more["limit"]
        number = f"{settings.limit(limit):g} ({limit})" if isinstance(limit, str) else f"{limit:g}"
        yield f"Allowed: {number} {'a' if row.more.get('per') == 'day' else 'an'} {row.more.get('per', 'hour')}"
    if "low" in row.more:
        yield f"Possible: {text((row,), row.more['low'])} to {text((row,), row.more['high'])}"
    yield from (f"{words}: {value}" for name, words in _REASONS.items() if (value := row.more.get(name)))


def _is_own(row: Fact) -> bool:
    return row.nature != "holder" or is_inside(row)


def _values(rows: Collection[Fact], assessment: Assessment) -> Iterator[str]:
    """Equal values in one line; what could not be read has its reason among the findings."""
    devices: dict[str, list[str]] = {}
    for field in type(assessment.snapshot).__slots__:
        if field not in NO_DEVICES:
            for keys, record in held(getattr(assessment.snapshot, field)):
                for _, of, value in leaves(record, _is_own):
                    if of[-1] in rows:
                        shown = f"{label(of)} {text(of, value)}"
                        devices.setdefault(shown, []).append(device_name(assessment.topology, keys))
    yield from (visible(f"{shown}: {first_of([*dict.fromkeys(names)], 8)}") for shown, names in devices.items())
