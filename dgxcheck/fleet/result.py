"""One machine's result, as ``health --format jsonl`` or ``--format json`` printed it."""

from __future__ import annotations

from typing import Literal

from dgxcheck.facts.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

Level = Literal["quick", "default", "extended"]
LEVELS: tuple[Level, ...] = ("quick", "default", "extended")
"""Each runs all checks of the one before."""
Verdict = Literal["pass", "warn", "unknown", "fail"]
VERDICTS: tuple[Verdict, ...] = ("fail", "unknown", "warn", "pass")
"""The worst first."""
COMPARED = ("GB/s", "Gb/s", "us", "TFLOP/s", "W", "MHz", "MiB")
"""Units of what machines alike have alike; temperatures depend on the load, and counters on the age."""


class Fault(Record, kw_only=False):
    """A finding that did not pass, and that the site has not acknowledged."""

    key: str
    check: str
    status: Verdict
    word: str
    """The fault; empty for what could not be read."""
    message: str
    subject: str
    action: str
    figure: str = ""
    """``x8 of x16``; empty for a fault without a figure."""
    cause: str = ""
    """Id of the component that is to blame; empty where none is."""
    step: str = ""
    """The first step that can help, of the catalogue of actions."""


class Group(Record, kw_only=False):
    """What machines have to have in common before their figures are compared."""

    profile: str
    """Empty without a reference machine."""
    gpus: str
    """``8 x Tesla V100-SXM2-16GB``."""
    driver: str


class Result(Record):
    """What is kept of one result; figures are kept apart, by key."""

    node: str
    generated_at: str
    """UTC, ``2026-11-20T12:00:00Z``: sorts as text."""
    level: Level
    verdict: Verdict
    score: float | None
    group: Group
    versions: Mapping[str, tuple[str, ...]]
    nvlink_domains: tuple[str, ...]
    """``CLUSTER_UUID.CLIQUE`` of domains that join several machines."""
    faults: tuple[Fault, ...]
    passed: frozenset[str]
    """Keys of the findings that passed: one object for all machines that pass the same."""
    skipped: frozenset[str]
    """Ids of the checks that did not judge every subject."""
