"""What an HCA moves to another host, or through a cable to itself: perftest's ``ib_write_bw`` and its siblings."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.bandwidth.expected import to_host
from dgxcheck.bandwidth.links import LineRate, as_it_is, as_supported
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import component_of, ruled
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject, given, skip, unless
from dgxcheck.checks.measurement.comparisons import below_class, runs_differ
from dgxcheck.checks.measurement.expectations import figure_text, plain_pass, quantity, slow
from dgxcheck.checks.measurement.failures import measured_figures, no_figure
from dgxcheck.checks.measurement.lookup import Figures, evidence
from dgxcheck.checks.network.ports import gbit_per_s, listed_ports, port_gbs, port_subject
from dgxcheck.components.component import Component
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import need, or_none
from dgxcheck.facts.typical import median
from dgxcheck.topology.model import Device

ID = "measure.rdma-bandwidth"
_FEWEST = 3
"""HCAs beside the one that differs from all of them."""
KINDS = tuple(f"rdma-{verb}{both}" for verb in ("write", "read", "send") for both in ("", "-both"))


def judge_rdma(box: Box, figures: Figures, row: Measurement) -> Judgement:
    """One figure against the port's rate, or what the PCIe path carries where that is less, and against its like.

    Of the memory of a GPU nothing is expected: it may be sockets away from the HCA.
    """
    unless(no_figure(box, row))
    if row.more.get("memory") is not None:
        return runs_differ(box, row) or plain_pass(box, row)
    directions = 2 if row.kind.endswith("-both") else 1
    nic = _nic(box, row.a)
    port = _port_gbs(box, row.a)
    value = (row.number or 0) / directions
    judged: Judgement | None = None
    derived = box.settings.limit("measure.derived")
    if nic is not None and port is not None:
        path, now = _path_gbs(box, nic, as_supported), _path_gbs(box, nic, as_it_is(nic))
        most = _path_gbs(box, nic, as_supported, least=False)
        expected, what, limit = port, "its port", box.settings.limit("measure.warn")
        if path is not None and most is not None and most < port:
            expected, what, limit = path, "its PCIe link", derived
        message = f"{figure_text(box, row)}, {100 * value / expected:.0f} % of {quantity(expected, row.unit)} of {what}"
        if value < expected * limit / 100:
            if now is not None and path is not None and now < path and value >= now * derived / 100:
                return skip("dependency-failed", f"see gdr.link: {message}", evidence(row))
            return slow(row, message, expected * directions, status=Status.WARN)
        judged = Judgement(
            Status.PASS, message, row.number, round(expected * directions, 3), row.unit, (evidence(row),)
        )  # fmt: skip
    of_method = (each for each in figures.of_kinds(row.kind) if each.method == row.method)
    alike = [each for each in of_method if _port_gbs(box, each.a) == port]
    limit, what = box.settings.limit("measure.symmetry"), "of ports with the same rate"
    if port is None:
        what = "of the HCAs (rates not shown)"
        alike = alike if _all_but_one(alike, limit) else []
    bad = runs_differ(box, row) or below_class(box, row, alike, "measure.symmetry", what)
    return bad or judged or plain_pass(box, row)


def _all_but_one(alike: list[Measurement], percent: float) -> bool:
    """Are all figures of HCAs whose rates are not known near their median but for one? Two may be of other networks."""
    numbers = [each.number or 0 for each in alike]
    middle = median(numbers)
    return len(numbers) > _FEWEST and sum(abs(one - middle) > middle * percent / 100 for one in numbers) == 1


@or_none
def _path_gbs(box: Box, nic: Device, line: LineRate, least: bool = True) -> float | None:
    """GB/s that the way between HCA and memory carries at the least, or at the most, in the slower direction."""
    path = to_host(box, nic, line)
    return min(need(total.rate.least if least else total.rate.most) for total in (path.read, path.write))


def _nic(box: Box, name: str) -> Device | None:
    return next((each for each in box.topology.adapters if each.name == name), None)


def _port_gbs(box: Box, name: str) -> float | None:
    nic = _nic(box, name)
    return None if nic is None else port_gbs(box, nic)


def _subject(box: Box, name: str) -> Subject:
    nic = _nic(box, name)
    return Subject(kind="hca", name=name, bdf=None if nic is None else nic.bdf)


def judge_hcas(box: Box) -> Judged:
    """The worst figure of each HCA."""
    figures = given(measured_figures(box, ID))
    rows = figures.of_kinds(*KINDS)
    for name in dict.fromkeys(row.a for row in rows):
        judged = [ruled(judge_rdma, box, figures, row) for row in rows if row.a == name]
        yield _subject(box, name), next((each for each in judged if each.status is Status.WARN), judged[0])
    if not rows:
        yield HOST, skip("not-recorded", "no traffic of an HCA was measured")


def hca_or_port(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The HCA, or its ports that are up: cable, switch port and the other host are at their other end."""
    yield component_of(box, subject)
    for device, port in listed_ports(box):
        if device.name == subject.name and gbit_per_s(port):
            at = port_subject(device, port)
            yield Component(kind="port", name=at.name, bdf=at.bdf)
