"""Which GPUs reach each other's memory directly: by the driver's word, the settings on the way, and measurement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Literal

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status
from dgxcheck.checks.engine.precondition import Said, State, unsaid
from dgxcheck.checks.host.virtual_machines import in_guest
from dgxcheck.checks.measurement import integrity, latency, p2p_copies
from dgxcheck.checks.pcie.acs import redirecting
from dgxcheck.checks.peer_access.blockers import stopped
from dgxcheck.checks.peer_access.status import statuses
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record, replace
from dgxcheck.topology.model import Device

Verdict = Literal["direct", "slow", "refused", "through the host", "cannot tell"]
Pair = tuple[str, str]
"""Bus ids, or names."""
_WORST: tuple[tuple[State, Verdict], ...] = (("no", "refused"), ("slow", "slow"), ("?", "cannot tell"))
_MEASURED: tuple[tuple[Check, State], ...] = (
    (next(check for check in integrity.CHECKS if check.id == "measure.p2p-integrity"), "no"),
    *((check, "slow") for check in (*p2p_copies.CHECKS, *latency.CHECKS)),
)
"""What a bad judgement of each makes of a pair."""


class Peering(Record):
    """Two GPUs."""

    a: Device
    b: Device
    verdict: Verdict
    told: tuple[tuple[str, Said], ...]
    """Every precondition by the id of its check."""

    @property
    def reasons(self) -> tuple[tuple[str, Said], ...]:
        """What keeps it from being direct and fast."""
        state = next((state for state, verdict in _WORST if verdict == self.verdict), "ready")
        return () if state == "ready" else tuple((id_, said) for id_, said in self.told if said.state == state)


def peerings(box: Box) -> tuple[Peering, ...] | Judgement:
    """Every pair of GPUs that NVML lists; a skip where there is none or nothing is known."""
    known = statuses(box)
    if isinstance(known, Judgement):
        return known
    measured = {check.id: _of_pairs(box, check) for check, _ in _MEASURED}
    return tuple(_peering(box, *pair, known[pair], measured) for pair in combinations(box.gpus, 2) if pair in known)


def _of_pairs(box: Box, check: Check) -> Mapping[Pair, Judgement]:
    return {
        (subject.bdf or subject.name, subject.peer.bdf or subject.peer.name): judgement
        for subject, judgement in check.judge(box)
        if subject.peer is not None
    }


def _peering(
    box: Box, a: Device, b: Device, status: Judgement, measured: Mapping[str, Mapping[Pair, Judgement]]
) -> Peering:
    told = (("p2p.status", _status(status)), *_settings(box, a, b), *_figures(a, b, measured))
    far = status.status is Status.PASS and not str(status.measured).startswith("read OK, write OK")
    if far or status.reason == "not-supported":
        return Peering(a=a, b=b, verdict="through the host", told=told)
    fast = any(id_ == "measure.p2p-bandwidth" and said.state == "ready" for id_, said in told)
    seen = {said.state for _, said in told if not (fast and said.state == "?")}
    return Peering(a=a, b=b, verdict=next((each for state, each in _WORST if state in seen), "direct"), told=told)


def _status(said: Judgement) -> Said:
    if said.status is Status.FAIL:
        return Said("no", said)
    return Said("ready" if said.status is Status.PASS or said.reason == "not-supported" else "?", said)


def _settings(box: Box, a: Device, b: Device) -> Iterator[tuple[str, Said]]:
    """Over PCIe the driver may say yes while an IOMMU or a port sends the data another way, or nowhere."""
    if box.topology.link(a, b).nvlinks:
        return
    if (hidden := in_guest(box)) is not None:
        yield "p2p.path", hidden
        return
    found = stopped(box, a, b)
    ports = redirecting(box, a, b)
    if found.by:
        said = Judgement(Status.WARN, f"{found.by} is on their way", remedy=found.remedy)
        yield "p2p.path", Said("slow", said)
    elif isinstance(ports, Missing):
        yield "p2p.path", unsaid(ports)
    else:
        yield "p2p.path", Said("ready", Judgement(Status.PASS, "no IOMMU translates and no port redirects"))


def _figures(a: Device, b: Device, measured: Mapping[str, Mapping[Pair, Judgement]]) -> Iterator[tuple[str, Said]]:
    ends = (a.bdf or a.name, b.bdf or b.name)
    for check, bad in _MEASURED:
        said = measured[check.id].get(ends) or measured[check.id].get(ends[::-1])
        if said is None or said.status is Status.SKIP:
            continue
        state: State = "ready" if said.status is Status.PASS else bad
        yield check.id, Said(state, said if said.remedy else replace(said, remedy=check.remedy))
