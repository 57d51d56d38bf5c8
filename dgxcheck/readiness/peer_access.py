"""Which GPUs can access each other's memory directly: by the driver, by settings on the path, and by measurement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Literal

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, judgements
from dgxcheck.checks.engine.finding import Judgement, Status
from dgxcheck.checks.engine.precondition import Precondition, State, deciding, in_guest, undetermined
from dgxcheck.checks.measurement.checks import CHECKS
from dgxcheck.checks.pcie.isolation import redirecting_ports
from dgxcheck.checks.peer_access.cuda import blocker
from dgxcheck.checks.peer_access.status import statuses
from dgxcheck.facts.bdf import IdPair
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record, replace
from dgxcheck.topology.model import Device

Verdict = Literal["direct", "slow", "refused", "through the host", "cannot tell"]
_WORST: tuple[tuple[State, Verdict], ...] = (("no", "refused"), ("slow", "slow"), ("?", "cannot tell"))
_MEASURED: tuple[tuple[Check, State], ...] = (
    (next(check for check in CHECKS if check.id == "measure.p2p-integrity"), "no"),
    *((check, "slow") for check in CHECKS if check.id in ("measure.p2p-bandwidth", "measure.p2p-latency")),
)
"""Checks of measurements, with the state that a warning or failure gives a pair."""


class Peering(Record):
    """Peer access between two GPUs."""

    a: Device
    b: Device
    verdict: Verdict
    preconditions: tuple[tuple[str, Precondition], ...]
    """Each with the id of its check."""

    @property
    def reasons(self) -> tuple[tuple[str, Precondition], ...]:
        """The preconditions that the verdict comes from; empty for a pair with direct access."""
        return deciding(self.preconditions, self.verdict, _WORST)


def peerings(box: Box) -> tuple[Peering, ...] | Judgement:
    """Every pair of GPUs whose P2P status is known; a skip where there is no pair or no P2P status."""
    if isinstance(answers := statuses(box), Judgement):
        return answers
    measured = {check.id: _by_pair(box, check) for check, _ in _MEASURED}
    return tuple(_peering(box, *pair, answers[pair], measured) for pair in combinations(box.gpus, 2) if pair in answers)


def _by_pair(box: Box, check: Check) -> Mapping[IdPair, Judgement]:
    return {(subject.bdf or subject.name, subject.peer.bdf or subject.peer.name): judgement
            for subject, judgement in judgements(check, box) if subject.peer is not None}


def _peering(
    box: Box, a: Device, b: Device, status: Judgement, measured: Mapping[str, Mapping[IdPair, Judgement]]
) -> Peering:
    preconditions = (("p2p.status", _status(status)), *_path(box, a, b), *_measurements(a, b, measured))
    granted = status.measured is True or str(status.measured).startswith("read OK, write OK")
    no_access = status.status is Status.PASS and not granted
    if no_access or status.reason == "not-supported":
        return Peering(a=a, b=b, verdict="through the host", preconditions=preconditions)
    fast = any(id_ == "measure.p2p-bandwidth" and each.state == "ready" for id_, each in preconditions)
    in_use = fast or status.measured is True
    states = {each.state for _, each in preconditions if not (in_use and each.state == "?")}
    verdict: Verdict = next((verdict for state, verdict in _WORST if state in states), "direct")
    return Peering(a=a, b=b, verdict=verdict, preconditions=preconditions)


def _status(status: Judgement) -> Precondition:
    if status.status is Status.FAIL:
        return Precondition("no", status)
    return Precondition("ready" if status.status is Status.PASS or status.reason == "not-supported" else "?", status)


def _path(box: Box, a: Device, b: Device) -> Iterator[tuple[str, Precondition]]:
    """IOMMU and ACS between two GPUs that PCIe joins: the driver reports OK while they redirect or break transfers."""
    if box.topology.link(a, b).nvlinks:
        return
    if (hidden := in_guest(box)) is not None:
        yield "p2p.path", hidden
        return
    blocked = blocker(box, a, b)
    ports = redirecting_ports(box, a, b)
    if blocked.setting:
        message = f"{blocked.setting} affects the path between them"
        judgement = Judgement(Status.WARN, message, remedy=blocked.remedy, fault=Fault.P2P_BLOCKED)
        yield "p2p.path", Precondition("slow", judgement)
    elif isinstance(ports, Missing):
        yield "p2p.path", undetermined(ports)
    else:
        message = "no IOMMU translation and no ACS redirection between them"
        yield "p2p.path", Precondition("ready", Judgement(Status.PASS, message))


def _measurements(
    a: Device, b: Device, measured: Mapping[str, Mapping[IdPair, Judgement]]
) -> Iterator[tuple[str, Precondition]]:
    ends = (a.bdf or a.name, b.bdf or b.name)
    for check, bad in _MEASURED:
        judgement = measured[check.id].get(ends) or measured[check.id].get(ends[::-1])
        if judgement is None or judgement.status is Status.SKIP:
            continue
        state: State = "ready" if judgement.status is Status.PASS else bad
        yield check.id, Precondition(state, replace(judgement, remedy=judgement.remedy or check.remedy))
