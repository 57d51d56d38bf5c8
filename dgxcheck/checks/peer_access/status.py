"""Does the driver let GPUs reach each other's memory where the wiring allows it?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from dgxcheck.checks.driver import fabric_manager
from dgxcheck.checks.engine.box import HOST, Box, guest, mig_enabled, nvml_unavailable
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.pcie.width import bridge
from dgxcheck.checks.peer_access.blockers import stopped
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvlink import STATUSES, P2pStatus
from dgxcheck.facts.record import replace
from dgxcheck.topology.model import Device, Link

Judged = Iterator[tuple[Subject, Judgement]]
NEVER = ("GNS", "NS")
"""The GPUs cannot, or the function is not supported at all: no fault of the wiring."""
NEAR = ("PIX", "PXB")
_OF_THE_CHIPSET = ("CNS", "TNS")
_WAYS = ("read", "write", "nvlink")
_BY_NVLINK = "look for Xid 74 of the two GPUs and at the driver's registry keys, then reload the driver"
_BY_PCIE = (
    "stop the IOMMU from translating, then turn off ACS of the ports between them, neither where virtual machines run;"
    " else look at the driver's registry keys and reload it"
)
Pair = tuple[Device, Device]


def statuses(box: Box) -> dict[Pair, Judgement] | Judgement:
    """Of every pair with a GPU that is asked about; or why nothing can be said of any."""
    rows = box.snapshot.p2p
    listed = [gpu for gpu in box.topology.gpus if gpu.index is not None and gpu.bdf is not None]
    if (nothing := nvml_unavailable(box)) is not None:
        return nothing
    if isinstance(rows, Missing) or len(listed) < 2:
        return unjudged(rows) if isinstance(rows, Missing) else skip("not-supported", "there is no pair of GPUs")
    if fabric_manager.down(box):
        return skip("dependency-failed", "the NVSwitch fabric is not up: see driver.fabric")
    by_pair = {(row.a, row.b): row for row in rows}
    pairs: dict[Pair, Judgement] = {}
    for a, b in combinations(listed, 2):
        if a in box.gpus or b in box.gpus:
            there, back = by_pair.get((a.bdf or "", b.bdf or "")), by_pair.get((b.bdf or "", a.bdf or ""))
            pairs[a, b] = _judged(box, there, back, box.topology.link(a, b), (a.bdf, b.bdf))
    return pairs


def _status(box: Box) -> Judged:
    pairs = statuses(box)
    if isinstance(pairs, Judgement):
        yield HOST, pairs
        return
    at = _at_bridges(box, pairs)
    for pair, judged in pairs.items():
        where = next((name for name, below in at.items() if pair in below), None)
        yield box.pair(*pair), judged if where is None else skip("dependency-failed", f"told at {where}")
    for name, below in at.items():
        yield bridge(name), _of_all({pair: pairs[pair] for pair in below})


def _judged(
    box: Box, there: P2pStatus | None, back: P2pStatus | None, link: Link, bdfs: tuple[str | None, ...]
) -> Judgement:
    said = _pair(there, back, link)
    if said.status is not Status.FAIL:
        return said
    if mig_enabled(box, *bdfs):
        return skip("not-supported", f"{said.message}: MIG is on, and takes P2P from a GPU", *said.evidence)
    vm = guest(box)
    if vm is not None and not link.nvlinks and said.measured in _OF_THE_CHIPSET:
        return skip("not-visible", f"{said.message}: {vm} hides from its guest what joins them", *said.evidence)
    return replace(said, remedy=_BY_NVLINK) if link.nvlinks else _explained(box, said, link)


def _explained(box: Box, said: Judgement, link: Link) -> Judgement:
    """With the setting that stops the pair, and what lifts it."""
    a, b = box.topology.device(link.a), box.topology.device(link.b)
    if a is None or b is None:
        return replace(said, remedy=_BY_PCIE)
    what = stopped(box, a, b)
    return replace(
        said, message=f"{said.message}; stopped by {what.by}" if what.by else said.message, remedy=what.remedy
    )


def _at_bridges(box: Box, pairs: Mapping[Pair, Judgement]) -> dict[str, list[Pair]]:
    """Bridges behind which all pairs fail alike, the highest first: of all GPUs below, or where their ways part."""
    shared: dict[Pair, tuple[str, ...]] = {}
    for a, b in pairs:
        link = box.topology.link(a, b)
        if link.nvlinks or link.pci not in NEAR or isinstance(a.path, Missing) or isinstance(b.path, Missing):
            continue
        shared[a, b] = tuple(one for one, other in zip(a.path, b.path, strict=False) if one == other)
    found: dict[str, list[Pair]] = {}
    for above in sorted({*shared.values()}, key=lambda each: (len(each), each)):
        taken = {pair for group in found.values() for pair in group}
        below = [pair for pair, ways in shared.items() if pair not in taken and above[-1] in ways]
        for group in (below, [pair for pair in below if shared[pair] == above]):
            said = {(pairs[pair].status, pairs[pair].measured) for pair in group}
            if len(group) > 1 and len(said) == 1 and pairs[group[0]].status is Status.FAIL:
                found[above[-1]] = group
                break
    return found


def _of_all(below: Mapping[Pair, Judgement]) -> Judgement:
    first = next(iter(below.values()))
    names = ", ".join(f"{a.name}-{b.name}" for a, b in below)
    remedies = list(dict.fromkeys(said.remedy for said in below.values()))
    causes = list(dict.fromkeys(filter(None, (said.message.partition("; stopped by ")[2] for said in below.values()))))
    why = f"; stopped by {', '.join(causes)}" if causes else ""
    message = f"P2P is {first.measured} between all GPUs that it joins: {names}{why}"
    evidence = tuple(each for said in below.values() for each in said.evidence[:1])
    return Judgement(Status.FAIL, message, first.measured, "OK", evidence=evidence, remedy="; ".join(remedies))


def _pair(there: P2pStatus | None, back: P2pStatus | None, link: Link) -> Judgement:
    if there is None or back is None:
        return skip("not-recorded", "its P2P status is not known")
    ways = ("read", "write", "nvlink") if link.nvlinks else ("read", "write")
    told = {way: (getattr(there, way), getattr(back, way)) for way in ways}
    evidence = tuple(
        answered(_shown(said), "nvmlDeviceGetP2PStatus", f"{row.a} {row.b}", _WAYS.index(way))
        for way in ways
        for row, said in zip((there, back), told[way], strict=True)
    )
    near = f"joined by {link.label}" if link.nvlinks or link.pci in NEAR else ""
    for way, (one, other) in told.items():
        if isinstance(one, Missing) or isinstance(other, Missing):
            return unjudged(one if isinstance(one, Missing) else other)
        if "U" in (one, other):
            return unjudged(Missing(Gap.UNSUPPORTED, evidence[0].where, "the driver does not know"))
        if one != other:
            message = f"P2P {way} is {one} from {link.a} to {link.b}, {other} back"
            return Judgement(Status.FAIL, message, f"{one}, {other}", "OK", evidence=evidence)
        if one in NEVER and near:
            return skip("not-supported", f"P2P {way} is {one}: these GPUs never have it", *evidence)
        if one != "OK" and near:
            message = f"P2P {way} is {one} between {link.a} and {link.b}, {near}"
            return Judgement(Status.FAIL, message, one, "OK", evidence=evidence)
    said = ", ".join(f"{way} {one}" for way, (one, _) in told.items())
    return Judgement(Status.PASS, f"P2P {said}, both ways", said, evidence=evidence)


def _shown(value: str | Missing) -> int | str:
    """As NVML answers: the number of the status."""
    return value.reason if isinstance(value, Missing) else STATUSES.index(value)


CHECKS = (
    Check(
        id="p2p.status",
        rule="Fails where two GPUs that NVLink or one PCIe switch joins (PIX, PXB) cannot read and write each other's"
        " memory, and for any pair where one way works and the other does not. GPUs that never can (GNS, NS) are not"
        " judged, nor are pairs further apart, GPUs with MIG on, and in a virtual machine what its hypervisor hides"
        " (CNS, TNS without NVLink). Where an IOMMU translates or ACS of a port between them redirects, that is named."
        " Where all pairs behind one PCIe bridge fail alike it is told once, at the bridge.",
        source="nvmlDeviceGetP2PStatus both ways",
        remedy=f"for pairs joined by PCIe {_BY_PCIE}; for NVLink {_BY_NVLINK}",
        judge=_status,
    ),
)
