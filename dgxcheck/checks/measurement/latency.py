"""Is peer access really in use? A small copy takes far less time with it than through host memory."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status, Subject, skip
from dgxcheck.checks.measurement import paths
from dgxcheck.checks.measurement.expectations import figure_text, quantity
from dgxcheck.checks.measurement.failures import measured_figures, unless_reported, without_figure
from dgxcheck.checks.measurement.host_copies import combined
from dgxcheck.checks.measurement.lookup import Figures, evidence, link_between, pair_subject, pairs
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.record import replace

ID = "measure.p2p-latency"
_BY_NVLINK = (
    "see whether their NVLinks are up (nvidia-smi nvlink -s) and reads are offered (nvidia-smi topo -p2p r); if they"
    " are, measure again on the idle machine"
)


def judge_latency(box: Box, figures: Figures, row: Measurement) -> Judgement:
    """A small copy with P2P on (``latency``), against the same with P2P off."""
    access = figures.get("access", row.a, row.b)
    if access is not None and access.value is False:
        return skip("not-supported", "the driver refuses peer access between the two", evidence(row))
    if (failure := without_figure(box, row)) is not None:
        return failure
    off = figures.get("latency-off", row.a, row.b)
    if access is None or access.value is not True:
        return skip("not-recorded", "not recorded whether P2P was offered and enabled", evidence(row))
    if row.number is None or off is None or not off.number or row.number <= 0:
        return skip("not-recorded", "not measured with both P2P on and P2P off", evidence(row))
    if (off.tool, off.how, _method(off)) != (row.tool, row.how, _method(row)):
        return skip("not-recorded", "P2P on and P2P off were measured in different ways", evidence(row), evidence(off))
    facts = (evidence(row), evidence(off))
    limit = off.number * box.settings.limit("measure.p2p-latency") / 100
    message = f"{figure_text(box, row)}, with P2P off {quantity(off.number, off.unit)}"
    if row.number <= limit:
        return Judgement(Status.PASS, message, row.number, round(limit, 3), row.unit, facts)
    message = f"{message}: peer access is not in use"
    return Judgement(Status.WARN, message, row.number, round(limit, 3), row.unit, facts, fault=Fault.SLOW)


def _method(row: Measurement) -> str:
    """Engine and size, as far as both modes have them in common."""
    return row.method.partition(",")[0]


def _latency(box: Box) -> Iterator[tuple[Subject, Judgement]]:
    figures = measured_figures(box, ID)
    if isinstance(figures, Judgement):
        yield HOST, figures
        return
    tried = pairs(box, figures, ("latency",))
    for a, b in tried:
        judgement = combined(
            box, [(row, judge_latency(box, figures, row)) for row in figures.each_way("latency", a, b)]
        )
        link = link_between(box, a, b)
        if judgement.status is Status.WARN and link is not None and link.nvlinks:
            judgement = replace(judgement, remedy=_BY_NVLINK)
        yield pair_subject(box, a, b), unless_reported(figures, ID, judgement, a, b)
    if not tried:
        yield HOST, skip("not-recorded", "no latency between GPUs was measured")


CHECKS = (
    Check(
        id=ID,
        rule="Warns where a small copy between two GPUs takes, with P2P on, more than {measure.p2p-latency} of the time"
        " that it takes with P2P off. Only where the driver offers access, and where the same tool measured both in"
        " the same way. The latency of a kernel's loads is shown and not judged.",
        source="cuMemcpyDtoDAsync of 16 bytes with peer access on, cuMemcpyPeerAsync with it off;"
        " p2pBandwidthLatencyTest on a DGX-1, on K80, RTX and GeForce boxes",
        remedy="over NVLink look at nvidia-smi nvlink -s and nvidia-smi topo -p2p r; over PCIe turn off ACS redirection"
        " and IOMMU translation on the path (dgxcheck topo --peers names them); in a virtual machine pass the PCIe"
        " switch through too",
        judge=_latency,
        blames=paths.between_pair,
        crossed=paths.small_copy,
        traffic="latency",
        witness="measurement",
    ),
)
