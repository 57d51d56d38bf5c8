"""Does the driver let GPUs reach each other's memory where the wiring allows it?"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from dgxcheck.checks import fabric_manager
from dgxcheck.checks.check import HOST, Box, Check, untold
from dgxcheck.checks.finding import Judgement, Status, Subject, answered, skip
from dgxcheck.checks.gaps import unjudged
from dgxcheck.facts.p2p import STATUSES, P2pStatus
from dgxcheck.reading import Gap, Missing
from dgxcheck.topology.model import Link

Judged = Iterator[tuple[Subject, Judgement]]
NEVER = ("GNS", "NS")
"""The GPUs cannot, or the function is not supported at all: no fault of the wiring."""
NEAR = ("PIX", "PXB")
_WAYS = ("read", "write", "nvlink")


def _status(box: Box) -> Judged:
    rows = box.snapshot.p2p
    listed = [gpu for gpu in box.topology.gpus if gpu.index is not None and gpu.bdf is not None]
    if (nothing := untold(box)) is not None:
        yield HOST, nothing
        return
    if isinstance(rows, Missing) or len(listed) < 2:
        yield HOST, unjudged(rows) if isinstance(rows, Missing) else skip("not-supported", "there is no pair of GPUs")
        return
    if fabric_manager.down(box):
        yield HOST, skip("dependency-failed", "the NVSwitch fabric is not up: see driver.fabric")
        return
    by_pair = {(row.a, row.b): row for row in rows}
    for a, b in combinations(listed, 2):
        if a in box.gpus or b in box.gpus:
            there, back = by_pair.get((a.bdf or "", b.bdf or "")), by_pair.get((b.bdf or "", a.bdf or ""))
            yield box.pair(a, b), _pair(there, back, box.topology.link(a, b))


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
        " judged, nor are pairs further apart.",
        source="nvmlDeviceGetP2PStatus both ways",
        remedy="turn off ACS and IOMMU translation on the path; look at the driver's registry keys, then reload it",
        judge=_status,
    ),
)
