"""What a measurement should give: by the reference machine, else by the path that the data take."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, Status
from dgxcheck.checks.gpu.inventory import expected_by
from dgxcheck.checks.measurement.lookup import P2P, STAGED, device, evidence, joined
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.profiles.model import Number
from dgxcheck.topology.expected import between, to_host


class Due(Record, kw_only=False):
    """A figure to expect, in the unit of the measurement, and how far below it is too low."""

    value: float
    source: str
    warn_below: float
    """Percent."""
    fail_below: float
    """Percent; 0 where it never fails."""


def due(box: Box, row: Measurement) -> Due | None:
    """What to expect of it; None where nothing is known. What is simulated is held to no reference."""
    number = reference(box, row)
    if number is not None and by_reference(box, row):
        warn = box.settings.limit("measure.warn")
        # what goes through the host is the driver's and the host's doing, and changes with both
        fail = 0 if row.kind in STAGED else box.settings.limit("measure.fail")
        return Due(float(number.value), number.source, warn, fail)
    return _derived(box, row)


def reference(box: Box, row: Measurement) -> Number | None:
    """The reference machine's own figure, or that of the GPU's model."""
    if row.kind == "device-copy":
        gpu = device(box, row.a)
        board = box.board(gpu) if gpu is not None else None
        return board.numbers.get("device_copy") if board is not None else None
    key = profile_key(box, row) if box.choice is not None else ""
    return box.choice.number(key) if box.choice is not None and key else None


def profile_key(box: Box, row: Measurement) -> str:
    """The profile's key for such a measurement; empty where it can have none."""
    if row.kind in ("host-to-device", "device-to-host"):
        return f"pcie.{row.kind}" if device(box, row.a) is not None else ""
    if row.kind == "collective":
        return f"nvlink.{row.a.replace('_', '-')}-{row.b}"
    link = joined(box, row.a, row.b)
    if link is None:
        return ""
    if row.kind in P2P:
        area = "nvlink" if link.nvlinks else "pcie"
        return f"{area}.{row.kind}-{link.label.lower()}"
    return f"pcie.{row.kind}-{(link.pci or '?').lower()}" if row.kind in STAGED else ""


def by_reference(box: Box, row: Measurement) -> bool:
    """Is it held to the reference machine, not only to what the path gives?"""
    return row.how != "simulated" and reference(box, row) is not None


def _derived(box: Box, row: Measurement) -> Due | None:
    """From the lanes and links of the path: never more than a warning."""
    one = device(box, row.a)
    if one is None:
        return None
    if row.kind in ("host-to-device", "device-to-host"):
        path = to_host(one, box.topology)
        return _below(box, path.read_gbs if row.kind == "host-to-device" else path.write_gbs, path.source, "pci")
    other, link = device(box, row.b), joined(box, row.a, row.b)
    if row.kind not in P2P or other is None or link is None:
        return None
    path = between(one, other, link, box.topology)
    rate = path.write_gbs
    both = 2 if row.kind == "p2p-both" else 1
    return _below(box, rate if isinstance(rate, Missing) else rate * both, path.source, path.medium)


def _below(box: Box, rate: float | Missing, source: str, medium: str) -> Due | None:
    if isinstance(rate, Missing):
        return None
    warn = box.settings.limit("measure.warn" if medium == "nvlink" else "measure.derived")
    return Due(rate, f"derived from the path: {source}", warn, 0)


def held(box: Box, row: Measurement, what: str) -> Judgement | None:
    """The figure against what is expected; None where nothing is or where there is no figure."""
    limit, value = due(box, row), row.number
    if limit is None or value is None:
        return None
    percent = 100 * value / limit.value
    status = Status.PASS
    if percent < limit.warn_below:
        status = expected_by(box, Status.FAIL) if percent < limit.fail_below else Status.WARN
    origin = "of the path" if not limit.fail_below else "of its model" if row.kind == "device-copy" else _by(box)
    message = f"{what} {amount(value)} {row.unit}, {percent:.0f} % of the {amount(limit.value)} expected {origin}"
    return Judgement(status, message, value, round(limit.value, 3), row.unit, (evidence(row),))


def _by(box: Box) -> str:
    return f"by {box.choice.profile.name}" if box.choice is not None else ""


def amount(value: float) -> str:
    """Four digits."""
    return f"{value:.4g}" if abs(value) < 10000 else f"{value:.0f}"
