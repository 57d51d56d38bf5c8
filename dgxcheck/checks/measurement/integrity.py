"""Did the data arrive? In each GPU's memory, and from each GPU in the memory of each other."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status, Subject, skip
from dgxcheck.checks.measurement.host_copies import per_gpu, together
from dgxcheck.checks.measurement.lookup import ALL, Figures, device, evidence, figures, joined, pair, pairs, way
from dgxcheck.checks.measurement.untaken import once, untaken
from dgxcheck.checks.peer_access.blockers import blocker
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace

Judged = Iterator[tuple[Subject, Judgement]]
MIB = 1 << 20
_UNUSED = "use no P2P between them before it is cured (NCCL_P2P_DISABLE=1)"
_BY_NVLINK = "look for Xid 74 and CRC errors of their NVLinks, then reseat both GPUs, or the bridge"
_BY_PCIE = "look for DMAR faults and PCIe errors of the ports between them in the kernel log"
_METHODS = {"ce": "copy engine", "sm": "stores of a kernel", "ping-pong": "two kernels that wait for each other"}


def kept(box: Box, _: Figures, row: Measurement) -> Judgement:
    """Patterns in a GPU's memory, or data from one GPU in the memory of another, read back by the owner."""
    if (nothing := untaken(box, row)) is not None:
        return nothing
    wrong = row.number
    if wrong is None:
        return skip("not-recorded", f"{row.kind} has no figure", evidence(row))
    where = way(box, row)
    if wrong:
        words = "word is" if wrong == 1 else "words are"
        message = f"{where}: {wrong:.0f} {words} wrong{_by(row)}{_first(row)}{_checked(row, ' of ')}"
        return Judgement(Status.FAIL, message, wrong, 0, "words", (evidence(row),))
    if row.more.get("timed_out") is True:
        message = f"{where}: two kernels that wait for each other's data waited in vain{_checked(row, ' after ')}"
        return Judgement(Status.FAIL, message, 0, 0, "words", (evidence(row),))
    return Judgement(Status.PASS, f"{where}: no word is wrong{_checked(row, ' in ')}", 0, 0, "words", (evidence(row),))


def _by(row: Measurement) -> str:
    """The ways in which words came out wrong."""
    by = row.more.get("by")
    if not isinstance(by, dict):
        return ""
    bad = [f"{count} by {_METHODS.get(how, how)}" for how, count in by.items() if _counted(count)]
    return f" ({', '.join(bad)})" if bad else ""


def _counted(count: Json) -> bool:
    return isinstance(count, int | float) and not isinstance(count, bool) and count > 0


def _first(row: Measurement) -> str:
    first = row.more.get("first")
    return f", the first at byte {first}" if isinstance(first, int) and not isinstance(first, bool) else ""


def _checked(row: Measurement, word: str) -> str:
    checked = row.more.get("checked")
    known = isinstance(checked, int) and not isinstance(checked, bool) and 0 < checked < 1 << 60
    return f"{word}{checked / MIB:g} MiB" if known and isinstance(checked, int) else ""


def _memory(box: Box) -> Judged:
    id = "measure.memory-integrity"
    yield from per_gpu(box, id, {"memory-integrity": kept}, "no pattern was written into the memory of a GPU")


def _p2p(box: Box) -> Judged:
    id = "measure.p2p-integrity"
    found = figures(box, id)
    if isinstance(found, Judgement):
        yield HOST, found
        return
    tried = pairs(box, found, ("p2p-integrity",))
    somewhere = found.of("p2p-integrity", ALL)
    if somewhere is not None:  # nvbandwidth gives up and does not say where
        yield HOST, kept(box, found, somewhere)
    for a, b in tried:
        rows = found.both("p2p-integrity", a, b)
        said = together([kept(box, found, row) for row in rows])
        if said.status is Status.PASS and len(rows) > 1:
            said = replace(said, message=f"both ways: no word is wrong{_checked(rows[0], ' in ')}")
        yield pair(box, a, b), once(found, id, _explained(box, said, a, b), a, b)
    if not tried and somewhere is None:
        yield HOST, skip("not-recorded", "no data were sent from GPU to GPU and looked at")


def _explained(box: Box, said: Judgement, a: str, b: str) -> Judgement:
    """Of a pair that PCIe joins, with the setting that stands in the way and what lifts it."""
    one, other, link = device(box, a), device(box, b), joined(box, a, b)
    if said.status is not Status.FAIL or one is None or other is None or link is None:
        return said
    if link.nvlinks:
        return replace(said, remedy=f"{_UNUSED}: {_BY_NVLINK}")
    what = blocker(box, one, other)
    if not what.setting:
        return replace(said, remedy=f"{_UNUSED}: {what.remedy}; {_BY_PCIE}")
    return replace(said, message=f"{said.message}; blocked by {what.setting}", remedy=f"{_UNUSED}: {what.remedy}")


CHECKS = (
    Check(
        id="measure.memory-integrity",
        rule="Fails where words of the patterns that were written into a GPU's memory read back otherwise.",
        source="kernels that fill and check 1 GiB of the memory, with --long all that is free but 512 MiB",
        remedy="read the GPU's ECC counters and Xids 48, 63 and 64; reset it, run the vendor's field diagnostic, and"
        " ask for a replacement",
        judge=_memory,
    ),
    Check(
        id="measure.p2p-integrity",
        rule="Fails where data that one GPU sends into another's memory, by copy engine, by stores of a kernel or"
        " between two kernels that wait for each other, are not what the owner of that memory reads; and where the two"
        " wait in vain. A pair of which one GPU's own memory is wrong is told by measure.memory-integrity. Where an"
        " IOMMU translates for GPUs that PCIe joins, or ACS of a port between them redirects, that is named.",
        source="patterns checked on the owner's side; cuMemcpyDtoDAsync with peer access on; NVIDIA/nccl issue 2335 on"
        " copies that report success and move nothing",
        remedy=f"{_UNUSED}: stop the IOMMU from translating, then turn off ACS of the ports between them, neither where"
        f" virtual machines run; {_BY_PCIE}; for NVLink {_BY_NVLINK}",
        judge=_p2p,
    ),
)
