"""Checks that judge every port by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dgxcheck.checks.engine.box import HOST, Box, Growth
from dgxcheck.checks.engine.finding import Judgement, Status, Subject
from dgxcheck.checks.engine.per_gpu import ruled
from dgxcheck.checks.engine.totals import is_short
from dgxcheck.checks.network.ports import name_of, port_subject, ports
from dgxcheck.facts.infiniband import IbDevice, IbPort

Judge = Callable[[Box], Iterator[tuple[Subject, Judgement]]]
Rule = Callable[[Box, IbDevice, IbPort, list[tuple[IbDevice, IbPort]]], Judgement]
"""The last are all ports, for those that are compared with their twins."""


def per_port(rule: Rule) -> Judge:
    """A judge that applies ``rule`` to each port; the reason where none is listed."""

    def judge(box: Box) -> Iterator[tuple[Subject, Judgement]]:
        listed = ports(box)
        if isinstance(listed, Judgement):
            yield HOST, listed
            return
        for device, port in listed:
            yield port_subject(device, port), ruled(rule, box, device, port, listed)

    return judge


def per_port_growth(
    rule: Callable[[Box, Growth, IbPort], Judgement], total: Callable[[Box, IbPort], Judgement | None]
) -> Judge:
    """The same of counters that were read twice; ``total`` judges those that were not, or not an hour apart."""

    def judge(box: Box) -> Iterator[tuple[Subject, Judgement]]:
        listed, growth = ports(box), box.growth
        if isinstance(listed, Judgement):
            yield HOST, listed
            return
        totals = {name_of(port): total(box, port) for _, port in listed} if is_short(growth) else {}
        if isinstance(growth, Judgement) and not any(totals.values()):
            yield HOST, growth
            return
        for device, port in listed:
            judgement = growth if isinstance(growth, Judgement) else ruled(rule, box, growth, port)
            many = totals.get(name_of(port)) if judgement.status in (Status.PASS, Status.SKIP) else None
            yield port_subject(device, port), many or judgement

    return judge
