"""Checks that judge every port by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dgxcheck.checks.engine.box import HOST, Box, Growth
from dgxcheck.checks.engine.finding import Judgement, Subject
from dgxcheck.checks.engine.per_gpu import ruled
from dgxcheck.checks.network.ports import port_subject, ports
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


def per_port_growth(rule: Callable[[Box, Growth, IbPort], Judgement]) -> Judge:
    """The same of counters that were read twice."""

    def judge(box: Box) -> Iterator[tuple[Subject, Judgement]]:
        listed, growth = ports(box), box.growth
        if isinstance(listed, Judgement):
            yield HOST, listed
        elif isinstance(growth, Judgement):
            yield HOST, growth
        else:
            for device, port in listed:
                yield port_subject(device, port), ruled(rule, box, growth, port)

    return judge
