"""What checks measured, as quantities with names of their own that stay: for metrics and performance data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from dgxcheck.checks.engine.finding import Finding, Judgement, Status
from dgxcheck.facts.missing import is_number
from dgxcheck.facts.record import Record
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


GIGA = 1e9


class Metric(Record, kw_only=False):
    """How the number of a check is called outside, in base units: by Prometheus and by Nagios."""

    metric: str
    """Without ``dgxcheck_``; one that ends in ``_total`` is a counter."""
    text: str
    """Its HELP."""
    label: str
    """Of performance data, behind the subject's name."""
    limits: RangesOf = _never
    unit: str = ""
    """Of the check, where it is no base unit; a number in another unit is not of this quantity."""
    scale: float = 1
    """Base units in one of the check's."""


QUANTITIES = {
    "driver.responsive": Metric("driver_unanswered_questions", "Questions that the driver did not answer in this"
                                  " run.", "unanswered", _any),
    "thermal.temperature": Metric("gpu_temperature_celsius", "Temperature of the GPU.", "temperature", _temperature),
    "power.limit": Metric("gpu_power_limit_watts", "Enforced power limit.", "power_limit", _below_expected),
    "pcie.width": Metric("gpu_pcie_link_width_lanes", "Lanes that the GPU's own PCIe link runs on.", "link_width",
                           _as_found),
    "ecc.volatile": Metric("gpu_ecc_volatile_uncorrected_errors_total", "Uncorrected memory errors since the driver"
                             " was loaded.", "ecc_volatile", _any),
    "ecc.aggregate": Metric("gpu_ecc_aggregate_uncorrected_errors_total", "Uncorrected memory errors in the GPU's"
                              " life.", "ecc_aggregate"),
    "ecc.retired-pages": Metric("gpu_retired_pages", "Memory pages that were retired for errors.", "retired_pages",
                                  _pages),
    "measure.host-bandwidth": Metric("gpu_host_copy_bytes_per_second", "Pinned copies between host and GPU, the worse"
                                       " direction.", "host_copy", unit="GB/s", scale=GIGA),
    "measure.memory-bandwidth": Metric("gpu_memory_copy_bytes_per_second", "Copies within the GPU's memory, both read"
                                         " and write.", "memory_copy", unit="GB/s", scale=GIGA),
    "measure.memory-integrity": Metric("gpu_memory_wrong_words", "Words of patterns in the GPU's memory that read"
                                         " back otherwise.", "memory_wrong", _any, unit="words"),
    "measure.p2p-integrity": Metric("gpu_p2p_wrong_words", "Words that arrived wrong between two GPUs.", "p2p_wrong",
                                      _any, unit="words"),
    "measure.p2p-bandwidth": Metric("gpu_p2p_bytes_per_second", "Copies between two GPUs, the worse direction.",
                                      "p2p", unit="GB/s", scale=GIGA),
    "measure.p2p-latency": Metric("gpu_p2p_latency_seconds", "A small copy between two GPUs with peer access on.",
                                    "p2p_latency", unit="us", scale=1e-6),
    "measure.collective": Metric("collective_bytes_per_second", "Bus bandwidth of all GPUs together.", "collective",
                                   unit="GB/s", scale=GIGA),
    "measure.compute": Metric("gpu_compute_flops", "Multiplications and additions a second.", "compute",
                                unit="TFLOP/s", scale=1e12),
}  # fmt: skip
"""By the id of the check; a check that measures something that can be followed over time gets a line here."""


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
