"""What a measurement should give: by the reference machine, else by the path that the data takes."""

from __future__ import annotations

from dgxcheck.bandwidth.expected import Expected, between, to_host
from dgxcheck.bandwidth.links import LineRate, as_supported
from dgxcheck.bandwidth.rate import Direction
from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.finding import Judgement, Status
from dgxcheck.checks.measurement.lookup import P2P, STAGED, device, evidence, label, link_between
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import items_of, need, or_none, text_of
from dgxcheck.facts.record import Record
from dgxcheck.profiles.model import Number
from dgxcheck.topology.model import Link


class ExpectedFigure(Record, kw_only=False):
    """A figure to expect, in the unit of the measurement, and how far below it is too low."""

    value: float
    source: str
    origin: str
    """For people: ``dgx-1-v100``, ``GPU model``, ``PCIe path``."""
    warn_below: float
    """Percent of ``value``."""
    fail_below: float
    """Percent of ``value``; 0 where it never fails."""
    far_below: float
    """Percent of ``value`` below which it fails even where only the GPUs of the machine are known."""


def far_below(box: Box, row: Measurement) -> float:
    """Percent of a figure below which no sound board or link stays, whatever the machine; 0 where that is not known.

    A guest has slices of GPUs and paths that its hypervisor made up.
    """
    return 0 if guest(box) is not None or row.how == "simulated" else box.settings.limit("measure.far")


def expected_figure(box: Box, row: Measurement) -> ExpectedFigure | None:
    """None where nothing is known. A simulated figure is not held to the reference machine."""
    number = reference(box, row)
    if number is None or not has_reference(box, row):
        return derived(box, row)
    origin = "GPU model" if row.kind == "device-copy" or box.choice is None else box.choice.profile.name
    # copies through the host depend on driver and host, and change with both
    fail = 0 if row.kind in STAGED else box.settings.limit("measure.fail")
    warn = box.settings.limit("measure.warn")
    if number.floor is not None:
        warn = max(warn, 100 * number.floor / number.value)
    far = far_below(box, row) if fail else 0
    return ExpectedFigure(float(number.value), number.source, origin, warn, fail, far)


def reference(box: Box, row: Measurement) -> Number | None:
    """The reference machine's own figure, or that of the GPU's model."""
    if row.kind == "device-copy":
        gpu = device(box, row.a)
        return None if gpu is None else box.board_number(gpu, "device_copy")
    return None if box.choice is None else box.choice.number(profile_key(box, row))


def profile_key(box: Box, row: Measurement) -> str:
    """The profile's key for such a measurement; empty where it can have none, as of a GPU that it does not count."""
    if row.kind in ("host-to-device", "device-to-host"):
        return f"pcie.{row.kind}" if device(box, row.a) in box.reference_gpus else ""
    if row.kind == "collective":
        link = pair_link(box, row)
        if link is not None and not link.nvlinks:
            return f"pcie.{row.a.replace('_', '-')}-2-{(link.pci or '?').lower()}"
        return f"nvlink.{row.a.replace('_', '-')}-{row.b}"
    link = link_between(box, row.a, row.b)
    if link is None or not {row.a, row.b} <= {gpu.bdf for gpu in box.reference_gpus}:
        return ""
    if row.kind in P2P:
        of = f"NV{links}" if link.nvlinks is None and (links := _by_switches(box)) else link.label
        return f"{'nvlink' if of.startswith('NV') else 'pcie'}.{row.kind}-{of.lower()}"
    return f"pcie.{row.kind}-{(link.pci or '?').lower()}" if row.kind in STAGED else ""


def _by_switches(box: Box) -> int:
    """The NVLinks of each GPU, where all GPUs of a board with NVSwitches are there, which join every pair; else 0."""
    switches, count, links = map(box.number, ("nvlink.switches", "gpu.count", "nvlink.links"))
    return int(links.value) if switches and count and links and len(box.reference_gpus) == count.value else 0


def pair_link(box: Box, row: Measurement) -> Link | None:
    """What joins the GPUs of a collective of two, where it is known which they are."""
    devices = row.more.get("devices")
    if row.b != "2" or not isinstance(devices, list) or len(devices) != 2:
        return None
    a, b = map(text_of, devices)
    return link_between(box, a, b)


def has_reference(box: Box, row: Measurement) -> bool:
    """Is the figure held to the reference machine, not only to what the path gives?"""
    return row.how != "simulated" and reference(box, row) is not None


def derived(box: Box, row: Measurement, line: LineRate = as_supported) -> ExpectedFigure | None:
    """From the parts of the path, with links at ``line``'s rate, at the least that each is known to carry.

    It fails far below that alone.
    """
    one, other = device(box, row.a), device(box, row.b)
    if one is None:
        return None
    if row.kind in ("host-to-device", "device-to-host"):
        return _of_path(box, row, to_host(box, one, line), "read" if row.kind == "host-to-device" else "write", 1)
    if row.kind not in P2P or other is None or other is one:
        return None
    return _of_path(box, row, between(box, one, other, line), "write", 2 if row.kind == "p2p-both" else 1)


@or_none
def _of_path(
    box: Box, row: Measurement, path: Expected, direction: Direction, directions: int
) -> ExpectedFigure | None:
    total = path.write if direction == "write" else path.read
    least = need(total.rate.least)
    limit, origin = ("measure.warn", "NVLinks") if path.medium == "nvlink" else ("measure.derived", "PCIe path")
    sources = "; ".join(dict.fromkeys(part.source for part in path.limits))
    source = f"derived from the path: {sources}"
    far = far_below(box, row)
    return ExpectedFigure(least * directions, source, origin, box.settings.limit(limit), far, far)


def against_expected(box: Box, row: Measurement) -> Judgement | None:
    """The figure against what is expected; None where nothing is expected."""
    expected, value = expected_figure(box, row), row.number or 0.0
    if expected is None:
        return None
    percent = 100 * value / expected.value
    wanted = quantity(expected.value, row.unit)
    message = f"{figure_text(box, row)}, {percent:.0f} % of {wanted}; expected by {expected.origin}"
    if percent >= expected.warn_below:
        return Judgement(Status.PASS, message, value, round(expected.value, 3), row.unit, (evidence(row),))
    fails = percent < expected.far_below or (percent < expected.fail_below and box.is_known)
    return slow(row, message, expected.value, status=Status.FAIL if fails else Status.WARN)


def slow(row: Measurement, message: str, expected: float, *others: Measurement, status: Status) -> Judgement:
    """A figure that is too low, with how often it was measured and the figures that it is compared with."""
    facts = tuple(map(evidence, (row, *others)))
    times = len(items_of(row.more.get("retries")))
    best = f", best of {times + 1} measurements" if times else ""
    return Judgement(status, f"{message}{best}", row.number, round(expected, 3), row.unit, facts, fault=Fault.SLOW)


def figure_text(box: Box, row: Measurement) -> str:
    """``GPU0 to GPU1, P2P on: 18.4 GB/s``"""
    return f"{label(box, row)}: {quantity(row.number or 0, row.unit)}"


def plain_pass(box: Box, row: Measurement) -> Judgement:
    """A figure with nothing to compare it with."""
    return Judgement(Status.PASS, figure_text(box, row), row.number, unit=row.unit, evidence=(evidence(row),))


def quantity(value: float, unit: str) -> str:
    """``18.41 GB/s``, ``9.5 µs``"""
    return f"{amount(value)} {'µs' if unit == 'us' else unit}"


def amount(value: float) -> str:
    """Four significant digits."""
    return f"{value:.4g}" if abs(value) < 10000 else f"{value:.0f}"
