"""What checks measured, as quantities with names of their own that stay: for metrics and performance data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

from dgxcheck.checks.engine.finding import Finding, Judgement, Status
from dgxcheck.facts.missing import is_number
from dgxcheck.facts.record import Record
from dgxcheck.package_files import table
from dgxcheck.settings import Settings

Ranges = tuple[str, str]
"""When Nagios warns and when it is critical, in its range syntax; empty for never."""
RangesOf = Callable[[Judgement, Settings], Ranges]


def _never(_judgement: Judgement, _settings: Settings) -> Ranges:
    return "", ""


def _below_expected(judgement: Judgement, _settings: Settings) -> Ranges:
    expected = number(judgement.expected)
    return ("" if expected is None else f"{plain(expected)}:"), ""


def _as_found(judgement: Judgement, settings: Settings) -> Ranges:
    """As severe below what is expected as it was found to be."""
    low, _ = _below_expected(judgement, settings)
    return ("", low) if judgement.status is Status.FAIL else (low, "")


def _any(_judgement: Judgement, _settings: Settings) -> Ranges:
    return "", "0"


def _temperature(judgement: Judgement, settings: Settings) -> Ranges:
    """``expected`` is the slowdown temperature, in whole degrees."""
    slowdown = number(judgement.expected)
    if slowdown is None:
        return "", ""
    return f"~:{plain(slowdown - settings.limit('thermal.margin'))}", f"~:{plain(slowdown - 1)}"


def _pages(_judgement: Judgement, settings: Settings) -> Ranges:
    return plain(settings.limit("ecc.retired-pages-warn")), plain(settings.limit("ecc.retired-pages-fail") - 1)


_LIMITS: Mapping[str, RangesOf] = {
    "": _never, "any": _any, "below-expected": _below_expected, "as-found": _as_found, "temperature": _temperature,
    "pages": _pages,
}  # fmt: skip


class Metric(Record, kw_only=False):
    """How the number of a check is called outside, in base units: by Prometheus and by Nagios."""

    metric: str
    """Without ``dgxcheck_``."""
    label: str
    """Of performance data, behind the subject's name."""
    limits: RangesOf
    unit: str
    """Of the check; empty where it is a base unit. A number in another unit is not of this quantity."""
    scale: float
    """Base units in one of the check's."""


QUANTITIES = {
    row["check"]: Metric(row["metric"], row["label"], _LIMITS[row["limits"]], row["unit"], float(row["scale"]))
    for row in table("output/health/for_programs/quantities.tsv")
}
"""By the id of the check; a check that measures something that can be followed over time gets a row there."""


def measurements(findings: Iterable[Finding]) -> Iterator[tuple[Metric, Finding, int | float]]:
    """Every finding whose check measured a quantity, with the number."""
    for finding in findings:
        quantity, value = QUANTITIES.get(finding.id), number(finding.judgement.measured)
        if quantity is not None and value is not None and quantity.unit in ("", finding.judgement.unit):
            yield quantity, finding, value


def ranges(quantity: Metric, finding: Finding, settings: Settings) -> Ranges:
    """When this finding warns and fails, as severe as the site has it."""
    warn, critical = quantity.limits(finding.judgement, settings)
    severity = settings.severities.get(finding.id)
    if severity is None:
        return warn, critical
    return (warn or critical, "") if severity == "warn" else ("", warn or critical)


def number(value: object) -> int | float | None:
    """A number as such; True and False are none, nor is what no scale has."""
    return value if is_number(value) and (isinstance(value, int) or math.isfinite(value)) else None


def plain(value: int | float) -> str:
    """Digits alone: no exponent, however large a counter is."""
    return str(int(value)) if value == int(value) else f"{value:.6f}".rstrip("0")
