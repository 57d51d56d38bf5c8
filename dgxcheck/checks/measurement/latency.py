"""Is peer access really in use? A small copy takes far less time with it than through the host."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status, Subject, skip
from dgxcheck.checks.measurement.expectations import amount
from dgxcheck.checks.measurement.host_copies import together
from dgxcheck.checks.measurement.lookup import Figures, evidence, figures, pair, pairs, way
from dgxcheck.checks.measurement.untaken import once, untaken
from dgxcheck.facts.measurement import Measurement

Judged = Iterator[tuple[Subject, Judgement]]
ID = "measure.p2p-latency"


def waited(box: Box, found: Figures, row: Measurement) -> Judgement:
    """A small copy with P2P on (``latency``), against the same with P2P off."""
    offered = found.of("access", row.a, row.b)
    if offered is not None and offered.value is False:
        return skip("not-supported", "the driver offers these two no access to each other", evidence(row))
    if (nothing := untaken(box, row)) is not None:
        return nothing
    off = found.of("latency-off", row.a, row.b)
    if offered is None or offered.value is not True:
        return skip("not-recorded", "nobody knows whether P2P was offered and enabled", evidence(row))
    if row.number is None or off is None or not off.number or row.number <= 0:
        return skip("not-recorded", "it was not measured both with P2P on and off", evidence(row))
    if (off.tool, off.how, _method(off)) != (row.tool, row.how, _method(row)):
        return skip("not-recorded", "P2P on and off were measured in different ways", evidence(row), evidence(off))
    share = row.number / off.number
    slow = 100 * share > box.settings.limit("measure.p2p-latency")
    told = f"{way(box, row)} {amount(row.number)} {row.unit} with P2P on, {amount(off.number)} with P2P off"
    message = f"{told}: peer access is not in use" if slow else told
    limit = round(off.number * box.settings.limit("measure.p2p-latency") / 100, 3)
    status = Status.WARN if slow else Status.PASS
    return Judgement(status, message, row.number, limit, row.unit, (evidence(row), evidence(off)))


def _method(row: Measurement) -> str:
    """Engine and size, as far as both ways have them in common."""
    return row.method.partition(",")[0]


def _latency(box: Box) -> Judged:
    found = figures(box, ID)
    if isinstance(found, Judgement):
        yield HOST, found
        return
    tried = pairs(box, found, ("latency",))
    for a, b in tried:
        said = together([waited(box, found, row) for row in found.both("latency", a, b)])
        yield pair(box, a, b), once(found, ID, said, a, b)
    if not tried:
        yield HOST, skip("not-recorded", "no latency from GPU to GPU was measured")


CHECKS = (
    Check(
        id=ID,
        rule="Warns where a small copy between two GPUs takes, with P2P on, more than {measure.p2p-latency} of the time"
        " that it takes with P2P off. Only where the driver offers access, and where the same tool measured both in"
        " the same way. The latency of a kernel's loads is shown and not judged.",
        source="cuMemcpyDtoDAsync of 16 bytes with peer access on, cuMemcpyPeerAsync with it off;"
        " p2pBandwidthLatencyTest on a DGX-1, on K80, RTX and GeForce boxes",
        remedy="turn off ACS redirection and IOMMU translation on the path; in a virtual machine pass its switch on",
        judge=_latency,
    ),
)
